"""The section of growth on the page: tables, fitted exponents, bars, and the log-log plot."""

from __future__ import annotations

import argparse
import operator
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.scaling.steps import AUTO, BEAM, EXACT, SEARCHES
from labeltree.trees.profiles import ENTRIES_PER_LABEL

BAR = 3.0  # prediction at 10^6 labels against that at 10^4
NEAR = 0.1  # points of P@k that a search with a budget may differ from the exact one
PREDICTED = (
    "load_seconds",
    *(
        f"{search.prefix}{name}"
        for search in SEARCHES
        for name in (
            "batch_microseconds",
            "single_microseconds",
            "single_microseconds_p99",
            "p@1",
            "p@3",
            "p@5",
        )
    ),
)  # what a round of prediction measures
SHOWN_OPTIONS = (
    "labels", "documents", "fixed_labels", "fixed_documents", "features", "nodes", "dim", "epochs", "threads",
    "seed", "rounds",
)  # fmt: skip


SWEPT = ("labels", "documents", "fixed_labels", "fixed_documents")  # the options that say what was varied

_MEMORY_OF = {
    "dense": "Parameters are those of the model, a byte per number. Training has them in 32 bits, with one "
    "number of Adagrad for each vector, and at its end in both forms: about 5 times the parameters are "
    "expected. What is above that are a copy of the rows, the buffers of a mini-batch and, while the tree is "
    f"built, the profiles of labels: each up to {ENTRIES_PER_LABEL} entries of 8 bytes, for a moment twice.",
    "sparse": "Parameters are the weights that survive pruning, about four bytes each. What is above them "
    "are a copy of the rows, the rows of each node and, while the tree is built, the profiles of labels: "
    f"each up to {ENTRIES_PER_LABEL} entries of 8 bytes, for a moment twice.",
}


class Measure(NamedTuple):
    title: str
    unit: str
    take: Callable[[dict[str, Any]], float]  # from a run
    panel: str  # of the plot: measures of one panel are its lines


MEASURES = (
    Measure("training", "CPU s", lambda run: run["train_cpu_seconds"], "training"),
    Measure("peak memory", "MB", lambda run: used_bytes(run) / 1e6, "peak memory"),
    Measure("model file", "MB", lambda run: run["model_bytes"] / 1e6, "model file"),
    *(
        Measure(
            f"{what}{search.title}",
            unit,
            operator.itemgetter(f"{search.prefix}{field}_microseconds"),
            f"prediction, {what}",
        )
        for what, unit, field in (("batch", "µs/row", "batch"), ("single row", "µs", "single"))
        for search in SEARCHES
    ),
)


def used_bytes(run: dict[str, Any]) -> int:
    """The memory peak of training without that of the process before it had any data."""
    return run["train_peak_bytes"] - run["idle_bytes"]


def beyond_bytes(run: dict[str, Any]) -> int:
    """What training needed besides its data."""
    return used_bytes(run) - run["data_bytes"]


