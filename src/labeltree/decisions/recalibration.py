"""How often labels of a probability are right, by how many training rows they have.

A model's probabilities are calibrated for the few best labels of a row. Rules weigh up labels that come later
too, and rare labels with frequent ones; there probabilities of 0.01 are often five times too high, and those
of frequent labels too high where those of rare ones are too low. So what rules are fitted to is how often
labels are right on the rows at hand: by a logistic model of a dozen numbers, of the bent log-odds and the
number of training rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.decisions.judged import Judged
from labeltree.experts.likelihood import Prior, most_likely

KNOTS = np.array([-6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.5, 3.0])  # log-odds at which it is bent
_MIDDLE = 3.0  # log of the rows of a label for which the number of rows changes nothing
_WIDTH = 0.1  # of the log-odds that count as the same while it is fitted
_LEAST, _MOST = -12.0, 12.0  # log-odds
_LEAST_SLOPE, _LEAST_SLOPE_OF_LINE = 0.05, 0.01
_PRECISION = 5.0  # of slopes around 1, of the influence of rows around 0
_PRECISION_OF_LEVEL = 0.1
N_GROUPS = 31  # of labels by their number of training rows
_LEAST_PROBABILITY = 0.02  # lower ones are next to nothing, and do not count for the straight line
_ROWS_OF_ALL = 500.0  # that all labels count for in the line of each group, in parts of a pair's weight


class Recalibration(NamedTuple):
    """The log-odds of being right, from those of the probability and the logarithm of training rows."""

    values: NDArray[np.float64]  # at KNOTS; between them it is a line, beyond them as far off as there
    of_rows: float  # for each unit of the logarithm of rows ...
    of_both: float  # ... and times the log-odds

    def log_odds(self, probabilities: NDArray, counts: NDArray) -> NDArray[np.float64]:
        """Of being right."""
        return self.changed(_log_odds_of(probabilities), _rareness(counts))

    def changed(self, log_odds: NDArray[np.float64], rareness: NDArray[np.float64]) -> NDArray[np.float64]:
        beyond = log_odds - np.clip(log_odds, KNOTS[0], KNOTS[-1])
        bent = np.interp(log_odds, KNOTS, self.values) + beyond
        return bent + rareness * (self.of_rows + self.of_both * np.clip(log_odds, KNOTS[0], KNOTS[-1]))

    def probability_where(self, wanted: NDArray[np.float64], counts: NDArray) -> NDArray[np.float64]:
        """The probabilities from which on labels are right with these log-odds; by halving."""
        low, high = np.full(len(wanted), _LEAST), np.full(len(wanted), _MOST)
        rareness = _rareness(counts)
        for _ in range(40):
            middle = 0.5 * (low + high)
            is_low = self.changed(middle, rareness) < wanted
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return sigmoid(high)


def recalibrate(rows: Judged) -> Recalibration:
    """Fitted to what is right among the rows' most probable labels."""
    is_label = rows.ids >= 0
    log_odds = _log_odds_of(rows.probabilities[is_label])
    groups = group_labels(rows.label_counts)[rows.ids[is_label]]
    rareness = _rareness(rows.label_counts)[rows.ids[is_label]]
    # Pairs that are nearly the same are one: so the numbers are found in no time.
    places = np.round((log_odds - _LEAST) / _WIDTH).astype(np.int64) * N_GROUPS + groups
    distinct, cells = np.unique(places, return_inverse=True)
    n = np.bincount(cells, minlength=len(distinct))
    hits = np.bincount(cells, rows.hits[is_label], len(distinct))
    mean = [np.bincount(cells, each, len(distinct)) / np.maximum(n, 1) for each in (log_odds, rareness)]
    features, offset = _features(*mean)
    prior = _prior()
    is_right = np.repeat([True, False], len(distinct))
    weight = np.concatenate([hits, n - hits])
    numbers = most_likely(np.tile(features, 2), np.tile(offset, 2), is_right, weight, prior)
    n_slopes = len(KNOTS) - 1
    values = numbers[0] + np.concatenate([[0.0], np.cumsum(numbers[1 : n_slopes + 1] * np.diff(KNOTS))])
    return Recalibration(values, float(numbers[-2]), float(numbers[-1]))


