"""How many pairs of a label and a feature some rows have: what profiles and weights of labels grow with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, SparseRows

_SAMPLED = 96  # labels of rows
_MOST_ROWS = 200  # of a label that are looked at


def guess_pairs(X: SparseRows, Y: LabelRows) -> int:
    """About the number of different pairs in the rows.

    A label of n rows with u different features has u / n pairs for each of its rows; of a sample of the rows'
    labels the mean of that, times all of them. The same rows always give the same number.
    """
    if not len(Y.indices):
        return 0
    random = np.random.default_rng(0)
    sampled = Y.indices[random.integers(0, len(Y.indices), _SAMPLED)]
    labels, times = np.unique(sampled, return_counts=True)
    place = np.flatnonzero(np.isin(Y.indices, labels))
    found = Y.indices[place]
    rows = np.searchsorted(Y.indptr, place, side="right") - 1
    total, seen = 0.0, np.zeros(X.n_columns, np.bool_)
    for label, n_sampled in zip(labels, times, strict=True):
        own = random.permutation(rows[found == label])
        total += n_sampled * _n_features(X, own, seen) / len(own)
    return int(total / _SAMPLED * len(Y.indices))


def _n_features(X: SparseRows, rows: NDArray[np.int64], seen: NDArray[np.bool_]) -> float:
    """Different ones of rows in a random order. Of many they grow like a power of the number of rows.

    ``seen`` (n_columns,) has nothing, and gets it back so: to mark features is quicker than to sort them.
    """
    n_rows, half = len(rows), _MOST_ROWS // 2
    looked_at = [X.indices[X.indptr[row] : X.indptr[row + 1]] for row in rows[:_MOST_ROWS].tolist()]
    features = np.concatenate(looked_at)
    n_of_half = sum(map(len, looked_at[:half]))
    seen[features[:n_of_half]] = True
    of_half = int(np.count_nonzero(seen))
    seen[features] = True
    n_features = int(np.count_nonzero(seen))
    seen[features] = False
    if n_rows <= _MOST_ROWS or not of_half:
        return n_features
    power = math.log2(n_features / of_half)
    return min(X.n_columns, n_features * (n_rows / _MOST_ROWS) ** power)
