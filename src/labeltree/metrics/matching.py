"""Predictions beside the true labels: checked, and which of them are right.

Predictions are an integer array ``ids (n_rows, n_columns)``, best label first, -1 for "nothing". The truth is
:class:`LabelRows`, a SciPy indicator matrix, or one list of ids per row, with -1 for a label that the model
does not know: it counts as a label of its row but is never hit.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.data.rows import LabelRows, pointers
from labeltree.errors import DataError, ParameterError, show
from labeltree.metrics.confusion import Confusion
from labeltree.parameter import MOST_IDS

Labels: TypeAlias = "LabelRows | Sequence[Sequence[int]] | Any"  # Any: a SciPy sparse matrix or array

# Rows matched at a time: bounds the memory, and keeps row * n_labels + label far inside 64 bits.
_BLOCK_ROWS = 1 << 16


class Matched:
    """The checked arguments of a metric, and which predictions are true."""

    def __init__(
        self,
        ids: ArrayLike,
        labels: Labels,
        ks: Sequence[int],
        *,
        probs: ArrayLike | None = None,
        counts: tuple[ArrayLike, int] | None = None,
    ) -> None:
        for k in ks:
            if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < 1 << 31:
                raise ParameterError(f"k must be a whole number from 1 to 2^31 - 1, but is {show(k)}")
        self.truth = label_rows(labels)
        self.ids = _checked_ids(ids)[:, : max(ks, default=1)]  # (n_rows, at most the largest k)
        if len(self.ids) != self.truth.n_rows:
            raise DataError(
                f"ids has {len(self.ids)} rows, but labels {self.truth.n_rows}; give both for the same rows"
            )
        if len(self.ids) == 0:
            raise DataError("ids and labels have no rows; there is nothing to score")
        self.n_labels = np.diff(self.truth.indptr)  # of each row, unknown ones included
        self.hits = np.zeros(self.ids.shape, dtype=np.bool_)
        for start in range(0, len(self.ids), _BLOCK_ROWS):
            _match_rows(self.ids, self.truth, start, min(start + _BLOCK_ROWS, len(self.ids)), self.hits)
        # What only some metrics need.
        self.probabilities = None if probs is None else _checked_probabilities(probs, self.ids, np.shape(ids))
        self.counts = counts  # training rows of each label, and all training rows
        self._confusions: dict[int, Confusion] = {}

    def confusion(self, k: int) -> Confusion:
        """The first k predictions of each row as sets."""
        if k not in self._confusions:
            ids, hits = self.ids[:, :k], self.hits[:, :k]
            guesses, support = self._renumbered
            n_counts = 0 if self.counts is None else np.size(self.counts[0])
            highest = int(self.ids.max(initial=-1))
            self._confusions[k] = Confusion(
                np.bincount(guesses[:, :k][hits], minlength=len(support)),
                np.bincount(guesses[:, :k][ids >= 0], minlength=len(support)),
                support,
                hits.sum(axis=1, dtype=np.int64),
                (ids >= 0).sum(axis=1, dtype=np.int64),
                self.n_labels,
                max(self.truth.n_labels, n_counts, highest + 1),
            )
        return self._confusions[k]

    @cached_property
    def _renumbered(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The predictions, and how often labels are true, of those labels only that occur."""
        true_ids, is_label = self.truth.indices[self.truth.indices >= 0], self.ids >= 0
        both = np.concatenate([true_ids, self.ids[is_label]], dtype=np.int64, casting="unsafe")
        occurring, numbers = np.unique(both, return_inverse=True)
        support = np.bincount(numbers[: len(true_ids)], minlength=len(occurring))
        guesses = np.full(self.ids.shape, -1, np.int64)
        guesses[is_label] = numbers[len(true_ids) :]
        return guesses, support


def confusion_of_sets(sets: Labels, labels: Labels, n_labels: int | None = None) -> Confusion:
    """Predicted sets beside the true ones. A predicted label of -1 is nothing."""
    predicted, truth = label_rows(sets), label_rows(labels)
    if predicted.n_rows != truth.n_rows:
        raise DataError(
            f"sets has {predicted.n_rows} rows, but labels {truth.n_rows}; give both for the same rows"
        )
    if truth.n_rows == 0:
        raise DataError("sets and labels have no rows; there is nothing to score")
    pairs, true_pairs = _pairs(predicted), _pairs(truth)
    both = np.concatenate([pairs[1], true_pairs[1]])
    width = max(predicted.n_labels, truth.n_labels, int(both.max(initial=-1)) + 1, n_labels or 0)
    is_hit = np.isin(pairs[0] * width + pairs[1], true_pairs[0] * width + true_pairs[1], assume_unique=True)
    occurring, numbers = np.unique(both, return_inverse=True)
    of_sets, of_truth = np.split(numbers, [len(pairs[1])])
    count, rows = len(occurring), truth.n_rows
    return Confusion(
        np.bincount(of_sets[is_hit], minlength=count),
        np.bincount(of_sets, minlength=count),
        np.bincount(of_truth, minlength=count),
        np.bincount(pairs[0][is_hit], minlength=rows),
        np.bincount(pairs[0], minlength=rows),
        np.diff(truth.indptr),
        width,
    )


