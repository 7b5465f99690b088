"""What a forest's votes are ranked by besides (PfastreXML): inverse propensities, and labels' mean rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, keep_entries, pointers
from labeltree.kernels.forest.arrays import LARGEST, Tail, halves_of
from labeltree.metrics.measures import propensities
from labeltree.parallel import Pool
from labeltree.trees.profiles import ENTRIES_PER_LABEL, label_profiles


def label_gains(Y: LabelRows, weight: NDArray[np.float32], config: Config) -> NDArray[np.float64]:
    """(n_labels,) what each counts: 1, or its inverse propensity."""
    if not config.forest_propensity:
        return np.ones(Y.n_labels)
    of_row = np.repeat(weight, np.diff(Y.indptr)).astype(np.float64)
    counts = np.bincount(Y.indices, of_row, minlength=Y.n_labels)
    return 1.0 / propensities(counts, max(1, round(float(weight.sum(dtype=np.float64)))))


def make_tail(rows: TrainingRows, gains: NDArray[np.float64], config: Config, pool: Pool) -> Tail | None:
    """For rows of length 1; None where votes are ranked by nothing else."""
    if not (config.forest_propensity or config.forest_tail):
        return None
    weight = (gains / gains.max()).astype(np.float32)
    if not config.forest_tail:
        nothing = np.empty(0, np.int32), np.empty(0, np.float32)
        return _packed(weight, SparseRows(np.zeros(len(weight) + 1, np.int64), *nothing, 0))
    of_entry = np.repeat(rows.weight, np.diff(rows.X.indptr))
    X = keep_entries(rows.X._replace(values=rows.X.values * of_entry), of_entry > 0.0)
    return _packed(weight, label_profiles(X, rows.Y, pool, ENTRIES_PER_LABEL))


def most_tail_entries(rows: TrainingRows, config: Config) -> int:
    """Of the mean rows of all labels."""
    if not config.forest_tail:
        return 0
    per_row = len(rows.X.indices) / max(1, rows.X.n_rows)
    return min(ENTRIES_PER_LABEL * rows.Y.n_labels, int(per_row * len(rows.Y.indices)))


def _packed(weight: NDArray[np.float32], means: SparseRows) -> Tail:
    """With a byte for each number."""
    label = np.repeat(np.arange(means.n_rows), np.diff(means.indptr))
    largest = np.zeros(means.n_rows, np.float32)
    np.maximum.at(largest, label, np.abs(means.values))
    scale = largest / np.float32(LARGEST)
    amount = np.rint(means.values / np.where(scale > 0.0, scale, np.float32(1.0))[label]).astype(np.int8)
    keep = amount != 0
    lengths = np.bincount(label[keep], minlength=means.n_rows)
    low, high = halves_of(means.indices[keep], means.n_columns)
    return Tail(weight, scale, pointers(lengths), low, high, amount[keep])
