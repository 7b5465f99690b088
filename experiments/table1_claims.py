"""What the main table says: who is above whom, here and in the paper, and XT beside the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.ledger import Record
from experiments.published import table1
from experiments.table1_systems import SYSTEMS

METRICS = ("p@1", "p@3", "p@5")
# XT's bars beside the original: points of precision that noise may take, and CPU time per pass over the rows.
SLACK, TIMES_LESS = 0.3, 8.0
# Of an epoch of extremeText's: `python -m benchmarks.passes` prints them.
PASSES = {
    "cooking-stackexchange": 1.11,
    "debian-debtags": 1.45,
    "wordnet-hypernyms": 1.15,
    "llms4subjects-all": 1.60,
}
# The same method by labeltree and by others.
NOT_PUBLISHED = "‡"
TWINS = (("XT", "extremetext"), ("fastText-hs", "fasttext-hs"), ("Parabel-like", "omikuji-3"))
OF_PEER = {peer: system.name for system in SYSTEMS for peer in system.peers}


def trained(records: Sequence[Record]) -> list[Record]:
    """Those that did not diverge."""
    return [record for record in records if "diverged" not in record]


def titles(record: Record) -> tuple[str, str]:
    """The system, and what ran it."""
    if record.get("is_peer"):
        threads = f", {record['threads']} threads" * (record["threads"] > 1)
        return OF_PEER[record["system"]], f"{record['system']} {record['version']}".strip() + threads
    return record["system"], record.get("run_by", "labeltree")


class Claim(NamedTuple):
    """That a system is above another at P@1; the columns of the paper's table that it is about."""

    higher: str
    lower: str
    published_higher: str
    published_lower: str


CLAIMS = (
    Claim("XT", "fastText-hs", "XT", "FT"),
    Claim("XT", "Learned Tree", "XT", "LT"),
    Claim("XT", "Learned Tree, dense defaults", "XT", "LT"),
    Claim("labeltree, dense", "Learned Tree, dense defaults", "XT", "LT"),
    Claim("Learned Tree", "fastText-hs", "LT", "FT"),
    Claim("Parabel-like", "XT", "Parabel", "XT"),
    Claim("1-vs-All (DiSMEC-like)", "XT", "DiSMEC", "XT"),
    Claim("1-vs-All (DiSMEC-like)", "Parabel-like", "DiSMEC", "Parabel"),
    Claim("XT", "FastXML", "XT", "FastXML"),
    Claim("Parabel-like", "FastXML", "Parabel", "FastXML"),
    Claim("PPDSparse", "XT", "PPDSparse", "XT"),
    Claim("XT", "XML-CNN", "XT", "XML-CNN"),
)


class Judged(NamedTuple):
    """What a claim comes to."""

    leads: dict[str, float]  # by data set, of P@1
    in_paper: list[bool]  # whether it holds, for each set of the paper that has both figures
    verdict: str


PARTLY = "only partly as in the paper"


def judged(claim: Claim, found: Mapping[str, Sequence[Record]]) -> Judged:
    """On which sets one is above the other, here and in the paper."""
    leads = {}
    for name, records in found.items():
        p_1 = {record["system"]: record["p@1"] for record in trained(records)}
        if claim.higher in p_1 and claim.lower in p_1:
            leads[name] = p_1[claim.higher] - p_1[claim.lower]
    pairs = [
        (columns[claim.published_higher].p_1, columns[claim.published_lower].p_1)
        for columns in table1().values()
    ]
    in_paper = [
        float(higher) > float(lower) for higher, lower in pairs if NOT_PUBLISHED not in (higher, lower)
    ]
    above = [lead > 0 for lead in leads.values()]
    if not leads:
        verdict = "not measured"
    elif not all(in_paper):
        verdict = "mixed there"
    elif all(above):
        verdict = "as in the paper"
    else:
        verdict = PARTLY if any(above) else "**not as in the paper**"
    return Judged(leads, in_paper, verdict)


