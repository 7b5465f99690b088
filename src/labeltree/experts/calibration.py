"""Probabilities that can be taken at their word: a fitted map from a label's log-odds to better ones.

Along a path the conditional probabilities are estimated one by one, each from its own score, but the scores
of a path know of each other: a label with a strong word is often right where its parent, which speaks for
many labels, was doubtful. So products of well calibrated conditionals are not calibrated themselves, and the
map is fitted to the products: on rows that were held out at first, for the labels that a search finds.

The map of a tree is a part of its nodes' parameters; a search applies it to what it has found
(``probability_of`` of :mod:`labeltree.kernels.search.sparse`). The map of the average of several experts
(:mod:`.combination`) is bent at fixed points besides. There an average tells other things in its middle than
at its ends, where experts agree: with three numbers alone it is a few percent too high around 0.6, too low
around 0.3 and 0.95, on one data set as on the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.combination import BENDS, equal_weights, log_odds_of
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Expert
from labeltree.experts.held_out import HeldOut
from labeltree.experts.likelihood import Prior, most_likely
from labeltree.parallel import Pool
from labeltree.query import make_query

LABELS_PER_ROW = 5
_LEAST_SLOPE = 0.05  # the order of labels must stay
_NO_CHANGE = np.array([1.0, 1.0, 0.0])
_MAP_PRIOR = Prior(_NO_CHANGE, np.eye(3), np.array([_LEAST_SLOPE, _LEAST_SLOPE, -np.inf]))
# Of how far the bends are from "no change", each, and of how far one is from the next: inverse variances.
_BEND_PRIOR, _CHANGE_PRIOR = 5.0, 5.0


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
    return fit_map(*_pairs(ids, probabilities, held_out))


def bent_map_of_found(
    ids: NDArray[np.int32], averages: NDArray[Any], held_out: HeldOut
) -> NDArray[np.float64]:
    """The bent map that suits what was found, ids and averages (n_rows, k), for the held-out rows."""
    pairs = _pairs(ids, averages, held_out)
    map = fit_map(*pairs)
    return np.concatenate([map, fit_bends(map, *pairs)])


def _pairs(
    ids: NDArray[np.int32], probabilities: NDArray[Any], held_out: HeldOut
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.float32]]:
    """Of what was found: how probable, whether it is right, and what it weighs."""
    is_label = ids >= 0
    rows = np.broadcast_to(np.arange(len(ids))[:, None], ids.shape)[is_label]
    # The weights of the training, or the map would undo what they changed.
    return probabilities[is_label], held_out.are_right(ids[is_label], rows), held_out.weight[rows]


def fit_map(
    probabilities: NDArray[Any], is_right: NDArray[np.bool_], weight: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The most likely a, b, c of sigmoid(a log p - b log(1 - p) + c) with a, b > 0 (beta calibration)."""
    p = _clipped(probabilities)
    features = np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)])
    return most_likely(features, np.zeros_like(p), is_right, weight, _MAP_PRIOR)


def fit_bends(
    map: NDArray[np.float64],
    probabilities: NDArray[Any],
    is_right: NDArray[np.bool_],
    weight: NDArray[np.float32],
) -> NDArray[np.float64]:
    """What the log-odds BENDS of a map of three numbers should rather be; they rise."""
    log_odds = log_odds_of(map, _clipped(probabilities))
    beyond = np.minimum(log_odds - BENDS[0], 0.0) + np.maximum(log_odds - BENDS[-1], 0.0)
    steps = np.diff(BENDS)
    parts = [np.clip(log_odds - first, 0.0, step) for first, step in zip(BENDS, steps, strict=False)]
    features = np.stack([np.ones_like(log_odds), *parts])
    # The numbers are the first of the new log-odds and the slopes between them.
    to_values = np.tril(np.ones((len(BENDS), len(BENDS)))) * np.concatenate([[1.0], steps])
    to_changes = np.diff(to_values, axis=0)
    precision = _BEND_PRIOR * _squared(to_values) + _CHANGE_PRIOR * _squared(to_changes)
    mean = np.concatenate([BENDS[:1], np.ones(len(steps))])
    least = np.concatenate([[-np.inf], np.full(len(steps), _LEAST_SLOPE)])
    numbers = most_likely(features, beyond, is_right, weight, Prior(mean, precision, least))
    return (to_values * numbers).sum(axis=1)


def _clipped(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Those of 0 and 1 would outweigh all others."""
    return np.clip(probabilities.astype(np.float64), 1e-9, 1.0 - 1e-6)


def _squared(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Its transpose times itself."""
    return (matrix[:, :, None] * matrix[:, None, :]).sum(axis=0)