def summarize(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each run as its training with the medians of its rounds of prediction, and their least and most."""
    results = []
    for trained in records:
        if trained["step"] != "train":
            continue
        names = ("shape", "nodes", "parameters", "threads", "seed", "n_test", "beam")
        planned = {name: trained[name] for name in names}
        rounds = [
            record for record in records
            if record["step"] == "predict" and planned.items() <= record.items()
        ]  # fmt: skip
        measured = {name: [record[name] for record in rounds] for name in PREDICTED}
        medians = {name: statistics.median(values) for name, values in measured.items()}
        spread = {name: (min(values), max(values)) for name, values in measured.items()}
        results.append({**trained, **medians, "spread": spread, "n_rounds": len(rounds)})
    return results


def describe_command(options: argparse.Namespace, defaults: argparse.Namespace) -> str:
    """The command whose options give these results; folders of the machine are left out."""
    words = ["python -m benchmarks.scaling"] + ["--quick"] * options.quick
    for name in SHOWN_OPTIONS:
        value = getattr(options, name)
        if value != getattr(defaults, name):
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"--{name.replace('_', '-')} {text}")
    return " ".join(words)


def sweep(results: Sequence[dict[str, Any]], options: argparse.Namespace, axis: str) -> list[dict[str, Any]]:
    """The runs in which only ``axis`` (labels, documents) varies, in its order."""
    other = "documents" if axis == "labels" else "labels"
    fixed = getattr(options, f"fixed_{other}")
    chosen = [run for run in results if run["shape"][f"n_{other}"] == fixed]
    return sorted(chosen, key=lambda run: run["shape"][f"n_{axis}"])


def fit_exponent(sizes: Sequence[float], measured: Sequence[float]) -> float:
    """The b of ``measured = a * sizes ** b``, by least squares of the logarithms; NaN where none fits."""
    if len(set(sizes)) < 2 or min(measured) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(measured), 1)[0])


def write_section(
    results: Sequence[dict[str, Any]], options: argparse.Namespace, picture: Path | None, command: str
) -> list[str]:
    """Of the runs of one kind of nodes; the picture's path is as seen from the page."""
    first = results[0]
    shape = first["shape"]
    lines = [
        f"## Growth of {first['nodes']} nodes",
        "",
        f"Printed by `{command}`: {shape['n_features']:,} features, {shape['labels_per_document']} labels "
        f"and {shape['features_per_document']} words per document (the last an assumption). Parameters: "
        f"`--preset fast --nodes {first['nodes']}`, else {first['parameters'] or 'the defaults'}.",
        "",
        f"{first['machine']}; {first['cpus']} CPUs could be used. Training on {first['threads'] or 'all'} "
        f"threads, once; prediction on one (k=5), by each search (a beam of {BEAM}), in "
        f"{first['n_rounds']} rounds over all sizes: medians and [least..most] of the rounds. Training is "
        "without generating; peak memory includes the data and leaves out the process before it had any. The "
        "load is that of the machine when training began: wall times of a busy one are too long. Source "
        f"{first['fingerprint']}.",
    ]
    for axis in ("labels", "documents"):
        runs = sweep(results, options, axis)
        if len(runs) > 1:
            lines += ["", f"### {first['nodes'].capitalize()}: growing {axis}", "", *table(runs, axis)]
    lines += ["", *bars(sweep(results, options, "labels"))]
    if picture is not None:
        lines += ["", f"![Growth with labels and documents]({picture})"]
    return lines


def table(runs: Sequence[dict[str, Any]], axis: str) -> list[str]:
    titles = (
        axis, "train CPU s (wall)", "of it tree", "peak MB (up to the tree)", "data MB", "model MB",
        "(peak - data) / parameters",
        *(f"batch µs/row{search.title}" for search in SEARCHES),
        *(f"single µs{search.title} (p99)" for search in SEARCHES),
        "load s", *(f"P@1/3/5{search.title}" for search in SEARCHES), "tree depth", "load average",
    )  # fmt: skip
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(_cells(run, axis)) + " |" for run in runs]
    sizes = [run["shape"][f"n_{axis}"] for run in runs]
    fitted = [
        f"{measure.title} {fit_exponent(sizes, [measure.take(run) for run in runs]):.2f}"
        for measure in MEASURES
    ]
    return [*lines, "", f"Fitted exponents (measure ~ {axis} ^ exponent): {', '.join(fitted)}."]


def _cells(run: dict[str, Any], axis: str) -> tuple[str, ...]:
    prefixes = [search.prefix for search in SEARCHES]
    tree = run["stages"]["tree"]
    return (
        f"{run['shape'][f'n_{axis}']:,}",
        f"{run['train_cpu_seconds']:.1f} ({run['train_wall_seconds']:.1f})",
        f"{tree['cpu']:.1f}",
        f"{used_bytes(run) / 1e6:.0f} ({(tree['peak_bytes'] - run['idle_bytes']) / 1e6:.0f})",
        f"{run['data_bytes'] / 1e6:.0f}",
        f"{run['model_bytes'] / 1e6:.0f}",
        f"{beyond_bytes(run) / run['parameter_bytes']:.1f}",
        *(_with_spread(run, f"{prefix}batch_microseconds", 1) for prefix in prefixes),
        *(
            f"{_with_spread(run, f'{prefix}single_microseconds', 0)} "
            f"({run[f'{prefix}single_microseconds_p99']:.0f})"
            for prefix in prefixes
        ),
        f"{run['load_seconds']:.2f}",
        *("/".join(f"{100 * run[f'{prefix}p@{k}']:.1f}" for k in (1, 3, 5)) for prefix in prefixes),
        f"{run['depth_mean']:.1f}",
        f"{run['load_average']:.1f}",
    )