def _pairs(rows: LabelRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and label of each known label."""
    is_known = rows.indices >= 0
    numbers = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    return numbers[is_known], rows.indices[is_known].astype(np.int64)


def _match_rows(
    ids: NDArray[Any], truth: LabelRows, start: int, stop: int, out_hits: NDArray[np.bool_]
) -> None:
    """Look the pairs (row, predicted id) up in the sorted pairs (row, true id)."""
    block = ids[start:stop].astype(np.int64)
    _refuse_repeated(block, start)
    true_ids = truth.indices[truth.indptr[start] : truth.indptr[stop]].astype(np.int64)
    rows = np.repeat(np.arange(stop - start), np.diff(truth.indptr[start : stop + 1]))
    known = true_ids >= 0
    if not known.any():
        return
    width = int(true_ids.max()) + 1
    true_pairs = rows[known] * width + true_ids[known]  # sorted, as rows and the ids of a row are
    possible = (block >= 0) & (block < width)
    pairs = np.where(possible, np.arange(stop - start)[:, None] * width + block, 0)
    places = np.minimum(np.searchsorted(true_pairs, pairs), len(true_pairs) - 1)
    out_hits[start:stop] = possible & (true_pairs[places] == pairs)


def _refuse_repeated(block: NDArray[np.int64], first_row: int) -> None:
    ordered = np.sort(block, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, column = np.argwhere(repeated)[0]
        raise DataError(
            f"ids row {first_row + row}: label {ordered[row, column]} is predicted twice; "
            "each label may stand in a row once"
        )


def _checked_ids(ids: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(ids)
    except ValueError as error:
        raise DataError("ids must be a two-dimensional array, but its rows differ in length") from error
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise DataError(
            f"ids must be a two-dimensional array of whole numbers, but has shape {array.shape} and type "
            f"{array.dtype}; give the first array that predict_arrays returns"
        )
    if array.size and array.min() < -1:
        row = int(np.argwhere(array < -1)[0, 0])
        raise DataError(f"ids row {row}: {array[row].min()} is no label; use -1 for nothing")
    return array


def label_rows(labels: Labels) -> LabelRows:
    """Any form of true labels as checked :class:`LabelRows`."""
    if isinstance(labels, LabelRows):
        return _checked_rows(labels)
    if hasattr(labels, "tocsr"):
        matrix = labels.tocsr(copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        indptr = matrix.indptr.astype(np.int64)
        return LabelRows(indptr, matrix.indices.astype(np.int32, copy=False), int(matrix.shape[1]))
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise DataError(
            f"labels is an array of shape {labels.shape}, which could mean indicators or ids; "
            "give a scipy.sparse.csr_matrix of indicators or one list of ids per row"
        )
    rows = [_row_ids(row, i) for i, row in enumerate(labels)]
    indices = np.array([label for row in rows for label in row], dtype=np.int32)
    return LabelRows(pointers([len(row) for row in rows]), indices, int(indices.max(initial=-1)) + 1)


def _row_ids(row: Any, i: int) -> list[int]:
    """The ids of one row, sorted, each known one once."""
    is_list = isinstance(row, Sequence | np.ndarray | Set) and not isinstance(row, str | bytes)
    if not is_list or not all(_is_id(label) for label in row):
        raise DataError(
            f"labels row {i}: must be a list of ids from 0 to 2^31 - 1 (or -1), but is {show(row)}"
        )
    unknown = [-1 for label in row if label < 0]
    return unknown + sorted({int(label) for label in row if label >= 0})


def _is_id(label: Any) -> bool:
    return (
        isinstance(label, int | np.integer) and not isinstance(label, bool) and -1 <= int(label) <= MOST_IDS
    )


def _checked_rows(rows: LabelRows) -> LabelRows:
    indptr, indices = rows.indptr, rows.indices
    if len(indptr) < 1 or indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        raise DataError("labels: indptr must rise from 0 to the number of indices")
    rises = (indices[1:] > indices[:-1]) | ((indices[1:] == -1) & (indices[:-1] == -1))
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # a new row may start anywhere
    if not rises.all() or np.any(indices < -1):
        place = int(np.argmin(rises)) + 1 if not rises.all() else int(np.argmax(indices < -1))
        row = int(np.searchsorted(indptr, place, side="right")) - 1
        raise DataError(f"labels row {row}: ids must be sorted, unique and at least -1")
    return rows


def _checked_probabilities(
    probs: ArrayLike, ids: NDArray[Any], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Those of the first columns, which are used; ``shape`` is that of all ids."""
    array = floats(probs, "probs")
    if array.shape != shape:
        raise DataError(f"probs has shape {array.shape}, but ids {shape}; they must be the same")
    used = array[:, : ids.shape[1]]
    if not np.all(np.isfinite(used[ids >= 0])):
        raise DataError("probs holds NaN or infinity; give the probabilities that belong to ids")
    return used


def floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """An argument as an array of floats."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} must have numbers only, that a float can hold ({error})") from error
