"""Probabilities that can be taken at their word: a fitted map from a label's log-odds to better ones.

Along a path the conditional probabilities are estimated one by one, each from its own score, but the scores
of a path know of each other: a label with a strong word is often right where its parent, which speaks for
many labels, was doubtful. So products of well calibrated conditionals are not calibrated themselves, and the
map is fitted to the products: on rows that were held out at first, for the labels that a search finds.

The map is a part of the nodes' parameters; a search applies it to what it has found (``probability_of`` of
:mod:`labeltree.kernels.search.sparse`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.combination import equal_weights
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Expert
from labeltree.experts.held_out import HeldOut
from labeltree.parallel import Pool
from labeltree.query import make_query

LABELS_PER_ROW = 5
_PRIOR = 1.0  # of a normal distribution around "no change": its inverse variance
_LEAST_SLOPE = 0.05  # the order of labels must stay
_STEPS = 50
_NO_CHANGE = np.array([1.0, 1.0, 0.0])


def map_of_rows(expert: Expert, held_out: HeldOut, pool: Pool) -> NDArray[np.float64]:
    """The map that suits an expert which was trained without the held-out rows."""
    k = min(LABELS_PER_ROW, expert.n_labels)
    alone = Ensemble([expert], equal_weights(1))
    ids, probabilities, _ = best_of_rows(alone, held_out.X, make_query(k), pool.threads)
    return map_of_found(ids, probabilities, held_out)


def map_of_found(
    ids: NDArray[np.int32], probabilities: NDArray[Any], held_out: HeldOut
) -> NDArray[np.float64]:
    """The map that suits what was found, ids and probabilities (n_rows, k), for the held-out rows."""
    is_label = ids >= 0
    rows = np.broadcast_to(np.arange(len(ids))[:, None], ids.shape)[is_label]
    # The weights of the training, or the map would undo what they changed.
    return fit_map(probabilities[is_label], held_out.are_right(ids[is_label], rows), held_out.weight[rows])


def fit_map(
    probabilities: NDArray[Any], is_right: NDArray[np.bool_], weight: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The most likely a, b, c of sigmoid(a log p - b log(1 - p) + c) with a, b > 0 (beta calibration).

    Newton's method, steps halved until they gain: from "no change" a full one may lead far astray. A factor
    at its bound is held there while it would fall below.
    """
    p = np.clip(probabilities.astype(np.float64), 1e-9, 1.0 - 1e-6)
    features = np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)])
    sign, weight_64 = np.where(is_right, 1.0, -1.0), weight.astype(np.float64)

    def losses(map: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.logaddexp(0.0, -sign * (map[:, None] * features).sum(axis=0))

    def objective(map: NDArray[np.float64]) -> float:
        return float((weight_64 * losses(map)).sum() + 0.5 * _PRIOR * ((map - _NO_CHANGE) ** 2).sum())

    map, lowest = _NO_CHANGE.copy(), objective(_NO_CHANGE)
    for _ in range(_STEPS):
        wrong = -np.expm1(-losses(map))  # the probability of what is not so
        gradient = (features * (weight_64 * sign * wrong)).sum(axis=1) - _PRIOR * (map - _NO_CHANGE)
        curvature = features * (weight_64 * wrong * (1.0 - wrong))
        hessian = np.array([[(row * other).sum() for other in features] for row in curvature])
        free = np.flatnonzero((map > [_LEAST_SLOPE, _LEAST_SLOPE, -np.inf]) | (gradient > 0.0))
        step = np.zeros(3)
        # Three equations: small enough that no threads of a library change the result.
        try:
            step[free] = np.linalg.solve(
                hessian[np.ix_(free, free)] + _PRIOR * np.eye(len(free)), gradient[free]
            )
        except np.linalg.LinAlgError:  # weights so large that the prior is rounded away
            break
        while np.abs(step).max() > 1e-9:
            moved = np.maximum(map + step, [_LEAST_SLOPE, _LEAST_SLOPE, -np.inf])
            if objective(moved) < lowest:
                break
            step /= 2.0
        else:
            break
        map, lowest = moved, objective(moved)
    return map
