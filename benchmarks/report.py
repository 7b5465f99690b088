"""Tables of runs: one for the terminal, and a page per data set with every mean and its spread."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Record = dict[str, Any]


class Column(NamedTuple):
    title: str
    fields: tuple[str, ...]
    scale: float = 1.0
    spread: bool = False  # in the terminal too: mean [least..most]


ACCURACY = (
    Column("P@1", ("p@1",), spread=True),
    Column("P@3", ("p@3",)),
    Column("P@5", ("p@5",)),
    Column("PSP@1", ("psp@1",)),
    Column("PSP@3", ("psp@3",)),
    Column("PSP@5", ("psp@5",)),
    Column("ECE@5", ("ece@5",)),
)
TRAINING = (
    Column("train wall s", ("train_wall_s",)),
    Column("train CPU s", ("train_cpu_s",), spread=True),
    Column("of it parsing", ("parse_cpu_s",)),
    Column("model MB", ("model_bytes",), 1e-6),
    Column("train peak MB", ("train_peak_bytes",), 1e-6),
)
PREDICTION = (
    Column("batch µs/row text", ("batch_text_us",)),
    Column("batch µs/row vectors", ("batch_vectors_us",)),
    Column("p50/p99 µs text", ("p50_text_us", "p99_text_us")),
    Column("p50/p99 µs vectors", ("p50_vectors_us", "p99_vectors_us")),
    Column("load s", ("load_s",)),
    Column("predict peak MB", ("predict_peak_bytes",), 1e-6),
)
EMPTY = "-"


def number(value: float) -> str:
    """Two decimals below 100 (three below 1), none above."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def cell(records: Sequence[Record], column: Column, *, spread: bool) -> str:
    """Mean [least..most] over the runs, for each of the column's fields."""
    parts = []
    for field in column.fields:
        values = [record[field] * column.scale for record in records if record.get(field) is not None]
        if not values:
            return EMPTY
        shown = number(statistics.mean(values))
        ends = number(min(values)), number(max(values))
        if spread and ends[0] != ends[1]:
            shown += f" [{ends[0]}..{ends[1]}]"
        parts.append(shown)
    return " / ".join(parts)


def groups(records: Iterable[Record]) -> dict[tuple[str, int], list[Record]]:
    """Runs of the same tool with as many threads: the successful ones, or else the last failure."""
    found: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        found.setdefault((record["tool"], record["threads"]), []).append(record)
    return {
        key: [record for record in runs if "error" not in record] or runs[-1:] for key, runs in found.items()
    }


def table(records: Iterable[Record], columns: Sequence[Column], *, spread: bool) -> str:
    """A Markdown table, its columns aligned; a tool that failed says why."""
    rows = [["tool", "threads", "runs", *(column.title for column in columns)]]
    failures = []
    for (tool, threads), runs in groups(records).items():
        if "error" in runs[0]:
            failures.append(f"| {tool} | {threads} | failed: {runs[0]['error'].replace('|', '/')} |")
            continue
        cells = [cell(runs, column, spread=spread or column.spread) for column in columns]
        rows.append([tool, str(threads), str(len(runs)), *cells])
    return "\n".join([aligned(rows), *failures])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are as wide as their widest cell; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def page(
    name: str,
    records: Sequence[Record],
    notes: dict[str, str],
    command: str,
    figures: Sequence[str] = (),
    absences: Sequence[str] = (),
) -> str:
    """The results page of one data set; ``absences`` are lines on tools that have no runs there."""
    first = records[0]
    used = {record["tool"]: record for record in records if "error" not in record}
    sections = [
        f"# {name}",
        f"Written by `{command}` from the runs in [runs.jsonl](runs.jsonl): of each tool the newest ones. "
        "Each number is mean [least..most] over the runs. How they are measured: "
        "[benchmarks](../benchmarks.md).",
        f"{first['n_train']} training rows, {first['n_test']} test rows, {first['n_features']} features, "
        f"{first['n_labels']} labels. Machine: {first['machine']}.",
        "## Accuracy (percent, all test rows)",
        table(records, ACCURACY, spread=True),
        "## Training (whole process)",
        table(records, TRAINING, spread=True),
        "## Prediction (one thread, k = 5)",
        table(records, PREDICTION, spread=True),
        *(f"![{name}]({figure})" for figure in figures),
        "## Tools",
        "\n".join(
            f"- **{tool}** {run['version']} ({run['fingerprint']}): {notes.get(tool, '')}."
            for tool, run in used.items()
        ),
        *(["\n".join(absences)] if absences else []),
        "In brackets: a digest of the tool's file and settings here, of labeltree also of its source.",
    ]
    return "\n\n".join(sections) + "\n"