def straight_lines(
    rows: Judged, shares: NDArray[np.float64], through_zero: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n_labels,) slopes and intercepts of how often labels are right, as a line over the probability.

    ``shares`` (n_rows, n) are how often labels of the rows are right. Lines are fitted to groups of labels
    by least squares, where low probabilities, which are many, count for more; and drawn to that of all. None
    is above 0 at a probability of 0, or labels that are not among the candidates would be worth something.
    """
    is_used = (rows.ids >= 0) & (rows.probabilities >= _LEAST_PROBABILITY)
    p, share = rows.probabilities[is_used].astype(np.float64), shares[is_used]
    groups = group_labels(rows.label_counts)[rows.ids[is_used]]
    moments = np.stack(
        [np.bincount(groups, each, N_GROUPS) for each in (1.0 / p, np.ones_like(p), p, share / p, share)]
    )
    total = moments.sum(axis=1, keepdims=True)
    moments += _ROWS_OF_ALL * total / max(float(total[0, 0]), 1e-9)
    n, sum_p, sum_squares, sum_share, products = moments
    determinant = n * sum_squares - sum_p**2
    is_line = determinant > 1e-9 * np.maximum(n * sum_squares, 1e-300)
    safe = np.where(is_line, determinant, 1.0)
    slope = np.where(is_line, (n * products - sum_p * sum_share) / safe, 1.0)
    slope = np.maximum(slope, _LEAST_SLOPE_OF_LINE)
    intercept = np.where(n > 0.0, (sum_share - slope * sum_p) / np.maximum(n, 1e-300), 0.0)
    is_above = (intercept > 0.0) | through_zero
    proportion = np.where(n > 0.0, products / np.maximum(sum_squares, 1e-300), 1.0)
    proportion = np.maximum(proportion, _LEAST_SLOPE_OF_LINE)
    slope, intercept = np.where(is_above, proportion, slope), np.where(is_above, 0.0, intercept)
    own = group_labels(rows.final_counts)
    return slope[own], intercept[own]


def group_labels(counts: NDArray) -> NDArray[np.int64]:
    """Labels of about as many training rows are of one group."""
    return np.minimum(np.floor(2.0 * np.log2(counts + 1.0)).astype(np.int64), N_GROUPS - 1)


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1.0 / (1.0 + np.exp(-log_odds))


def _log_odds_of(probabilities: NDArray) -> NDArray[np.float64]:
    p = np.clip(probabilities.astype(np.float64), sigmoid(np.array(_LEAST)), sigmoid(np.array(_MOST)))
    return np.log(p) - np.log1p(-p)


def _rareness(counts: NDArray) -> NDArray[np.float64]:
    return np.log(counts + 1.0) - _MIDDLE


def _features(
    log_odds: NDArray[np.float64], rareness: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of the numbers: the first value, the slopes between knots, what rows say; and what is given."""
    parts = [np.clip(log_odds - first, 0.0, step) for first, step in zip(KNOTS, np.diff(KNOTS), strict=False)]
    inside = np.clip(log_odds, KNOTS[0], KNOTS[-1])
    features = np.stack([np.ones_like(log_odds), *parts, rareness, rareness * inside])
    return features, log_odds - inside


def _prior() -> Prior:
    n_slopes = len(KNOTS) - 1
    mean = np.concatenate([KNOTS[:1], np.ones(n_slopes), [0.0, 0.0]])
    precision = np.diag([_PRECISION_OF_LEVEL, *[_PRECISION] * (n_slopes + 2)])
    least = np.concatenate([[-np.inf], np.full(n_slopes, _LEAST_SLOPE), [-np.inf, -np.inf]])
    return Prior(mean, precision, least)
