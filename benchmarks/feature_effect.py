"""How much of a lead is features and how much is method: peers that are given labeltree's default features.

    python -m benchmarks.compare --features full --data debian-debtags,llms4subjects-all

runs them on the vectors that labeltree makes of texts by default. Such runs are in the ledger under the
tool's name with a suffix, and in no table but the one of this section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.peer_bars import OUR_PACKAGE, Standing, shown, shown_precisions
from benchmarks.report import Record, aligned
from benchmarks.running import Tool

SUFFIX = "+features"
PEERS = ("omikuji-3", "pecos-xrlinear")
SETS = ("debian-debtags", "llms4subjects-all")
OURS, OURS_ON_WORDS = "labeltree", ("labeltree-fast", "labeltree-3")
WORDS, FULL = "words", "labeltree's"
TITLE = "How much is features, how much is method"


def full_features(record: Record) -> bool:
    """Whether a peer was given labeltree's default features in this run."""
    return str(record["tool"]).endswith(SUFFIX)


def choose(names: str, known: Mapping[str, Tool]) -> list[Tool]:
    """The peers of a comma-separated list, named as they are with full features; "all" are the usual two."""
    chosen = []
    for name in PEERS if names == "all" else names.split(","):
        tool = known.get(name)
        if tool is None or tool.module.PACKAGE == OUR_PACKAGE or "vectors" not in tool.module.PREDICTS:
            raise SystemExit(f"--features full is for peers that take vectors, but not for {name!r}")
        chosen.append(tool._replace(name=name + SUFFIX))
    return chosen


def section(standings: Sequence[Standing]) -> str:
    """Ours and peers, each on words and on full features; ``standings`` have the runs of both."""
    rows = [["data set", "tool", "features", "P@1/3/5", "train CPU s", "runs"]]
    told = []
    for standing in standings:
        tools = dict.fromkeys(OURS_ON_WORDS, WORDS) | {OURS: FULL}
        for peer in PEERS:
            tools |= {peer: WORDS, peer + SUFFIX: FULL}
            told += _shares(standing, peer)
        rows += [
            [standing.data, tool.removesuffix(SUFFIX), features, shown_precisions(standing.precisions(tool)),
             shown(standing.mean(tool, "train_cpu_s")), str(len(standing.runs[tool]))]
            for tool, features in tools.items() if tool in standing.runs
        ]  # fmt: skip
    text = (
        "Everywhere else peers are given TF-IDF of words cut at spaces, here labeltree's default features, "
        "too: what a peer gains with them is features, what it still lacks is method (trees, nodes and "
        "neighbours)."
    )
    return "\n\n".join([f"## {TITLE}", text, aligned(rows), *(["\n".join(told)] if told else [])])


def _shares(standing: Standing, peer: str) -> list[str]:
    """Our lead over a peer, in points, as the sum of what features and what the method give."""
    ours, theirs, full = (standing.precisions(tool) for tool in (OURS, peer, peer + SUFFIX))
    if ours is None or theirs is None or full is None:
        return []

    def apart(high: Sequence[float], low: Sequence[float]) -> str:
        return "/".join(f"{a - b:+.1f}" for a, b in zip(high, low, strict=True))

    return [
        f"- {standing.data}: P@1/3/5 of {OURS} against {peer} on words {apart(ours, theirs)}: features "
        f"{apart(full, theirs)}, method {apart(ours, full)}."
    ]
