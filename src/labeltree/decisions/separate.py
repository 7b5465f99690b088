"""Decisions for sets of any size that follow from the probabilities at once, for given rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import SparseRows
from labeltree.decisions.judged import sums_of_labels
from labeltree.decisions.rule import expected_best, rows_of

_HALF = 0.5


def _hamming(rows: SparseRows, support: NDArray[np.float64]) -> NDArray[np.bool_]:
    """What is rather right than wrong."""
    return rows.values >= _HALF


def _micro_f1(rows: SparseRows, support: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The surest pairs of all rows, as many as the expected F1 of all is the highest for."""
    order = np.argsort(-rows.values, kind="stable")
    hits = np.cumsum(rows.values[order], dtype=np.float64)
    expected = hits / (np.arange(1, len(order) + 1) + float(support.sum()))
    chosen = np.zeros(len(order), np.bool_)
    if len(order):
        chosen[order[: int(np.argmax(expected)) + 1]] = True
    return chosen


def _instance_f1(rows: SparseRows, support: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The surest labels of each row, as many as its expected F1 is the highest for."""
    order = np.lexsort((rows.indices, -rows.values, rows_of(rows)))
    chosen = np.empty(len(order), np.bool_)
    chosen[order] = expected_best(rows.indptr, rows.values[order].astype(np.float64))
    return chosen


def _macro_f1(rows: SparseRows, support: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of each label the rows that are surer than half of the F1 that it has by them, the highest.

    Begins with all rows, and leaves out those below the half so far, which rises by it (Dinkelbach).
    """
    half = np.zeros(rows.n_columns)
    while True:
        chosen = rows.values > half[rows.indices]
        labels = rows.indices[chosen]
        hits = sums_of_labels(labels, rows.values[chosen], rows.n_columns)
        given = np.bincount(labels, minlength=rows.n_columns) + support
        risen = np.divide(hits, given, out=np.zeros(len(hits)), where=given > 0.0)
        if (risen <= half).all():
            return chosen
        half = np.maximum(half, risen)


# Which candidates are chosen, by measures; ``support`` is how many rows are expected to have each label.
SEPARATE: dict[str, Callable[[SparseRows, NDArray[np.float64]], NDArray[np.bool_]]] = {
    "hamming": _hamming,
    "micro-f1": _micro_f1,
    "macro-f1": _macro_f1,
    "instance-f1": _instance_f1,
}
