"""Accuracy against training time and against prediction time, as PNG and SVG."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import groups

FIGURES = {
    "training": ("training: CPU seconds of the process", ("train_cpu_s",)),
    "prediction": (
        "prediction of a single row: median µs (from vectors; from text where the tool takes text only)",
        ("p50_vectors_us", "p50_text_us"),
    ),
}


def plot(name: str, records: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Write the figures of one data set; the files."""
    try:
        import matplotlib
    except ImportError as error:
        raise SystemExit("--plot needs matplotlib: pip install 'labeltree[plots]'") from error
    matplotlib.use("Agg")
    # Without these the SVG changes with every run: ids are random, and it would carry the time.
    matplotlib.rcParams["svg.hashsalt"] = "labeltree"
    from matplotlib import pyplot

    written = []
    for figure_name, (title, fields) in FIGURES.items():
        points = means(records, fields)
        figure, axes = pyplot.subplots(figsize=(7.5, 4.5), constrained_layout=True)
        for tool, (x, y) in points.items():
            ours = tool.startswith("labeltree")
            axes.scatter(x, y, s=60 if ours else 36, color="tab:red" if ours else "tab:blue", zorder=3)
            axes.annotate(tool, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", xlabel=title, ylabel="P@1 (percent)", title=name)
        axes.margins(x=0.25, y=0.12)  # room for the names
        axes.grid(visible=True, which="major", alpha=0.3)
        for suffix in ("png", "svg"):
            path = folder / f"{name}-{figure_name}.{suffix}"
            metadata = {"Date": None} if suffix == "svg" else {}
            figure.savefig(path, dpi=150, metadata=metadata)
            written.append(path)
        pyplot.close(figure)
    return written


def means(records: Sequence[dict[str, Any]], fields: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Cost and P@1 of each tool with the fewest threads it was run with."""
    points: dict[str, tuple[float, float]] = {}
    for (tool, _), runs in sorted(groups(records).items()):
        field = next((field for field in fields if runs[0].get(field) is not None), None)
        if tool not in points and field is not None and "error" not in runs[0]:
            cost = statistics.mean(run[field] for run in runs)
            points[tool] = (cost, statistics.mean(run["p@1"] for run in runs))
    return points
