"""What decisions are to be good for: measures by name, mixtures of them, a precision to keep."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import ParameterError, show
from labeltree.parameter import plain
from labeltree.query import MOST_RANKS

Floats = NDArray[np.float64]
MOST_TEXT = 200  # characters of a measure
_MOST_FACTOR = 1e6
SET_GOALS = ("micro-f1", "macro-f1", "instance-f1", "hamming")
PRECISION_GOAL = "precision"
_TERM = re.compile(r"(?:(\d+(?:\.\d*)?|\.\d+)\*)?([a-z][a-z0-9-]*)(?:@(\d{1,9}))?")
_LEAST = re.compile(r"precision>=(\d*\.?\d+)")


class Counts(NamedTuple):
    """What is expected of a decision, for each label, and the numbers that measures are relative to."""

    hits: Floats  # sum of the probabilities of rows that get it
    predicted: Floats  # rows that get it
    support: Floats  # rows that have it
    inverse_propensity: Floats
    most_propensity: float  # the sum of these that the best decision for k labels would reach
    n_rows: int
    k: int

    @property
    def n_labels(self) -> int:
        return len(self.hits)


# The weight and the summand of each label: what one more row with it, of probability 1, is worth, and what
# it costs; times the number of labels.
Slopes = Callable[[Counts], tuple[Floats, Floats]]


def _precision(counts: Counts) -> tuple[Floats, Floats]:
    return np.full(counts.n_labels, counts.n_labels / (counts.n_rows * counts.k)), np.zeros(counts.n_labels)


def _psprecision(counts: Counts) -> tuple[Floats, Floats]:
    weight = counts.inverse_propensity * counts.n_labels / counts.most_propensity
    return weight, np.zeros(counts.n_labels)


def _macro_f1(counts: Counts) -> tuple[Floats, Floats]:
    """Of a row that is right there is one more that gets the label, and one more that has it."""
    whole = counts.predicted + counts.support + 2.0
    return 2.0 / whole, -2.0 * counts.hits / whole**2


def _macro_precision(counts: Counts) -> tuple[Floats, Floats]:
    whole = counts.predicted + 1.0
    return 1.0 / whole, -counts.hits / whole**2


def _macro_recall(counts: Counts) -> tuple[Floats, Floats]:
    """Of a row that is right there is one more that has the label."""
    return 1.0 / (counts.support + 1.0), np.zeros(counts.n_labels)


def _balanced(counts: Counts) -> tuple[Floats, Floats]:
    found, lost = 0.5 / (counts.support + 1.0), 0.5 / np.maximum(counts.n_rows - counts.support, 1.0)
    return found + lost, -lost


def _coverage(counts: Counts) -> tuple[Floats, Floats]:
    """That none of many rows with the label is right, of which any may turn up or not."""
    return np.exp(-counts.hits), np.zeros(counts.n_labels)


# Measures of the first k, by their keys.
RANKED_GOALS: dict[str, Slopes] = {
    "p": _precision,
    "psp": _psprecision,
    "macro-f1": _macro_f1,
    "macro-precision": _macro_precision,
    "macro-recall": _macro_recall,
    "balanced-accuracy": _balanced,
    "coverage": _coverage,
}


class Goal(NamedTuple):
    """What is to be maximised; of ``hamming`` it is the loss that is to be small."""

    text: str
    terms: tuple[tuple[float, str], ...]  # coefficients and keys
    k: int  # 0: sets of any size
    least_precision: float = 0.0  # of precision>=X

    def value(self, scores: Mapping[str, float]) -> float:
        """By the measures of some decision: the more the better."""
        return sum((-factor if key == "hamming" else factor) * scores[key] for factor, key in self.terms)

    def slopes(self, counts: Counts) -> tuple[Floats, Floats]:
        """Of the mixture."""
        parts = [(factor, RANKED_GOALS[key](counts)) for factor, key in self.terms]
        return sum(f * a for f, (a, _) in parts), sum(f * b for f, (_, b) in parts)  # type: ignore[return-value]


def parse_goal(text: str, k: Any = None) -> Goal:
    """``macro-f1``, ``psp@5``, ``0.8*p@5+0.2*macro-f1@5``, ``precision>=0.9``; ``k`` where no @ says it."""
    given = text.replace(" ", "").lower() if isinstance(text, str) else ""
    k = plain(k)
    if k is not None and (type(k) is not int or k < 1):
        raise ParameterError(f"k must be a whole number of at least 1, or None, but is {show(k)}")
    least = _LEAST.fullmatch(given)
    goal = _of_terms(text, given, k) if least is None else _of_precision(text, given, float(least[1]), k)
    if len(goal.text) > MOST_TEXT:
        raise ParameterError(f"measure {show(text)} is longer than {MOST_TEXT} characters; round its factors")
    return goal


def _of_precision(text: str, given: str, least: float, k: int | None) -> Goal:
    if k is not None or not 0.0 < least <= 1.0:
        raise ParameterError(f"measure {show(text)}: a precision is above 0 and at most 1, and has no k")
    return Goal(given, ((1.0, PRECISION_GOAL),), 0, least)


def _of_terms(text: str, given: str, k: int | None) -> Goal:
    """Of a mixture, or of one measure."""
    factors, ranks = dict[str, float](), set[int]() if k is None else {k}
    for part in given.split("+"):
        found = _TERM.fullmatch(part)
        if found is None or found[2] not in {*RANKED_GOALS, *SET_GOALS}:
            raise ParameterError(f"measure {show(text)} is not known; {_known_goals()}")
        factors[found[2]] = factors.get(found[2], 0.0) + float(found[1] or 1.0)
        ranks.add(int(found[3]) if found[3] else k or 0)
    if len(ranks) > 1 or max(ranks) > MOST_RANKS:
        beside = "" if k is None else f", but k is {k}"
        raise ParameterError(
            f"measure {show(text)}{beside}: all parts of a mixture need the same k of at most 10^6"
        )
    (rank,) = ranks
    possible = RANKED_GOALS if rank else SET_GOALS
    if any(key not in possible for key in factors) or (not rank and len(factors) > 1):
        raise ParameterError(
            f"measure {show(text)} cannot be had {'at' if rank else 'without'} k; {_known_goals()}"
        )
    if not any(factors.values()):
        raise ParameterError(f"measure {show(text)}: all its parts count 0")
    if max(factors.values()) > _MOST_FACTOR:
        raise ParameterError(f"measure {show(text)}: a factor is above {_MOST_FACTOR:g}; they are relative")
    at = f"@{rank}" if rank else ""
    said = [f"{key}{at}" if factor == 1.0 else f"{factor:g}*{key}{at}" for key, factor in factors.items()]
    return Goal("+".join(said), tuple((factor, key) for key, factor in factors.items()), rank)


def _known_goals() -> str:
    return (
        f"give {', '.join(SET_GOALS)} or precision>=0.9; or with a k, like p@5, one or a mixture of "
        f"{', '.join(RANKED_GOALS)}"
    )
