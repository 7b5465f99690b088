"""The page of XML-CNN and Kim-CNN: their precision beside XT's, and whether the paper's order holds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import EMPTY, aligned, number
from experiments.ledger import Ledger, Record
from experiments.published import table1
from experiments.table1_systems import SYSTEMS
from experiments.writing import DEFAULT_FOLDER, mean_and_deviation, write_page

METRICS = ("p@1", "p@3", "p@5")
BESIDE = ("XT", "1-vs-All (DiSMEC-like)", "labeltree")  # of the main table
OUTPUTS = {"flat": "a sigmoid per label", "plt": "PLT"}
OLD, NEW = "XML-CNN, published", "XML-CNN, corrected"


def of_main_table(name: str, ledger: Ledger | None = None) -> dict[str, Record]:
    """What the main table recorded for this data set, by system."""
    ledger = Ledger(DEFAULT_FOLDER / "table1.jsonl") if ledger is None else ledger
    settings = {system.name: dict(system.settings) for system in SYSTEMS}
    found = {
        system: ledger.find(dict(data=name, system=system, settings=settings[system], seed=1))
        for system in BESIDE
    }
    return {system: record for system, record in found.items() if record and "p@1" in record}


def groups(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """The seeds of each encoder and output."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record["encoder"], record["output"]), []).append(record)
    return found


def result_table(records: Sequence[Record], beside: Mapping[str, Record]) -> str:
    """A line for each network, and below the systems of the main table."""
    rows = [
        ["network", "output", "P@1", "P@3", "P@5", "T train, CPU s", "T test / row, µs", "step", "best epoch"]
    ]
    for (encoder, output), runs in groups(records).items():
        precision = [mean_and_deviation(run[name] for run in runs) for name in METRICS]
        costs = [
            number(statistics.fmean(run[name] for run in runs))
            for name in ("train_cpu_seconds", "test_us_per_row")
        ]
        epochs = ", ".join(f"{run['best_epoch']} of {run['epochs']}" for run in runs)
        rates = ", ".join(f"{run['rate']:g}" for run in runs)
        rows.append([encoder, OUTPUTS[output], *precision, *costs, rates, epochs])
    for system, record in beside.items():
        costs = [number(record[name]) for name in ("train_cpu_seconds", "test_us_per_row")]
        rows.append([system, EMPTY, *(f"{record[name]:.2f}" for name in METRICS), *costs, EMPTY, EMPTY])
    return aligned(rows)


def mean_of(records: Sequence[Record], encoder: str, output: str, metric: str) -> float | None:
    values = [r[metric] for r in records if (r["encoder"], r["output"]) == (encoder, output)]
    return statistics.fmean(values) if values else None


def difference(records: Sequence[Record], one: tuple[str, str], other: tuple[str, str]) -> str | None:
    """P@1/3/5 of one system less that of another."""
    pairs = [(mean_of(records, *one, metric), mean_of(records, *other, metric)) for metric in METRICS]
    if any(value is None for pair in pairs for value in pair):
        return None
    return "/".join(
        f"{first - second:+.1f}" for first, second in pairs if first is not None and second is not None
    )


def judge_order(name: str, records: Sequence[Record], beside: Mapping[str, Record]) -> str:
    """The paper has XT above XML-CNN on the sets where both ran."""
    xt = beside.get("XT")
    if xt is None:
        return f"- {name}: the main table has no run of XT."
    best = max(
        (group for group in groups(records).items() if group[0][0] in (OLD, NEW)),
        key=lambda group: statistics.fmean(run["p@1"] for run in group[1]),
        default=None,
    )
    if best is None:
        return f"- {name}: XML-CNN was not run."
    (encoder, output), runs = best
    means = {metric: statistics.fmean(run[metric] for run in runs) for metric in METRICS}
    lead = "/".join(f"{xt[metric] - means[metric]:+.1f}" for metric in METRICS)
    holds = all(xt[metric] > means[metric] for metric in METRICS)
    verdict = "XT is above, as in the paper" if holds else "XT is not above at each k, unlike in the paper"
    return f"- {name}: XT less the best XML-CNN ({encoder}, {OUTPUTS[output]}): {lead}; {verdict}."


