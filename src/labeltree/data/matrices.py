"""Feature matrices given in memory, SciPy's or NumPy's, as checked :class:`SparseRows`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import SparseRows, pointers
from labeltree.errors import DataError
from labeltree.kernels import check
from labeltree.parameter import MOST_IDS


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array (without importing SciPy for those who do not use it)."""
    return hasattr(X, "tocsr") and hasattr(type(X), "nnz")  # of the type: nnz itself takes time


def sparse_rows(X: Any, n_columns: int | None = None, *, name: str = "X") -> SparseRows:
    """X (SciPy sparse of any kind, 2-D NumPy, or SparseRows) with finite values, sorted and unique columns.

    Arrays that are in order already are not copied. ``n_columns`` is what the model was trained with.
    """
    if type(X) is SparseRows:
        indptr, indices, values, width = X
    elif is_sparse(X):
        if X.format != "csr":
            _check_shape(X.shape, name)
            X = X.tocsr()
        indptr, indices, values, width = X.indptr, X.indices, X.data, X.shape[-1]
        if len(X.shape) != 2:
            _check_shape(X.shape, name)
    else:
        indptr, indices, values, width = _rows_of_dense(X, name)
    if n_columns is not None and width != n_columns:
        raise DataError(f"{name} has {width} features, but the model was trained with {n_columns}")
    if width > MOST_IDS:
        raise DataError(f"{name} has {width} features, but at most {MOST_IDS} are possible")
    return _checked(indptr, indices, values, width, name)


def copy_row(X: Any, n_columns: int, indices: NDArray[np.int32], values: NDArray[np.float32]) -> int:
    """Copy the only row of a CSR matrix of the usual types; returns its length.

    The quick way for single rows. Returns -1 where :func:`sparse_rows` must have a look: for all else.
    """
    if type(X) is SparseRows:
        indptr, columns, data, width = X
    elif getattr(X, "format", None) == "csr":
        if len(X.shape) != 2:
            return -1
        indptr, columns, data, width = X.indptr, X.indices, X.data, X.shape[1]
    else:
        return -1
    n = len(data)
    if (
        len(indptr) != 2 or indptr[0] != 0 or indptr[1] != n or len(columns) != n or n > len(values)
        or width != n_columns or columns.dtype != np.int32 or data.dtype != np.float32
    ):  # fmt: skip
        return -1
    indices[:n] = columns
    values[:n] = data
    return n


def _checked(indptr: Any, indices: Any, values: Any, width: int, name: str) -> SparseRows:
    rows = SparseRows(
        np.ascontiguousarray(indptr, np.int64),
        _as_columns(indices, int(indptr[-1]) if len(indptr) else 0, width, name),
        values if values.dtype == np.float32 and values.flags.c_contiguous else _as_float32(values, name),
        width,
    )
    code, row, position = check.check_rows(*rows)
    if code == check.CANONICAL:
        n_values = rows.indptr[-1]
        if len(rows.indices) == n_values == len(rows.values):
            return rows
        return SparseRows(rows.indptr, rows.indices[:n_values], rows.values[:n_values], width)
    if code == check.NOT_SORTED:
        return _checked(*_in_order(rows.indptr, rows.indices, values, width), width, name)
    if code == check.NOT_FINITE:
        raise DataError(
            f"{name}, row {row}, column {rows.indices[position]}: the value is {values[position]}; "
            "NaN, inf and what exceeds 32-bit floats cannot be used: replace or remove it"
        )
    if code == check.COLUMN_RANGE:
        raise DataError(
            f"{name}, row {row}: column {rows.indices[position]} is out of range; "
            f"columns go from 0 to {width - 1}"
        )
    raise DataError(f"{name}, row {row}: indptr does not fit the arrays; build the matrix anew")


def _as_columns(indices: Any, n_used: int, width: int, name: str) -> NDArray[np.int32]:
    """Column numbers as 32-bit integers; one that does not fit must not become another by the cast."""
    if indices.dtype == np.int32:
        return np.ascontiguousarray(indices)
    if indices.dtype.kind not in "iu":
        raise DataError(f"{name} has column numbers of type {indices.dtype}, but must have integers")
    used = indices[: max(n_used, 0)]
    least, most = int(used.min(initial=0)), int(used.max(initial=0))
    if least < -MOST_IDS or most > MOST_IDS:
        wrong = most if most > MOST_IDS else least
        raise DataError(f"{name}: column {wrong} is out of range; columns go from 0 to {width - 1}")
    return np.ascontiguousarray(indices, np.int32)


def _as_float32(values: Any, name: str) -> NDArray[np.float32]:
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has values of type {values.dtype}, but must have numbers")
    with np.errstate(over="ignore"):  # what overflows is found by the check of finite values
        return np.ascontiguousarray(values, np.float32)


def _in_order(indptr: Any, indices: Any, values: Any, width: int) -> tuple[Any, Any, Any]:
    """Sort columns within rows and add up the values of equal ones, in the values' own precision."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width), copy=True)
    matrix.sum_duplicates()
    return matrix.indptr, matrix.indices, matrix.data


def _rows_of_dense(X: Any, name: str) -> tuple[Any, Any, Any, int]:
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise DataError(f"{name} must be a sparse or 2-D array of numbers ({error})") from error
    _check_shape(array.shape, name)
    if array.dtype == object:  # as from a data frame of mixed columns
        try:
            array = array.astype(np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{name} must have numbers only, that a float can hold ({error})") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} has values of type {array.dtype}, but must have numbers")
    array = np.asarray(array)
    filled = array != 0  # true for NaN too: the check will find it
    return pointers(filled.sum(axis=1)), np.nonzero(filled)[1], array[filled], array.shape[1]


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise DataError(
            f"{name} must have 2 dimensions (rows, columns), but has shape {shape}; "
            "give a single row the shape (1, -1)"
        )
