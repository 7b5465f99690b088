"""The plot of growth with labels and documents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scaling.growth_page import MEASURES, fit_exponent, sweep


def draw_plot(results: Sequence[dict[str, Any]], options: argparse.Namespace, path: Path) -> None:
    """Every measure against labels and documents, log-log, as SVG; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed (pip install matplotlib)", file=sys.stderr)
        return
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
    with matplotlib.rc_context({"svg.hashsalt": "labeltree"}):
        figure.savefig(path, metadata={"Date": None})
