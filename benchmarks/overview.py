"""All recorded runs as one page, and the table of the README: texts made of records, nothing is run."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks import feature_effect, hs_bars, preset_bars, sparse_bars
from benchmarks.datasets import ALL_SETS
from benchmarks.peer_bars import (
    ENOUGH_RUNS,
    EXTREMETEXT,
    OUR_PACKAGE,
    SETS,
    Standing,
    bars_section,
    with_threads,
)
from benchmarks.report import EMPTY, Record, aligned, groups, number
from benchmarks.running import TRAINING_FAILED, Tool

COMMAND = "python -m benchmarks.compare --overview"
_OUR_ROWS = {
    preset_bars.DEFAULTS: "**labeltree**",
    preset_bars.BEST: "**labeltree**, `--preset best`",
    preset_bars.FAST: "**labeltree**, `--preset fast`",
}


class Column(NamedTuple):
    title: str
    field: str
    scale: float = 1.0
    more_is_better: bool = False


COLUMNS = (
    Column("P@1", "p@1", more_is_better=True),
    Column("P@3", "p@3", more_is_better=True),
    Column("P@5", "p@5", more_is_better=True),
    Column("ECE@5", "ece@5"),
    Column("train CPU s", "train_cpu_s"),
    Column("of it parsing", "parse_cpu_s"),
    Column("model MB", "model_bytes", 1e-6),
    Column("batch µs/row text", "batch_text_us"),
    Column("batch µs/row vectors", "batch_vectors_us"),
    Column("p50 µs text", "p50_text_us"),
    Column("p50 µs vectors", "p50_vectors_us"),
)
WITHOUT_BEST = ("parse_cpu_s",)  # tools that do not separate it would look worse than those that do


def newest(records: Iterable[Record], data: str, full: bool = False) -> list[Record]:
    """The runs of a data set that can stand side by side, whatever the source is now.

    Of the machine and the features of the last run; of each tool those made as its last one was; of a
    repeat that was made again the last one that succeeded. ``full``: the runs of peers that were given
    labeltree's default features, which stand beside no others.
    """
    found = [r for r in records if r["data"] == data and feature_effect.full_features(r) == full]
    if not found:
        return []
    found = [r for r in found if (r["machine"], r["digest"]) == (found[-1]["machine"], found[-1]["digest"])]
    last = {record["tool"]: record["fingerprint"] for record in found}
    kept: dict[tuple[str, int, int], Record] = {}
    for record in found:
        repeat = record["tool"], record["threads"], record["repeat"]
        if record["fingerprint"] == last[record["tool"]] and not (repeat in kept and "error" in record):
            kept[repeat] = record
    return list(kept.values())


def data_sets(records: Iterable[Record]) -> list[str]:
    """The data sets with runs: those we know in their order, then all others."""
    names = dict.fromkeys(r["data"] for r in records if not feature_effect.full_features(r))
    return [*(name for name in ALL_SETS if name in names), *(name for name in names if name not in ALL_SETS)]


def standing_of(
    records: Iterable[Record], data: str, tools: Mapping[str, Tool], full: bool = False
) -> Standing:
    """The runs with one thread, tools in the order of ``tools``, and apart those with more.

    A peer whose training failed by itself has no model to compare with and is left out, or other variants
    stand in for it; not so one that was stopped because it took long. A peer that ran with more threads only
    (it would take hours with one) counts with these runs. One that is meant for fewer labels is left out.
    """
    counted = newest(records, data, full)
    n_labels = max((record["n_labels"] for record in counted), default=0)
    limited = {name: tool.most_labels for name, tool in tools.items() if tool.most_labels < n_labels}
    runs: dict[str, list[Record]] = {}
    more_threads: dict[str, list[Record]] = {}
    failed = set()
    for (tool, threads), found in groups(counted).items():
        if "error" not in found[0]:
            (runs if threads == 1 else more_threads).setdefault(tool, []).extend(found)
        elif threads == 1 and found[0]["error"].startswith(TRAINING_FAILED):
            failed.add(tool)
    rivals = {
        name: tool
        for name, tool in tools.items()
        if tool.module.PACKAGE != OUR_PACKAGE
        and name not in failed
        and name not in limited
        and (tool.stands_in_for is None or tool.stands_in_for in failed)
    }
    for name in rivals:
        if name in more_threads and name not in runs:
            fewest = min(run["threads"] for run in more_threads[name])
            runs[name] = [run for run in more_threads[name] if run["threads"] == fewest]
    stand_ins = {
        tool: {name: name in runs for name, rival in rivals.items() if rival.stands_in_for == tool}
        for tool in sorted(failed)
    }
    peers = {
        name: tool.module.PREDICTS
        for name, tool in rivals.items()
        if name in runs
        or not any(stand_ins.get(tool.stands_in_for or "", {}).values())  # one of them is enough
    }
    order = [*(tool for tool in tools if tool in runs), *(tool for tool in runs if tool not in tools)]
    return Standing(data, {tool: runs[tool] for tool in order}, peers, more_threads, stand_ins, limited)


def overview(records: Sequence[Record], tools: Mapping[str, Tool]) -> str:
    """The page of all data sets."""
    names = data_sets(records)
    counted = [record for name in names for record in newest(records, name)]
    sections = [
        "# Results",
        f"Written by `{COMMAND}` from the runs in [runs.jsonl](runs.jsonl): of each tool the newest ones. "
        "Means over the runs, training and prediction with one thread unless noted, the best of a column in "
        "bold; `-`: the tool does not take that input, or does not separate it. How it is measured: "
        "[benchmarks](../benchmarks.md).",
        _circumstances(counted),
    ]
    for name in names:
        runs, standing = newest(records, name), standing_of(records, name, tools)
        first = runs[0]
        sections += [
            f"## {name}",
            f"{first['n_train']} training rows, {first['n_test']} test rows, {first['n_features']} features, "
            f"{first['n_labels']} labels. [Every number with its spread]({name}.md).",
            _compact_table(standing),
        ]
        without = [*_failures(runs), *absences(standing)]
        if without:
            sections.append("\n".join(without))
    sections.append(bars_section([standing_of(records, name, tools) for name in SETS]))
    if any(record["tool"] in preset_bars.OURS for record in records):
        standings = [standing_of(records, name, tools) for name in preset_bars.SETS]
        title = "What we hold ourselves to with the defaults and presets"
        sections.append(bars_section(standings, preset_bars.BARS, title))
    if any(feature_effect.full_features(record) for record in records):
        sections.append(feature_effect.section(_on_both_features(records, tools)))
    if any(record["tool"] in sparse_bars.OURS for record in records):
        standings = [standing_of(records, name, tools) for name in sparse_bars.SETS]
        title = "What we hold ourselves to with sparse nodes"
        sections.append(bars_section(standings, sparse_bars.BARS, title))
    if any(record["tool"] == hs_bars.OURS for record in records):
        standings = [standing_of(records, name, tools) for name in hs_bars.SETS]
        sections.append(bars_section(standings, hs_bars.BARS, "Beside fastText's hierarchical softmax"))
    return "\n\n".join(sections) + "\n"


def _on_both_features(records: Sequence[Record], tools: Mapping[str, Tool]) -> list[Standing]:
    """The standings of the data sets on which peers were given full features, with these runs too."""
    found = []
    for name in feature_effect.SETS:
        usual, full = (standing_of(records, name, tools, full) for full in (False, True))
        found.append(usual._replace(runs={**usual.runs, **full.runs}))
    return found


def _circumstances(records: Sequence[Record]) -> str:
    """Machines, versions and days of the runs."""
    machines = dict.fromkeys(record["machine"] for record in records)
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        if "version" in record:
            versions.setdefault(record["tool"], {})[record["version"]] = None
    named = [f"{tool} {'/'.join(found)}" for tool, found in sorted(versions.items())]
    lines = [
        f"- Machine: {'; '.join(machines)}.",
        f"- Versions: {', '.join(named)}.",
    ]
    days = sorted({record["date"] for record in records if "date" in record})
    if days:
        lines.append(f"- Made from {days[0]} to {days[-1]}." if len(days) > 1 else f"- Made on {days[0]}.")
    loads = [record["load_average"] for record in records if "load_average" in record]
    if loads:
        lines.append(f"- Load average of the machine when a run began: {min(loads):.1f} to {max(loads):.1f}.")
    if len(loads) < len(records):
        lines.append(
            f"- The load was not recorded for {len(records) - len(loads)} of {len(records)} runs: "
            "[benchmarks](../benchmarks.md) says which were made on a busy machine."
        )
    return "\n".join(lines)


def _failures(records: Iterable[Record]) -> list[str]:
    return [
        f"- {tool}, {threads} thread{'s' * (threads > 1)}: failed: {found[0]['error']}"
        for (tool, threads), found in groups(records).items()
        if "error" in found[0]
    ]


def absences(standing: Standing) -> list[str]:
    """Lines on the tools that are not run on a data set."""
    return [
        f"- {tool}: not run, as it is for up to {most:,.0f} labels" for tool, most in standing.limited.items()
    ]


def _compact_table(standing: Standing) -> str:
    rows = [
        ["tool", "runs"],
        *([tool, f"{len(runs)}{with_threads(runs)}"] for tool, runs in standing.runs.items()),
    ]
    for column in COLUMNS:
        means = [standing.mean(tool, column.field) for tool in standing.runs]
        cells = [EMPTY if mean is None else number(mean * column.scale) for mean in means]
        measured = [mean for mean in means if mean is not None]
        if not measured:
            continue  # a data set of vectors has no texts
        rows[0].append(column.title)
        best = (max if column.more_is_better else min)(measured, default=None)
        for row, mean, cell in zip(rows[1:], means, cells, strict=True):
            is_best = mean is not None and mean == best and column.field not in WITHOUT_BEST
            row.append(f"**{cell}**" if is_best else cell)
    return aligned(rows)


def readme_section(records: Sequence[Record], tools: Mapping[str, Tool]) -> str:
    """labeltree and the best of its peers on each data set where both were measured."""
    rows = [["data set", "tool", "P@1", "P@3", "P@5", "training CPU s", "µs per text", "µs per vector"]]
    counted: list[Record] = []
    for name in data_sets(records):
        standing = standing_of(records, name, tools)
        chosen = _best_peers(standing)
        ours = {tool: title for tool, title in _OUR_ROWS.items() if tool in standing.runs}
        if not ours or not chosen:
            continue
        n_labels = standing.runs[next(iter(ours))][0]["n_labels"]
        where = f"{name}, {n_labels:,} labels"
        for tool, title in (ours | chosen).items():
            n_runs, threads = len(standing.runs[tool]), with_threads(standing.runs[tool])
            is_usual = n_runs >= ENOUGH_RUNS and not threads
            note = "" if is_usual else f" ({n_runs} run{'s' * (n_runs > 1)}{threads})"
            precisions = [f"{value:.1f}" for value in standing.precisions(tool) or ()] or [EMPTY] * 3
            costs = [standing.mean(tool, f) for f in ("train_cpu_s", "batch_text_us", "batch_vectors_us")]
            shown = [EMPTY if cost is None else number(cost) for cost in costs]
            rows.append([where, title + note, *precisions, *shown])
            where = ""
            counted += standing.runs[tool]
    machines = "; ".join(dict.fromkeys(record["machine"] for record in counted))
    text = (
        "labeltree, with its defaults and presets as far as they were run, beside the best of its peers, "
        "each installed from the registry and run on the same rows (`python -m benchmarks.compare`): "
        "percent of right labels among the first 1, 3 and 5; CPU seconds of the whole training process; "
        "prediction per row of a batch, from text or from ready vectors. "
        f"Means of at least {ENOUGH_RUNS} runs with one thread unless noted. {machines}."
    )
    if any("load_average" not in record for record in counted):
        text += " Some times are of a busy machine: [benchmarks](docs/benchmarks.md) says which."
    wrapped = textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)
    more = "[All tools, all numbers, and what we hold ourselves to](docs/results/README.md)."
    return f"{wrapped}\n\n{aligned(rows)}\n\n{more}"


def _best_peers(standing: Standing) -> dict[str, str]:
    """Peer -> its name with what it is best at: accuracy, training, prediction; and extremeText."""
    measured = [peer for peer in standing.peers if peer in standing.runs]
    if not measured:
        return {}

    def cost(peer: str, field: str) -> float:
        mean = standing.mean(peer, field)
        return float("inf") if mean is None else mean

    def against_ours(peer: str) -> float:
        """Its time per row as a multiple of labeltree's default from the same input."""
        ours = next(tool for tool in _OUR_ROWS if tool in standing.runs)
        fields = ("batch_text_us", "batch_vectors_us")
        return min(cost(peer, field) / (standing.mean(ours, field) or 1.0) for field in fields)

    roles: dict[str, list[str]] = {}
    best = max(measured, key=lambda peer: statistics.mean(standing.precisions(peer) or [0.0]))
    roles.setdefault(best, []).append("most accurate peer")
    roles.setdefault(min(measured, key=lambda peer: cost(peer, "train_cpu_s")), []).append(
        "quickest to train"
    )
    roles.setdefault(min(measured, key=against_ours), []).append("quickest to predict")
    if EXTREMETEXT in measured:
        roles.setdefault(EXTREMETEXT, []).append("the original")
    return {peer: f"{peer}, {', '.join(found)}" for peer, found in roles.items()}
