"""Labels of a batch, as loaders of networks give them, as rows of label ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.matrices import is_sparse
from labeltree.data.rows import LabelRows, distinct_labels, pointers
from labeltree.errors import DataError, show


def label_ids(y: Any, n_labels: int | None = None) -> LabelRows:
    """The label ids of each row.

    ``y`` is a matrix of 0 and 1 (SciPy's sparse, NumPy's, or a tensor, dense or sparse), a list of lists of
    ids, one id per row (an array or a tensor), the pair ``(indptr, indices)`` of arrays, or
    :class:`~labeltree.data.rows.LabelRows`. Without ``n_labels`` there are as many as the matrix has columns,
    or as the largest id says.
    """
    rows, ids, n_rows, n_columns = _pairs(y)
    if n_columns is not None and n_columns != (n_labels or n_columns):
        raise DataError(f"y has {n_columns} columns, but the tree has {n_labels} labels")
    n_labels = n_labels or n_columns or int(ids.max(initial=-1)) + 1
    wrong = np.flatnonzero((ids < 0) | (ids >= n_labels))
    if len(wrong):
        raise DataError(
            f"y, row {rows[wrong[0]]}: there is no label {ids[wrong[0]]}, as ids go from 0 to {n_labels - 1}"
        )
    return LabelRows(*distinct_labels(rows, ids.astype(np.int32), n_rows), n_labels)


def _pairs(y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int | None]:
    """Row and id of each label, how many rows there are, and how many columns if it is a matrix."""
    if isinstance(y, LabelRows):
        return _of_pointers(y.indptr, y.indices, y.n_labels)
    if isinstance(y, tuple) and len(y) == 2 and all(getattr(part, "ndim", 0) == 1 for part in y):
        return _of_pointers(_integers(y[0], "indptr"), _integers(y[1], "indices"), None)
    if is_sparse(y):
        matrix = y.tocoo()
        filled = matrix.data != 0
        return (*(part[filled].astype(np.int64) for part in (matrix.row, matrix.col)), *matrix.shape)
    if hasattr(y, "layout") and hasattr(y, "to_dense"):  # a tensor
        return _of_array(y.detach().to_dense().cpu().numpy())
    if isinstance(y, np.ndarray) and y.dtype != object:
        return _of_array(y)
    return _of_lists(y)


def _of_pointers(
    indptr: NDArray[Any], indices: NDArray[Any], n_columns: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int | None]:
    lengths = np.diff(indptr)
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(indices) or lengths.min(initial=0) < 0:
        raise DataError(f"y: indptr must rise from 0 to the {len(indices)} indices, but is {show(indptr)}")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, indices.astype(np.int64), len(lengths), n_columns


def _of_array(y: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int | None]:
    if y.ndim == 2:
        return (*np.nonzero(y), *y.shape)
    if y.ndim == 1 and (y.dtype.kind in "iu" or not len(y)):
        return np.arange(len(y)), y.astype(np.int64), len(y), None
    raise DataError(
        f"y must be a matrix of 0 and 1, or one id per row, but has shape {y.shape} and type {y.dtype}"
    )


def _of_lists(y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int | None]:
    if not isinstance(y, Sequence) or isinstance(y, (str, bytes)):
        raise DataError(f"y must be lists of label ids or a matrix of 0 and 1, but is {show(y)}")
    rows = [_integers(labels, f"row {row}") for row, labels in enumerate(y)]
    indices = np.concatenate([np.empty(0, np.int64), *rows])
    return _of_pointers(pointers([len(row) for row in rows]), indices, None)


def _integers(values: Any, place: str) -> NDArray[np.int64]:
    try:
        array = np.asarray(sorted(values) if isinstance(values, (set, frozenset)) else values)
    except (ValueError, TypeError) as error:
        raise DataError(f"y, {place}: not a list of label ids ({error})") from error
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise DataError(f"y, {place}: must be a list of label ids, but is {show(values)}")
    return array.astype(np.int64)
