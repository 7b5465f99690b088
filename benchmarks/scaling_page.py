"""The page of `python -m benchmarks.scaling`: tables, fitted exponents, bars, and the log-log plot."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.generate import PUBLISHED

BAR = 3.0  # prediction at 10^6 labels against that at 10^4
BEAM = 10  # width of the beam search that is measured beside the exact one
SEARCHES = {"exact": "", "beam": "beam_"}  # search -> what its fields begin with


class Measure(NamedTuple):
    title: str
    unit: str
    take: Callable[[dict[str, Any]], float]  # from a run
    panel: str  # of the plot: measures of one panel are its lines


MEASURES = (
    Measure("training", "CPU s", lambda run: run["train_cpu_seconds"], "training"),
    Measure("peak memory", "MB", lambda run: used_bytes(run) / 1e6, "peak memory"),
    Measure("model file", "MB", lambda run: run["model_bytes"] / 1e6, "model file"),
    Measure("batch", "µs/row", lambda run: run["batch_microseconds"], "prediction, batch"),
    Measure(f"batch beam {BEAM}", "µs/row", lambda run: run["beam_batch_microseconds"], "prediction, batch"),
    Measure("single row", "µs", lambda run: run["single_microseconds"], "prediction, single row"),
    Measure(
        f"single row beam {BEAM}", "µs", lambda run: run["beam_single_microseconds"], "prediction, single row"
    ),
)


def used_bytes(run: dict[str, Any]) -> int:
    """The memory peak of training without that of the process before it had any data."""
    return run["train_peak_bytes"] - run["idle_bytes"]


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


def write_page(results: Sequence[dict[str, Any]], options: argparse.Namespace, pictures: list[Path]) -> str:
    amazon, given = PUBLISHED["Amazon-670K"], results[0]["parameters"]
    command = "python -m benchmarks.scaling" + " --quick" * options.quick
    lines = [
        "# Scaling",
        "",
        f"Printed by `{command}`: generated data (`benchmarks/generate.py`), {options.features:,} features, "
        f"{amazon.labels_per_document} labels and {amazon.features_per_document} words per document, "
        f"power-law labels. Parameters: {given or 'the defaults'}.",
        "",
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}. Training on "
        f"{options.threads or 'all'} threads, prediction on one (k=5), by exact search and by a beam of "
        f"{BEAM}. Training is without generating; peak memory includes the data and leaves out the process "
        "before it had any. The load is that of the machine when the run began: wall times of a busy one are "
        "too long.",
    ]
    for axis in ("labels", "documents"):
        lines += ["", f"## Growing {axis}", "", *table(sweep(results, options, axis), axis)]
    lines += ["", *bars(sweep(results, options, "labels"))]
    for picture in pictures:
        if picture.suffix == ".svg":
            lines += ["", f"![Growth with labels and documents]({picture.name})"]
    return "\n".join(lines) + "\n"


def table(runs: Sequence[dict[str, Any]], axis: str) -> list[str]:
    titles = (
        axis, "train CPU s (wall)", "of it tree", "peak MB", "data MB", "model MB", "peak / (data + model)",
        "batch µs/row", f"batch µs/row beam {BEAM}", "single µs (p99)", f"single µs beam {BEAM}", "load s",
        "P@1/3/5", f"P@1/3/5 beam {BEAM}", "tree depth", "load average",
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
    precisions = {
        prefix: "/".join(f"{100 * run[f'{prefix}p@{k}']:.1f}" for k in (1, 3, 5))
        for prefix in SEARCHES.values()
    }
    return (
        f"{run['shape'][f'n_{axis}']:,}",
        f"{run['train_cpu_seconds']:.1f} ({run['train_wall_seconds']:.1f})",
        f"{run['stages']['tree']['cpu']:.1f}",
        f"{used_bytes(run) / 1e6:.0f}",
        f"{run['data_bytes'] / 1e6:.0f}",
        f"{run['model_bytes'] / 1e6:.0f}",
        f"{used_bytes(run) / (run['data_bytes'] + run['model_bytes']):.2f}",
        f"{run['batch_microseconds']:.1f}",
        f"{run['beam_batch_microseconds']:.1f}",
        f"{run['single_microseconds']:.0f} ({run['single_microseconds_p99']:.0f})",
        f"{run['beam_single_microseconds']:.0f} ({run['beam_single_microseconds_p99']:.0f})",
        f"{run['load_seconds']:.2f}",
        precisions[""],
        precisions["beam_"],
        f"{run['depth_mean']:.1f}",
        f"{run['load_average']:.1f}",
    )


def bars(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Prediction with many labels against that with few, for each search."""
    found = {run["shape"]["n_labels"]: run for run in runs}
    if not {10**4, 10**6} <= found.keys():
        return ["(The bars compare 10^6 labels with 10^4; this run does not have both.)"]
    few, many = found[10**4], found[10**6]
    lines = ["## Bars", "", "10^6 labels train and predict on this machine: reached.", ""]
    decades = np.log10([run["shape"]["n_labels"] for run in runs])
    for what in ("batch", "single"):
        for search, prefix in SEARCHES.items():
            field = f"{prefix}{what}_microseconds"
            per_decade = np.polyfit(decades, [run[field] for run in runs], 1)[0]
            ratio = many[field] / few[field]
            verdict = "reached" if ratio <= BAR else "MISSED"
            name = f"beam {BEAM}" if search == "beam" else search
            lines.append(
                f"- prediction ({what}, {name}) at 10^6 labels / at 10^4: {ratio:.2f}, bar {BAR:g}: "
                f"{verdict} ({per_decade:+.1f} µs per tenfold labels)"
            )
    return lines


def draw_plot(results: Sequence[dict[str, Any]], options: argparse.Namespace, stem: Path) -> list[Path]:
    """Every measure against labels and documents, log-log, as PNG and SVG; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed (pip install matplotlib)", file=sys.stderr)
        return []
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(measure.panel for measure in MEASURES))
    figure = Figure(figsize=(4 * len(names), 7.5), layout="constrained")
    panels = figure.subplots(2, len(names), squeeze=False)
    for axis, row in zip(("labels", "documents"), panels, strict=True):
        runs = sweep(results, options, axis)
        sizes = [run["shape"][f"n_{axis}"] for run in runs]
        for measure in MEASURES:
            panel = row[names.index(measure.panel)]
            measured = [measure.take(run) for run in runs]
            exponent = f"exponent {fit_exponent(sizes, measured):.2f}"
            panel.loglog(sizes, measured, "o-", label=f"{measure.title}: {exponent}")
            panel.set(xlabel=axis, ylabel=measure.unit, title=measure.panel)
        for panel in row:
            panel.grid(which="both", alpha=0.3)
            panel.legend(fontsize=8)
    # Without these the SVG changes with every run: ids are random, and it would carry the time.
    pictures = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    with matplotlib.rc_context({"svg.hashsalt": "labeltree"}):
        for picture in pictures:
            figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else {})
    return pictures