def judge_claim(claim: Claim, found: Mapping[str, Sequence[Record]]) -> str:
    """On how many sets one is above the other, here and in the paper."""
    leads, in_paper, verdict = judged(claim, found)
    if not leads:
        return f"- {claim.higher} above {claim.lower} at P@1: not measured."
    shown = ", ".join(f"{name} {lead:+.2f}" for name, lead in leads.items())
    return (
        f"- {claim.higher} above {claim.lower} at P@1: on {sum(lead > 0 for lead in leads.values())} of "
        f"{len(leads)} sets ({shown}); in the paper on {sum(in_paper)} of {len(in_paper)}: {verdict}."
    )


def judge_agreement(found: Mapping[str, Sequence[Record]]) -> str:
    """Where we agree with the paper and where not, by claim."""
    by_verdict: dict[str, list[str]] = {}
    for claim in CLAIMS:
        verdict = judged(claim, found).verdict
        by_verdict.setdefault(verdict, []).append(f"{claim.higher} above {claim.lower}")
    return "\n".join(f"- {verdict}: {'; '.join(claims)}." for verdict, claims in by_verdict.items())


def judge_best(found: Mapping[str, Sequence[Record]]) -> str:
    best = {
        name: max(trained(records), key=lambda record: record["p@1"])
        for name, records in found.items()
        if trained(records)
    }
    shown = ", ".join(f"{name}: {' by '.join(titles(record))}" for name, record in best.items())
    return f"- Best P@1: {shown}."


def judge_peers(found: Mapping[str, Sequence[Record]]) -> list[str]:
    """Ours beside the implementation of the same method by others."""
    lines = []
    for ours, theirs in TWINS:
        parts = []
        for name, records in found.items():
            by_name = {record["system"]: record for record in trained(records)}
            if ours in by_name and theirs in by_name:
                a, b = by_name[ours], by_name[theirs]
                parts.append(
                    f"{name} {a['p@1'] - b['p@1']:+.2f} P@1 in {a['train_cpu_seconds']:.3g} s of CPU time "
                    f"against {b['train_cpu_seconds']:.3g} s"
                )
        if parts:
            lines.append(f"- {ours} by labeltree beside {theirs}: {'; '.join(parts)}.")
    return lines


def judge_costs(found: Mapping[str, Sequence[Record]]) -> list[str]:
    """The paper's point: a tree answers faster than one classifier per label, in a smaller model."""
    parts = []
    for name, records in found.items():
        by_name = {record["system"]: record for record in trained(records)}
        tree, flat = by_name.get("XT"), by_name.get("1-vs-All (DiSMEC-like)")
        if tree and flat:
            times = flat["test_us_per_row"] / tree["test_us_per_row"]
            sizes = flat["model_bytes"] / tree["model_bytes"]
            parts.append(f"{name} {times:.1f} times the test time, {sizes:.1f} times the size")
    if not parts:
        return []
    return [f"- 1-vs-All compared with XT: {'; '.join(parts)}."]


def judge_original(found: Mapping[str, Sequence[Record]]) -> list[str]:
    """XT beside extremeText: at least as precise but for noise, and cheaper by far."""
    lines = []
    for name, records in found.items():
        by_name = {record["system"]: record for record in trained(records)}
        if "XT" not in by_name or "extremetext" not in by_name:
            continue
        ours, theirs = by_name["XT"], by_name["extremetext"]
        leads = [ours[metric] - theirs[metric] for metric in METRICS]
        verdict = "reached" if min(leads) >= -SLACK else "**MISSED**"
        times = theirs["train_cpu_seconds"] / ours["train_cpu_seconds"]
        per_pass = times / PASSES[name] if name in PASSES else times
        cheaper = "reached" if per_pass >= TIMES_LESS else "**MISSED**"
        lines.append(
            f"- {name}: P@1/3/5 {shown(ours)} ({ours['n_runs']} runs) beside {shown(theirs)} "
            f"({theirs['n_runs']} runs): {'/'.join(f'{lead:+.2f}' for lead in leads)}, {verdict}; "
            f"{times:.1f} times less CPU time, {per_pass:.1f} per pass: {cheaper}."
        )
    return lines


def shown(record: Record) -> str:
    return "/".join(f"{record[metric]:.2f}" for metric in METRICS)
