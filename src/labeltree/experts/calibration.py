"""Probabilities that can be taken at their word: a fitted map from a label's log-odds to better ones.

Along a path the conditional probabilities are estimated one by one, each from its own score, but the scores
of a path know of each other: a label with a strong word is often right where its parent, which speaks for
many labels, was doubtful. So products of well calibrated conditionals are not calibrated themselves, and the
map is fitted to the products: on rows that were held out at first, for the labels that a search finds.

The map is a part of the nodes' parameters; a search applies it to what it has found (``probability_of`` of
:mod:`labeltree.kernels.search.sparse`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, TrainingRows, take_rows
from labeltree.experts.tree_expert import TreeExpert
from labeltree.nodes import KINDS
from labeltree.nodes.kind import Fit, Parameters
from labeltree.parallel import Pool, row_slices
from labeltree.query import make_query
from labeltree.tree import LabelTree

LABELS_PER_ROW = 5
_PRIOR = 1.0  # of a normal distribution around "no change": its inverse variance
_LEAST_SLOPE = 0.05  # the order of labels must stay
_STEPS = 50
_NO_CHANGE = np.array([1.0, 1.0, 0.0])


def calibrate(
    kind: str, fit: Fit, tree: LabelTree, rows: TrainingRows, config: Config, pool: Pool
) -> Parameters:
    """The parameters with the map that suits the held-out rows; as they are if there are none."""
    if fit.without_held_out is None:
        return fit.parameters
    X, Y, weight = rows
    arrays = take_rows((X.indptr, X.indices, X.values), fit.held_out)
    search = TreeExpert(tree, kind, fit.without_held_out, X.n_columns, config.link)
    k = min(LABELS_PER_ROW, tree.n_labels)
    query = make_query(k)
    ids = np.empty((len(fit.held_out), k), np.int32)
    probabilities = np.empty((len(fit.held_out), k), np.float32)

    def find(rows: slice) -> None:
        part = arrays[0][rows.start : rows.stop + 1], arrays[1], arrays[2]
        search.topk(part, query, ids[rows], probabilities[rows])

    pool.map(find, row_slices(len(fit.held_out), 4 * pool.threads))
    is_right = np.isin(fit.held_out[:, None] * Y.n_labels + ids, _pairs(Y, fit.held_out))
    # The weights of the training, or the map would undo what they changed.
    weight_of_pair = np.repeat(weight[fit.held_out], k)
    map = fit_map(probabilities.ravel(), is_right.ravel(), weight_of_pair)
    return KINDS[kind].calibrated(fit.parameters, map.astype(np.float32))


def _pairs(Y: LabelRows, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each pair of one of these rows and its label."""
    labels = [Y.indices[Y.indptr[row] : Y.indptr[row + 1]] for row in rows.tolist()]
    return np.repeat(rows, [len(part) for part in labels]) * Y.n_labels + np.concatenate(labels)


def fit_map(
    probabilities: NDArray[np.float32], is_right: NDArray[np.bool_], weight: NDArray[np.float32]
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
