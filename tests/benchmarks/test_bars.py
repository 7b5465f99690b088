"""The bars of `python -m benchmarks.bars`: which ways of training it measures, and how it judges them."""

from __future__ import annotations

import pytest

from benchmarks.bars import judged, judged_cost
from benchmarks.forest_bars import compared
from benchmarks.ways import USUAL, Way, ways

COOKING, DEBTAGS = "cooking-stackexchange", "debian-debtags"


@pytest.mark.parametrize(
    ("way", "options"),
    [
        (Way("default"), ()),
        (Way("default", "dense"), ("--nodes", "dense")),
        (Way("best"), ("--preset", "best")),
        (Way("fast", "both"), ("--preset", "fast", "--nodes", "both")),
    ],
    ids=str,
)
def test_options_of_a_way(way: Way, options: tuple[str, ...]) -> None:
    assert way.options == options


def test_presets_with_kinds_of_nodes() -> None:
    assert ways(None, None) == USUAL
    assert ways(["fast", "best"], None) == (Way("fast"), Way("best"))
    assert ways(None, ["dense", "both"]) == (Way("fast", "dense"), Way("fast", "both"))
    assert ways(["default"], ["dense"]) == (Way("default", "dense"),)


def test_presets_have_bars_of_their_own() -> None:
    assert Way("default").accuracy_bar(DEBTAGS) == (87.0, 62.9, 47.8)
    assert Way("best").accuracy_bar(DEBTAGS) == (87.8, 63.3, 48.2)
    assert (
        Way("fast", "dense").accuracy_bar(DEBTAGS) == Way("fast").accuracy_bar(DEBTAGS) == (81.5, 59.8, 45.3)
    )
    assert Way("fast").accuracy_bar(COOKING) is None
    assert Way("default", "dense").accuracy_bar(DEBTAGS) is None  # what the bar is about has other nodes
    assert [way.calibration_bar for way in (Way("default"), Way("best"), Way("fast"))] == [0.015, 0.015, None]
    assert [way.cpu_bar(DEBTAGS) for way in (Way("default"), Way("fast", "dense"))] == [None, 15.0]


@pytest.mark.parametrize(
    ("p1", "error", "expected"),
    [(0.736, 0.0149, ["reached", "reached"]), (0.735, 0.0151, ["MISSED", "MISSED"])],
)
def test_means_over_seeds_are_judged(p1: float, error: float, expected: list[str]) -> None:
    tested = [{"p@1": p1 + step, "p@3": 0.464, "p@5": 0.317, "ece@5": error} for step in (-0.01, 0.01)]
    text = judged(tested, Way("default"), COOKING)
    assert text.startswith(f"P@1 {100 * p1:.2f} [{100 * p1 - 1:.2f}..{100 * p1 + 1:.2f}]  P@3 46.40 ")
    assert [part.split()[0] for part in text.split(": ")[1:]] == expected
    assert f"ECE@5 {error:.4f}" in text


def test_what_has_no_bar_is_only_shown() -> None:
    text = judged([{"p@1": 0.1, "p@3": 0.1, "p@5": 0.1, "ece@5": 0.5}], Way("fast"), COOKING)
    assert text.endswith("P@5 10.00 [10.00..10.00]  ECE@5 0.5000")


def test_cpu_time_is_the_least_of_all_seeds() -> None:
    assert judged_cost([61.0, 59.5], Way("fastxml"), DEBTAGS) == "CPU 59.5 s  bar 60 s: reached"
    assert judged_cost([61.0, 62.5], Way("fastxml"), DEBTAGS) == "CPU 61.0 s  bar 60 s: MISSED"
    assert judged_cost([61.0], Way("fastxml"), COOKING) == "CPU 61.0 s"


@pytest.mark.parametrize(("p5", "expected"), [(0.5, "reached"), (0.4991, "reached"), (0.4988, "MISSED")])
def test_a_forest_may_not_make_anything_worse(p5: float, expected: str) -> None:
    without = [{"p@1": 0.7, "p@3": 0.6, "p@5": 0.5}] * 2
    text = compared([{"p@1": 0.8, "p@3": 0.6, "p@5": p5}] * 2, without)
    assert text.endswith(f"bar -0.1: {expected}")
    assert "gain +10.00 / +0.00 / " in text
    assert "bar 80.1/60/50: MISSED  without" in compared(without, without, (80.1, 60, 50))
