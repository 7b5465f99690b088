"""Log-odds that are bent at whole numbers, as those of an average of several experts are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bent(log_odds: Array, values: Sequence[float]) -> Array:
    """Log-odds whose whole numbers around 0, as many as there are values, become these.

    Between them on a line, beyond them as far off as the last ones are.
    """
    if not len(values):
        return log_odds
    points = _points(len(values))
    beyond = np.maximum(log_odds - points[-1], 0.0) + np.minimum(log_odds - points[0], 0.0)
    return np.interp(log_odds, points, values) + beyond


def bend_loss(values: Sequence[float], log_odds: Array, is_right: NDArray[np.bool_]) -> float:
    """What fitted values minimise: -log-likelihood, and 5/2 of squares: how far each is from "no change", and
    how much that differs from one to the next."""
    found = bent(log_odds, values)
    changes = np.asarray(values) - _points(len(values))
    prior = 2.5 * (changes**2).sum() + 2.5 * (np.diff(changes) ** 2).sum()
    return float(np.logaddexp(0.0, np.where(is_right, -found, found)).sum() + prior)


def _points(n: int) -> Array:
    return np.arange(n, dtype=np.float64) - (n - 1) / 2