def _with_spread(run: dict[str, Any], field: str, digits: int) -> str:
    least, most = run["spread"][field]
    return f"{run[field]:.{digits}f} [{least:.{digits}f}..{most:.{digits}f}]"


def bars(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Prediction and memory with many labels against those with few."""
    found = {run["shape"]["n_labels"]: run for run in runs}
    if not {10**4, 10**6} <= found.keys():
        return ["(The bars compare 10^6 labels with 10^4; this run does not have both.)"]
    lines = ["### Bars", "", "10^6 labels train and predict on this machine: reached.", ""]
    return [*lines, *prediction_bars(runs, found), "", *memory_bars(runs, found)]


def prediction_bars(runs: Sequence[dict[str, Any]], found: dict[int, dict[str, Any]]) -> list[str]:
    """For each search, by the medians; and why the exact one misses where it does."""
    few, many = found[10**4], found[10**6]
    decades = np.log10([run["shape"]["n_labels"] for run in runs])
    lines, is_exact_missed = [], False
    for what in ("batch", "single"):
        for search in SEARCHES:
            field = f"{search.prefix}{what}_microseconds"
            per_decade = np.polyfit(decades, [run[field] for run in runs], 1)[0]
            ratio = many[field] / few[field]
            is_exact_missed |= search == EXACT and ratio > BAR
            name = search.title.strip() or search.name
            lines.append(
                f"- prediction ({what}, {name}) at 10^6 labels / at 10^4: {ratio:.2f}, bar {BAR:g}: "
                f"{verdict(ratio <= BAR)} ({per_decade:+.1f} µs per tenfold labels)"
            )
    if AUTO in SEARCHES:
        lines.append(near_bar(runs))
    if is_exact_missed:
        shape = many["shape"]
        n_examples = shape["n_documents"] * shape["labels_per_document"] / shape["n_labels"]
        lines += [
            "",
            "Exact search must open every node that is more probable than the k-th label. With "
            f"{n_examples:.1f} examples per label the model is unsure (P@1 {100 * many['p@1']:.1f} at 10^6 "
            f"labels, {100 * few['p@1']:.1f} at 10^4), so that many nodes are; a beam opens at most {BEAM} "
            "nodes of each level.",
        ]
    return lines


def near_bar(runs: Sequence[dict[str, Any]]) -> str:
    """How far the search with a budget is from the exact one at any size."""
    apart = [[100 * (run[f"{AUTO.prefix}p@{k}"] - run[f"p@{k}"]) for run in runs] for k in (1, 3, 5)]
    most = [max(differences, key=abs) for differences in apart]
    shown = "/".join(f"{difference:+.2f}" for difference in most)
    is_near = all(abs(difference) <= NEAR for difference in most)
    return f"- P@1/3/5 of auto against exact, most over all sizes: {shown}, bar {NEAR}: {verdict(is_near)}"


def memory_bars(runs: Sequence[dict[str, Any]], found: dict[int, dict[str, Any]]) -> list[str]:
    """Memory beyond the data may not grow faster than the model's parameters."""
    many = found[10**6]
    lines = []
    for exponent in (4, 5):
        few = found.get(10**exponent)
        if few is None:
            continue
        grown = beyond_bytes(many) / beyond_bytes(few)
        allowed = many["parameter_bytes"] / few["parameter_bytes"]
        lines.append(
            f"- memory beyond the data at 10^6 labels / at 10^{exponent}: {grown:.2f}, bar {allowed:.2f} "
            f"(the ratio of the parameters): {verdict(grown <= allowed)}"
        )
    fitted = fit_exponent([run["parameter_bytes"] for run in runs], [beyond_bytes(run) for run in runs])
    text = f"Memory beyond the data ~ parameters ^ {fitted:.2f} (fitted over all sizes)."
    return [*lines, "", f"{text} {_MEMORY_OF[many['nodes']]}".rstrip()]


def verdict(is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"
