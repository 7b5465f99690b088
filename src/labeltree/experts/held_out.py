"""Training rows that are held out at first, to judge by them what was learned from the others.

Experts are trained without them, asked about them, and then trained on (or anew) with all rows: nothing is
lost. What the answers show, how far an expert can be trusted and which one, goes into the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, pointers
from labeltree.features.features import Features

PART = 5  # one row in so many ...
MOST = 5000  # ... which is enough for a few numbers
LEAST = 50
LEAST_ROWS = PART * LEAST  # of all
BLOCK = 10  # rows next to each other are often alike: so many are held out together


class HeldOut(NamedTuple):
    """Some training rows, as they would be if they were new."""

    numbers: NDArray[np.int64]  # of the rows among all, rising; none where there would be too few
    X: SparseRows  # without words that occur in no other row, weighed as the others say
    Y: LabelRows
    weight: NDArray[np.float32]

    def are_right(self, ids: NDArray[np.int32], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether these labels of these rows, counted among the held-out ones, are true."""
        true_rows = np.repeat(np.arange(self.Y.n_rows), np.diff(self.Y.indptr))
        pairs = true_rows * self.Y.n_labels + self.Y.indices
        return np.isin(rows * self.Y.n_labels + ids, pairs)

    def gain_of_first(self, k: int) -> NDArray[np.float64]:
        """(n_rows,) what a right label in the first place adds to a row's nDCG@k, times the row's weight."""
        ideal = np.cumsum(1.0 / np.log2(np.arange(k) + 2.0))
        n_true = np.minimum(np.diff(self.Y.indptr), k)
        return self.weight / ideal[np.maximum(n_true, 1) - 1]


def hold_out(features: Features, rows: TrainingRows, config: Config) -> HeldOut:
    """The rows that suit, as unseen rows; none where the config does not want to calibrate."""
    numbers = choose_rows(rows.weight) if config.calibrate else np.empty(0, np.int64)
    lengths = np.diff(rows.Y.indptr)[numbers]
    labels = [rows.Y.indices[rows.Y.indptr[row] : rows.Y.indptr[row + 1]] for row in numbers.tolist()]
    Y = LabelRows(pointers(lengths), np.concatenate([np.empty(0, np.int32), *labels]), rows.Y.n_labels)
    return HeldOut(numbers, features.as_unseen(rows.X, numbers), Y, rows.weight[numbers])


def choose_rows(weight: NDArray[np.float32]) -> NDArray[np.int64]:
    """In blocks spread evenly over all rows; none where there would be too few."""
    n_rows = len(weight)
    n_held_out = min(n_rows // PART, MOST)
    if n_held_out < LEAST:
        return np.empty(0, np.int64)
    n_blocks = n_held_out // BLOCK
    starts = np.arange(n_blocks) * n_rows // n_blocks
    rows = np.unique(starts[:, None] + np.arange(BLOCK))
    return rows[weight[rows] > 0]
