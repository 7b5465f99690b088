"""Figures of accuracy against cost: what is on the front, and that numbers can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.plotting import MARK_RADIUS, NUMBER_SIZE, by_accuracy, pareto_front, place_numbers, plot


def test_the_front_has_the_tools_that_none_beats() -> None:
    points = {"slow": (9.0, 80.0), "best": (3.0, 90.0), "cheap": (1.0, 70.0), "beaten": (2.0, 65.0)}
    assert pareto_front(points) == ["cheap", "best"]
    assert pareto_front({"a": (1.0, 70.0), "b": (1.0, 80.0)}) == ["b"]


def test_numbers_go_by_accuracy_then_by_cost() -> None:
    points = {"c": (1.0, 70.0), "b": (2.0, 80.0), "a": (1.0, 80.0)}
    assert list(by_accuracy(points)) == ["a", "b", "c"]


def test_numbers_cover_neither_marks_nor_each_other() -> None:
    marks = np.array([[0.0, 0.0], [2.0, 1.0], [4.0, -1.0], [6.0, 3.0], [100.0, 100.0]])
    centers = marks + np.array(place_numbers(marks))
    for i, center in enumerate(centers):
        apart = np.abs(marks - center) / (NUMBER_SIZE / 2 + MARK_RADIUS)
        assert apart.max(axis=1).min() >= 1.0
        others = np.abs(np.delete(centers, i, axis=0) - center) / NUMBER_SIZE
        assert others.max(axis=1).min() >= 1.0


def test_crowded_numbers_are_placed_all_the_same() -> None:
    assert len(place_numbers(np.zeros((200, 2)))) == 200


def test_both_figures_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = [
        {"tool": tool, "threads": 1, "p@1": p_1, "train_cpu_s": cost, "p50_vectors_us": cost}
        for tool, p_1, cost in (("labeltree", 80.0, 1.0), ("other", 70.0, 2.0))
    ]
    written = {path.name for path in plot("some", runs, tmp_path)}
    assert written == {
        f"some-{what}.{suffix}" for what in ("training", "prediction") for suffix in ("png", "svg")
    }