def judge_choices(name: str, records: Sequence[Record]) -> list[str]:
    """What the direction of the windows, the hidden layer and the output make."""
    lines = []
    found = difference(records, (NEW, "flat"), (OLD, "flat"))
    if found:
        lines.append(f"- {name}: windows along words instead of along vectors' numbers: {found}.")
    found = difference(records, ("Kim-CNN", "flat"), (NEW, "flat"))
    if found:
        lines.append(f"- {name}: Kim-CNN less the corrected XML-CNN: {found}.")
    for encoder in dict.fromkeys(record["encoder"] for record in records):
        found = difference(records, (encoder, "plt"), (encoder, "flat"))
        if found:
            lines.append(f"- {name}: a label tree instead of a sigmoid per label, {encoder}: {found}.")
    return lines


def published_table() -> str:
    """The paper's own numbers."""
    rows = [["data set (published)", "XML-CNN P@1/3/5", "XT P@1/3/5"]]
    for name, systems in table1().items():
        rows.append([name, *("/".join(systems[system][:3]) for system in ("XML-CNN", "XT"))])
    return aligned(rows)


def describe(records: Sequence[Record]) -> str:
    one = records[0]
    vectors = f"from {one['vectors']}" if one["vectors"] else f"random at first, of length {one['dim']}"
    windows, kim_windows = (", ".join(map(str, one[name])) for name in ("windows", "kim_windows"))
    rates = ", ".join(map(str, one["rates"]))
    return (
        f"Word vectors are {vectors}, and trained with the rest; texts are cut after {one['length']} words. "
        f"XML-CNN has windows of {windows} with {one['maps']} maps each in steps of 2, {one['parts']} parts "
        f"of dynamic pooling and a hidden layer of {one['hidden']}; Kim-CNN windows of {kim_windows} with "
        f"{one['kim_maps']} maps each. Dropout is {one['word_dropout']} of vectors and {one['dropout']} of "
        f"the output's input; Adam, {one['batch']} rows a step. Trees are k-means over TF-IDF, 16 children, "
        "up to 64 labels per parent. A tenth of the training rows, ten neighbours at a time, decides when to "
        f"stop and which step to take ({rates}; the best after {one['trial_epochs']} passes over at most "
        f"{one['trial_rows']:,} rows), by the sum of P@1, P@3 and P@5 there; those rows are not trained on, "
        "while XT and the others have all. Nothing else is tuned. Training time is that of all this, on one "
        f"thread; a run ends with the epoch in which it has taken {one['minutes']:g} minutes of CPU."
    )


def write(folder: Path, found: Mapping[str, Sequence[Record]], command: str) -> str:
    """Write the page; its summary for the terminal."""
    beside = {name: of_main_table(name) for name in found}
    tables = [f"### {name}\n\n{result_table(records, beside[name])}" for name, records in found.items()]
    lines = [judge_order(name, records, beside[name]) for name, records in found.items()]
    lines += [line for name, records in found.items() for line in judge_choices(name, records)]
    some = next(iter(found.values()))
    sections = [
        "XML-CNN is the neural system of the paper's Table 1. The code that its authors released lets "
        "windows go along the numbers of word vectors instead of along words (as its re-investigation found, "
        "NAACL 2022); both are here, and Kim's older network. Each has a sigmoid for every label as output, "
        "or a label tree (`labeltree.torch`). XT and the others are those of the [main table](table1.md).",
        "## What the records show",
        "\n".join(lines),
        "## Our data",
        *tables,
        "## The paper's own (published, other data sets)",
        published_table(),
        "## How it was done",
        describe(some),
    ]
    write_page(folder / "xml_cnn.md", "XML-CNN and Kim-CNN", command, sections)
    return "\n\n".join([*tables, "\n".join(lines)])
