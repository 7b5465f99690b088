"""Small problems for the kernels of forests."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, SparseRows, pointers
from labeltree.kernels.forest.arrays import Scratch
from labeltree.parallel import Pool


def random_problem(
    n_rows: int, n_columns: int, n_labels: int, seed: int
) -> tuple[SparseRows, LabelRows, NDArray[np.float32], NDArray[np.float64]]:
    """Rows, labels that follow from them a bit, weights; and the labels as a dense matrix."""
    random = np.random.default_rng(seed)
    values = np.where(random.random((n_rows, n_columns)) < 0.4, random.normal(size=(n_rows, n_columns)), 0.0)
    scores = values @ random.normal(size=(n_columns, n_labels)) + random.normal(size=(n_rows, n_labels))
    dense = scores > np.quantile(scores, 0.8)
    rows, columns = np.nonzero(values)
    X = SparseRows(
        pointers(np.bincount(rows, minlength=n_rows)), columns.astype(np.int32),
        values[rows, columns].astype(np.float32), n_columns,
    )  # fmt: skip
    label_rows, labels = np.nonzero(dense)
    Y = LabelRows(pointers(np.bincount(label_rows, minlength=n_rows)), labels.astype(np.int32), n_labels)
    weight = random.choice([0.5, 1.0, 2.0], n_rows).astype(np.float32)
    return X, Y, weight, dense.astype(np.float64)


N_ROWS, N_COLUMNS, N_LABELS = 150, 20, 25
NONE, POOL = np.empty(0, np.int64), Pool(1)
ROWS = random_problem(N_ROWS, N_COLUMNS, N_LABELS, seed=9)[0]


def row_of(X: SparseRows, i: int, n_columns: int = N_COLUMNS) -> dict[int, float]:
    """The first columns of a row, of length 1."""
    part = slice(X.indptr[i], X.indptr[i + 1])
    pairs = zip(X.indices[part].tolist(), X.values[part].tolist(), strict=True)
    row = {column: value for column, value in pairs if column < n_columns}
    length = math.sqrt(sum(value * value for value in row.values()))
    return {column: value / length for column, value in row.items()}


def make_scratch(n_rows: int, n_columns: int, n_labels: int, seed: int) -> Scratch:
    return Scratch(
        np.zeros(n_columns + 1, np.float32), np.zeros(n_columns, np.int32), np.empty(n_columns, np.int32),
        np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels), np.empty(n_labels, np.int32),
        np.zeros(n_rows, np.int8), np.zeros(n_rows, np.float32), np.array([seed], np.uint64),
    )  # fmt: skip


def dense_rows(X: SparseRows, bias: float) -> NDArray[np.float64]:
    """With the bias as the last column."""
    out = np.zeros((X.n_rows, X.n_columns + 1))
    out[np.repeat(np.arange(X.n_rows), np.diff(X.indptr)), X.indices] = X.values
    out[:, -1] = bias
    return out
