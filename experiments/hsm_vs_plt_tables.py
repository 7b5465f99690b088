"""The tables of HSM against PLT."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.report import EMPTY, aligned
from experiments.hsm_vs_plt_records import KINDS, LINKS, METRICS, ROW_GROUPS, DataSet, Kind, chosen, lead
from experiments.ledger import Record
from experiments.published import hsm_vs_plt
from experiments.writing import mean_and_deviation

_TITLES = ("HSM", "PLT", "PLT - HSM")


def result_table(found: Mapping[str, Sequence[Record]], kind: Kind) -> str:
    """Both links and their difference on each data set; the better one in bold."""
    rows = [["data set", *(f"{title} {metric.upper()}" for metric in METRICS for title in _TITLES)]]
    for name, records in found.items():
        cells = []
        for metric in METRICS:
            difference = lead(records, kind.name, metric)
            if difference is None:
                cells += [EMPTY] * 3
                continue
            for link in LINKS:
                shown = mean_and_deviation(run[metric] for run in chosen(records, kind.name, link))
                is_better = difference.mean > 0 if link == "plt" else difference.mean < 0
                cells.append(f"**{shown}**" if is_better else shown)
            cells.append(str(difference))
        rows.append([name, *cells])
    return aligned(rows)


def published_table() -> str:
    head = ["set of the paper"]
    head += [
        f"{model} {link}" for model in ("sparse (Vowpal Wabbit)", "dense (fastText)") for link in _TITLES
    ]
    rows = [head]
    for name, models in hsm_vs_plt().items():
        cells = []
        for model in ("sparse", "dense"):
            hsm, plt = models[model]
            for values, form in (
                (hsm, "{:.2f}"),
                (plt, "{:.2f}"),
                ([b - a for a, b in zip(hsm, plt, strict=True)], "{:+.2f}"),
            ):
                cells.append(" / ".join(form.format(value) for value in values))
        rows.append([name, *cells])
    return aligned(rows)


def tuned_table(data: Mapping[str, DataSet], kind: Kind) -> str:
    """The values chosen by held-out rows, and the difference with them."""
    head = ["data set", f"{kind.tuned} of HSM", f"{kind.tuned} of PLT"]
    rows = [[*head, *(f"PLT - HSM {metric.upper()}" for metric in METRICS)]]
    for name, records in data.items():
        values = [f"{chosen(records.tuned, kind.name, link)[0]['settings'][kind.tuned]:g}" for link in LINKS]
        rows.append([name, *values, *(_shown(records.tuned, kind.name, metric) for metric in METRICS)])
    return aligned(rows)


def _shown(records: Sequence[Record], kind: str, metric: str) -> str:
    difference = lead(records, kind, metric)
    return EMPTY if difference is None else str(difference)


def groups_table(data: Mapping[str, DataSet]) -> str:
    """PLT - HSM on test rows with one label and on the others."""
    head = ["data set", "labels / row", "rows with one label"]
    columns = [(kind, group) for kind in KINDS for group in ROW_GROUPS]
    rows = [[*head, *(f"{kind.name}, {group}" for kind, group in columns)]]
    for name, records in data.items():
        first = records.same[0]
        cells = [f"{first['labels_per_row']:.2f}", f"{first['n_one']} ({share_of_one(first):.1f} %)"]
        cells += [_shown(records.same, kind.name, f"p@1, {group}") for kind, group in columns]
        rows.append([name, *cells])
    return aligned(rows)


def share_of_one(record: Mapping[str, Any]) -> float:
    return 100 * record["n_one"] / record["n_judged"]


def one_label_table(data: Mapping[str, DataSet]) -> str:
    """PLT - HSM where one label of each row is kept."""
    rows = [["data set", *(f"{kind.name} {metric.upper()}" for kind in KINDS for metric in METRICS)]]
    for name, records in data.items():
        cells = [_shown(records.one_label, kind.name, metric) for kind in KINDS for metric in METRICS]
        rows.append([name, *cells])
    return aligned(rows)


def _table_of_runs(data: Mapping[str, DataSet], show: Callable[[Sequence[Record]], str]) -> str:
    """What the runs of each data set, kind of nodes and link show, settings the same for both links."""
    rows = [["data set", *(f"{kind.name} {link.upper()}" for kind in KINDS for link in LINKS)]]
    for name, records in data.items():
        cells = [show(chosen(records.same, kind.name, link)) for kind in KINDS for link in LINKS]
        rows.append([name, *cells])
    return aligned(rows)


def probability_table(data: Mapping[str, DataSet]) -> str:
    """What the first label's probability says, and how often that label is right (P@1)."""

    def show(runs: Sequence[Record]) -> str:
        said = statistics.fmean(run["mean_top_probability"] for run in runs)
        return f"{said:.1f} / {statistics.fmean(run['p@1'] for run in runs):.1f}"

    return _table_of_runs(data, show)


def cost_table(data: Mapping[str, DataSet]) -> str:
    """The least CPU seconds of training."""

    def show(runs: Sequence[Record]) -> str:
        seconds = [run["cpu_seconds"] for run in runs if "cpu_seconds" in run]
        return f"{min(seconds):.1f}" if seconds else "diverged"

    return _table_of_runs(data, show)
