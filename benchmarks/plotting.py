"""Accuracy against training time and against prediction time, as PNG and SVG.

Points are numbered by P@1, and a list beside the plot says which tool has which number: names beside points
would cover each other. A line joins the tools that no other is both cheaper and at least as accurate as.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import groups, number

FIGURES = {
    "training": ("training: CPU seconds of the process", ("train_cpu_s",)),
    "prediction": (
        "prediction of a row: median µs (from text where the tool takes text only)",
        ("p50_vectors_us", "p50_text_us"),
    ),
}
OURS, PEERS, FRONT = "tab:red", "tab:blue", "tab:gray"
NUMBER_SIZE = np.array([12.0, 9.0])  # width and height of a number of two digits, in points of 1/72 inch
MARK_RADIUS = 4.5
REACHES = (9.0, 14.0, 20.0, 28.0)  # how far a number may stand from its mark, the nearest that is free first
N_DIRECTIONS = 16

Points = Mapping[str, tuple[float, float]]  # tool -> cost, P@1


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
        points = by_accuracy(means(records, fields))
        figure, axes = pyplot.subplots(figsize=(9.0, max(4.5, 1.0 + 0.17 * len(points))))
        figure.subplots_adjust(left=0.08, right=0.68, bottom=0.12, top=0.92)
        axes.set(xscale="log", xlabel=title, ylabel="P@1 (percent)", title=name)
        axes.margins(0.08)
        axes.grid(visible=True, which="major", alpha=0.3)
        draw(axes, points)
        for suffix in ("png", "svg"):
            path = folder / f"{name}-{figure_name}.{suffix}"
            metadata = {"Date": None} if suffix == "svg" else {}
            figure.savefig(path, dpi=150, metadata=metadata)
            written.append(path)
        pyplot.close(figure)
    return written


def draw(axes: Any, points: Points) -> None:
    """Marks with numbers, the front, and the list of names in the order of the numbers."""
    front = pareto_front(points)
    axes.plot(
        *zip(*(points[tool] for tool in front), strict=True),
        color=FRONT, linewidth=1.2, linestyle="--", zorder=2, label="front: none is cheaper and as accurate",
    )  # fmt: skip
    for place, (tool, (x, y)) in enumerate(points.items(), 1):
        label = f"{place}  {tool}  ({y:.1f}, {number(x)})" + "  *" * (tool in front)
        edge = "black" if tool in front else "none"
        axes.scatter(x, y, s=40, color=color_of(tool), edgecolors=edge, zorder=3, label=label)
    axes.figure.canvas.draw()  # axes get their limits, so that marks have places on the page
    to_points = 72 / axes.figure.dpi
    marks = axes.transData.transform(list(points.values())) * to_points
    offsets = place_numbers(marks)
    for place, ((tool, xy), offset) in enumerate(zip(points.items(), offsets, strict=True), 1):
        axes.annotate(
            str(place), xy, xytext=tuple(offset), textcoords="offset points", ha="center", va="center",
            fontsize=8, color=color_of(tool), zorder=4,
            arrowprops=dict(arrowstyle="-", color=FRONT, linewidth=0.5, shrinkA=4, shrinkB=3)
            if np.hypot(*offset) > REACHES[0] + 0.1 else None,
        )  # fmt: skip
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.01), fontsize=7.5, frameon=False, borderaxespad=0.0,
        handletextpad=0.3, labelspacing=0.35, title="tool  (P@1, cost); *: on the front", title_fontsize=8,
        alignment="left",
    )  # fmt: skip


def color_of(tool: str) -> str:
    return OURS if tool.startswith("labeltree") else PEERS


def by_accuracy(points: Points) -> dict[str, tuple[float, float]]:
    """Best P@1 first, of equals the cheaper one."""
    return dict(sorted(points.items(), key=lambda item: (-item[1][1], item[1][0])))


def pareto_front(points: Points) -> list[str]:
    """The tools that no other is at most as dear and at least as accurate as; the cheapest first."""
    front: list[str] = []
    for tool in sorted(points, key=lambda tool: (points[tool][0], -points[tool][1])):
        if not front or points[tool][1] > points[front[-1]][1]:
            front.append(tool)
    return front


def place_numbers(marks: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Where the number of each mark stands from it: the nearest place that covers no mark and no number.

    If all places that a number may take are covered, the one farthest from the others. Units: as of
    NUMBER_SIZE.
    """
    placed: list[NDArray[np.float64]] = []
    offsets = []
    for mark in marks:
        best, best_room = None, -np.inf
        for offset in _candidates():
            room = _room(mark + offset, marks, placed)
            if room > best_room:
                best, best_room = offset, room
            if room >= 1.0:
                break
        assert best is not None  # there is a candidate
        placed.append(mark + best)
        offsets.append(best)
    return offsets


def _candidates() -> Iterator[NDArray[np.float64]]:
    """Nearest first; above to the right first, as one is used to."""
    angles = np.pi / 4 + 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    for reach in REACHES:
        for angle in angles:
            yield reach * np.array([np.cos(angle), np.sin(angle)])


def _room(
    center: NDArray[np.float64], marks: NDArray[np.float64], placed: Sequence[NDArray[np.float64]]
) -> float:
    """How far a number is from the marks and numbers around: 1 if it just touches one, less if it covers."""
    to_marks = np.abs(marks - center) / (NUMBER_SIZE / 2 + MARK_RADIUS)
    to_numbers = np.abs(np.array(placed).reshape(-1, 2) - center) / NUMBER_SIZE
    return float(np.concatenate([to_marks, to_numbers]).max(axis=1).min())


def means(records: Sequence[dict[str, Any]], fields: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Cost and P@1 of each tool with the fewest threads it was run with."""
    points: dict[str, tuple[float, float]] = {}
    for (tool, _), runs in sorted(groups(records).items()):
        field = next((field for field in fields if runs[0].get(field) is not None), None)
        if tool not in points and field is not None and "error" not in runs[0]:
            cost = statistics.mean(run[field] for run in runs)
            points[tool] = (cost, statistics.mean(run["p@1"] for run in runs))
    return points
