"""The page of decisions: what `python -m benchmarks.decisions` measured, beside the bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.commands import verdict
from benchmarks.report import aligned

Record = dict[str, Any]
SETS = ("micro-f1", "instance-f1", "macro-f1")
COVERED = "precision>=0.9"
RANKED_SETS = ("llms4subjects-all", "acl-authors")
NEAR, ABOVE, RIGHT, SLOWER, FASTER, SAME = 0.003, 1.05, 0.88, 1.5, 20.0, 1e-3
GAIN = {"macro-f1@5": 1.4, "coverage@5": 1.3}
LOSS = 0.03  # of P@5
SECONDS = 60.0  # for many rows together
TITLE = """# Decisions, measured
Written by `python -m benchmarks.decisions`; [decisions](../decisions.md) says what is measured here.
Models are trained on all training rows with the defaults; rules are tuned on the rows that training holds out
at first (as `labeltree train --tune-for` does), and judged by the test rows. Times are CPU time of one thread
on a machine that others use too: ratios tell more than the microseconds do.
"""


def write_page(records: Sequence[Record], path: Path) -> None:
    rules = [record for record in records if record["part"] == "rules"]
    lines = [TITLE, *_sets(rules), *_precision(rules), *_ranked(rules), *_times(records)]
    lines += [*_peer(records), *_together(records)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _sets(rules: Sequence[Record]) -> Iterator[str]:
    yield "## Sets of labels"
    yield "In percent: by the rule, and by the best single threshold for all labels in hindsight, chosen by"
    yield "the test rows themselves. Bars: micro and instance F1 at most 0.3 points below it; macro F1 at"
    yield "least 5 % (relative) above it on five of seven sets.\n"
    rows = [["data set", "tuned on rows", *(f"{key}: rule / hindsight" for key in SETS), "bars"]]
    for record in rules:
        pairs = {key: (record["rules"][key][key], record["hindsight"][key]) for key in SETS}
        near = all(own >= best - NEAR for own, best in (pairs["micro-f1"], pairs["instance-f1"]))
        above = pairs["macro-f1"][0] / pairs["macro-f1"][1]
        cells = [f"{_percent(own)} / {_percent(best)}" for own, best in pairs.values()]
        told = f"{verdict(near)}; macro {100 * (above - 1):+.1f} %: {verdict(above >= ABOVE)}"
        rows.append([record["name"], f"{record['tuned_on']:,}", *cells, told])
    yield aligned(rows) + "\n"


def _precision(rules: Sequence[Record]) -> Iterator[str]:
    yield f"## {COVERED}"
    yield "What is given to test rows, and how much of that is right. Bar: at least 88 %.\n"
    rows = [["data set", "labels per row", "right, %", "bar"]]
    for record in rules:
        found = record["rules"][COVERED]
        if found is None:
            rows.append([record["name"], "none: no threshold reaches it on the held-out rows", "", ""])
            continue
        right = found["micro-precision"]
        cells = [f"{found['labels_per_row']:.3f}", _percent(right), verdict(right >= RIGHT)]
        rows.append([record["name"], *cells])
    yield aligned(rows) + "\n"


def _ranked(rules: Sequence[Record]) -> Iterator[str]:
    yield "## At most five labels"
    yield "In percent, top 5 and by the rule. Bars: macro F1 +40 % (relative) for at most 3 points of P@5,"
    yield f"coverage +30 %, on {' and '.join(RANKED_SETS)}.\n"
    rows = [["data set", "rule", "macro F1", "coverage", "P@5", "labels per row", "bar"]]
    for record in rules:
        top = record["top"]
        for measure in ("macro-f1@5", "0.97*macro-f1@5+0.03*p@5", "coverage@5", "psp@5"):
            found = record["rules"][measure]
            cells = [
                f"{_percent(top[key])} → {_percent(found[key])}" for key in ("macro-f1", "coverage", "p")
            ]
            told = ""
            if record["name"] in RANKED_SETS and measure in GAIN:
                key = measure.partition("@")[0]
                gain = found[key] / top[key]
                enough = gain >= GAIN[measure] and (key == "coverage" or found["p"] >= top["p"] - LOSS)
                told = f"{100 * (gain - 1):+.0f} %: {verdict(enough)}"
            rows.append([record["name"], measure, *cells, f"{found['labels_per_row']:.2f}", told])
    yield aligned(rows) + "\n"


def _times(records: Sequence[Record]) -> Iterator[str]:
    yield "## Time"
    yield "Microseconds of CPU for a row, of the top 5 and by rules (in brackets how many times as long)."
    yield "Bar: at most 1.5 times.\n"
    timed = [record for record in records if "microseconds" in record]
    measures = list(dict.fromkeys(measure for record in timed for measure in record["microseconds"]))
    rows = [["data set", *measures]]
    for record in timed:
        times = record["microseconds"]
        cells = [
            f"{times[each]:.0f} ({times[each] / times['top 5']:.2f})" if each in times else ""
            for each in measures
        ]
        rows.append([record["name"], *cells])
    yield aligned(rows) + "\n"
    slow = sorted(
        {
            f"{record['name']} {each}"
            for record in timed
            for each, value in record["microseconds"].items()
            if value > SLOWER * record["microseconds"]["top 5"]
        }
    )
    yield f"Slower than 1.5 times: {', '.join(slow) or 'none'}.\n"


def _peer(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
        if record["part"] != "xcolumns":
            continue
        yield "## Beside xCOLUMNs 0.0.2"
        yield f"`labeltree.decide` from the same {_shape(record)}: what is expected of the measure, and CPU"
        yield "seconds of one thread. Both stop when a pass gains less than 1e-6. Bars: the same to 0.001,"
        yield "and 20 times faster. The last column is what a clock says, with one and with two threads: it"
        yield "tells little where others use the cores at the same time.\n"
        rows = [["measure", "xCOLUMNs", "labeltree", "its seconds", "ours", "times", "bars", "1 / 2 threads"]]
        for key, found in record["measures"].items():
            times = found["their_seconds"] / found["seconds"]
            told = f"{verdict(found['ours'] >= found['theirs'] - SAME)}; {verdict(times >= FASTER)}"
            seconds = [f"{found['their_seconds']:.2f}", f"{found['seconds']:.3f}", f"{times:.0f}"]
            utilities = [f"{found['theirs']:.4f}", f"{found['ours']:.4f}"]
            rows.append([key, *utilities, *seconds, told, _walls(found)])
        yield aligned(rows) + "\n"


def _together(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
        if record["part"] != "together":
            continue
        yield "## Many rows together"
        yield f"`labeltree.decide` from {_shape(record)}, which take {record['bytes'] / 1e6:.0f} MB: CPU"
        yield "seconds of one thread (bar: 60), what a clock says with one and with two, and the memory that"
        yield "it takes besides at most.\n"
        rows = [["measure", "expected", "seconds", "bar", "1 / 2 threads", "MB"]]
        for key, found in record["measures"].items():
            told = verdict(found["seconds"] <= SECONDS)
            cells = [f"{found['ours']:.4f}", f"{found['seconds']:.2f}", told, _walls(found)]
            rows.append([key, *cells, f"{found['bytes'] / 1e6:.0f}"])
        yield aligned(rows) + "\n"


def _shape(record: Record) -> str:
    shape = record["shape"]
    return (
        f"{shape['rows']:,} rows of probabilities\n"
        f"({shape['labels']:,} labels, {shape['candidates']} of a row), k = 5"
    )


def _walls(found: Record) -> str:
    return " / ".join(f"{seconds:.3f}" for seconds in found["wall"])
