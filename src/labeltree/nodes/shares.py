"""How a change of scores, from those of the empty row to those of a row, becomes a change of log-probability.

A score is affine in the row: b + the sum of w_f x_f. So there is, for each score, a number by which its
change enters the change of log P, exactly; and each feature has its part, w_f x_f times this number. The
mathematics is in docs/explanations.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NEAR = 1e-6  # differences below it are taken for 0: the slope is then that of the tangent in the middle


class Shared(NamedTuple):
    """Of some nodes log P(node | parent), for the row and for the empty row; and what each score counts."""

    log_probability: list[float]  # of each node
    at_empty: list[float]
    coefficients: list[float]  # of each score: times its change, they sum to the change of all logs


class Ranges(NamedTuple):
    """Which scores are those of siblings: where each range of them starts, and where in it its node is."""

    starts: list[int]
    places: list[int]


def share_logistic(scores: Sequence[float], at_empty: Sequence[float], ranges: Ranges) -> Shared:
    """Each node by its own score: the slope of log sigmoid between the two scores."""
    logs = [log_sigmoid(score) for score in scores]
    first = [log_sigmoid(score) for score in at_empty]
    slopes = [_slope(*of_node) for of_node in zip(scores, at_empty, logs, first, strict=True)]
    return Shared(logs, first, slopes)


def _slope(score: float, first_score: float, log: float, first_log: float) -> float:
    if math.isinf(score) or math.isinf(first_score):  # a constant node, whatever the row
        return 0.0
    change = score - first_score
    if abs(change) < _NEAR:
        return math.exp(log_sigmoid(-0.5 * (score + first_score)))
    return (log - first_log) / change


def log_sigmoid(score: float) -> float:
    """-log(1 + exp(-score)), of any score."""
    if score == -math.inf:
        return score
    return min(score, 0.0) - math.log1p(math.exp(-abs(score)))


def share_softmax(scores: Sequence[float], at_empty: Sequence[float], ranges: Ranges) -> Shared:
    """Each node among its siblings.

    log P = -log Z, Z the sum of exp(d) over the siblings' leads d over the node. A change of log Z is shared
    out by logarithmic means L: dlog Z = dZ / L(Z), dZ = the sum of L(exp d) dd.
    """
    logs, first, coefficients = list[float](), list[float](), list[float]()
    ends = [*ranges.starts[1:], len(scores)]
    for start, end, place in zip(ranges.starts, ends, ranges.places, strict=True):
        siblings = np.array(scores[start:end]), np.array(at_empty[start:end])
        log, first_log, counts = _share_siblings(*siblings, place)
        logs.append(log)
        first.append(first_log)
        coefficients += counts
    return Shared(logs, first, coefficients)


def _share_siblings(
    scores: NDArray[np.float64], at_empty: NDArray[np.float64], place: int
) -> tuple[float, float, list[float]]:
    if scores[place] == -np.inf:  # never seen
        return -math.inf, -math.inf, [0.0] * len(scores)
    if scores[place] == np.inf:  # the root
        return 0.0, 0.0, [0.0] * len(scores)
    lead, first_lead = scores - scores[place], at_empty - at_empty[place]
    log_sum, first_sum = _log_sum(lead), _log_sum(first_lead)
    largest = max(log_sum, first_sum)
    means = log_mean(lead - largest, first_lead - largest)
    of_sum = log_mean(np.array([log_sum - largest]), np.array([first_sum - largest]))[0]
    coefficients = -means / of_sum
    # The node's own score is in every lead.
    coefficients[place] = 0.0
    coefficients[place] = -coefficients.sum()
    return -log_sum, -first_sum, coefficients.tolist()


def _log_sum(logs: NDArray[np.float64]) -> float:
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def log_mean(log_a: NDArray[np.float64], log_b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithmic means (a - b) / (log a - log b) of numbers, given by their logarithms; 0 of 0 and 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.where(log_a == log_b, 0.0, log_a - log_b)
        means = np.exp(log_b) * np.expm1(change) / change
        # From the larger side: the other way round exp could overflow, and 0 times infinity is no number.
        down = np.exp(log_a) * np.expm1(-change) / -change
        middle = np.exp(0.5 * (log_a + log_b))
    return np.where(np.abs(change) < _NEAR, middle, np.where(change > 0, down, means))
