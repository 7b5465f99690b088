"""Feature matrices in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from labeltree.data.matrices import sparse_rows
from labeltree.data.rows import SparseRows
from labeltree.errors import DataError

DENSE = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]])


def dense(rows: SparseRows) -> np.ndarray:
    return sp.csr_matrix((rows.values, rows.indices, rows.indptr), (rows.n_rows, rows.n_columns)).toarray()


def assert_canonical(rows: SparseRows) -> None:
    assert [array.dtype for array in rows[:3]] == [np.int64, np.int32, np.float32]
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        assert (np.diff(rows.indices[start:end]) > 0).all()
    assert len(rows.indices) == len(rows.values) == rows.indptr[-1]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("array", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_every_kind_of_sparse_matrix(kind: str, array: bool, dtype: Any) -> None:
    values = DENSE.astype(dtype)
    X = (sp.csr_array if array else sp.csr_matrix)(values).asformat(kind)
    rows = sparse_rows(X, 4)
    assert_canonical(rows)
    np.testing.assert_array_equal(dense(rows), values)


@pytest.mark.parametrize(
    "X", [DENSE, DENSE.astype(np.float32), DENSE.tolist(), DENSE.astype(object), DENSE[:, ::-1]]
)
def test_dense_arrays(X: Any) -> None:
    rows = sparse_rows(X)
    assert_canonical(rows)
    np.testing.assert_array_equal(dense(rows), np.asarray(X, float))


def test_canonical_rows_are_not_copied() -> None:
    X = sp.csr_matrix(DENSE.astype(np.float32))
    rows = sparse_rows(X)
    assert np.shares_memory(rows.values, X.data)
    assert np.shares_memory(rows.indices, X.indices)
    assert sparse_rows(rows, 4).indptr is rows.indptr


def test_unsorted_and_double_columns_are_put_in_order_in_a_copy() -> None:
    X = sp.csr_matrix((np.array([1.0, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    rows = sparse_rows(X)
    assert_canonical(rows)
    assert dense(rows).tolist() == [[2, 0, 4, 0]]
    assert X.indices.tolist() == [2, 0, 2]


def test_spare_room_at_the_end_is_cut_off() -> None:
    X = sp.csr_matrix(DENSE)
    X.data, X.indices = np.append(X.data, np.nan), np.append(X.indices, 99)
    assert_canonical(sparse_rows(X))


def test_no_rows() -> None:
    assert sparse_rows(np.empty((0, 4))).n_rows == 0
    assert sparse_rows(sp.csr_matrix((0, 4)), 4).n_rows == 0


def broken(**arrays: Any) -> SparseRows:
    good = SparseRows(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([1, 2], np.float32), 3)
    return good._replace(**arrays)


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (np.array([1.0, 2]), r"X must have 2 dimensions \(rows, columns\), but has shape \(2,\)"),
        (np.zeros((2, 2, 2)), "2 dimensions"),
        (3.0, "2 dimensions"),
        ([[1, 2], [3]], "2-D array"),
        ([["a", "b"]], "X has values of type <U1, but must have numbers"),
        (np.array([["a", 1]], object), "numbers only"),
        (np.array([[1j]]), "type complex128"),
        (sp.csr_matrix(np.array([[1j]])), "type complex128"),
        (np.array([[0, 1], [np.nan, 0]]), "X, row 1, column 0: the value is nan"),
        (np.array([[0, -np.inf]]), "X, row 0, column 1: the value is -inf"),
        (np.array([[1e300]]), "row 0, column 0: the value is 1e\\+300"),
        (sp.csr_matrix(np.array([[0, 1], [0, np.nan]])), "X, row 1, column 1: the value is nan"),
        (broken(indptr=np.array([0, 2, 1])), "row 1: indptr"),
        (broken(indptr=np.array([0, 1, 3])), "row 1: indptr"),
        (broken(indptr=np.array([1, 1, 2])), "row 0: indptr"),
        (broken(indptr=np.array([], np.int64)), "indptr"),
        (
            broken(indices=np.array([0, 3], np.int32)),
            "row 1: column 3 is out of range; columns go from 0 to 2",
        ),
        (broken(indices=np.array([-1, 0], np.int32)), "row 0: column -1"),
        (broken(n_columns=2**31), "at most 2147483647"),
    ],
)
def test_bad_matrices_are_named(X: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        sparse_rows(X)


@pytest.mark.parametrize("X", [DENSE, sp.csr_matrix(DENSE), sp.coo_matrix(DENSE)])
def test_width_must_be_the_models(X: Any) -> None:
    with pytest.raises(DataError, match="X has 4 features, but the model was trained with 5"):
        sparse_rows(X, 5)


@pytest.mark.parametrize("column", [2**31, 2**32 + 3, 2**40, -(2**32) + 3, -1])
def test_a_column_beyond_32_bits_is_not_taken_for_another(column: int) -> None:
    X = sp.csr_array((np.ones(2, np.float32), np.array([1, 2]), np.array([0, 2])), shape=(1, 50))
    X.indices = np.array([1, column])
    with pytest.raises(DataError, match=f"column {column} is out of range; columns go from 0 to 49"):
        sparse_rows(X)


def test_columns_must_be_integers() -> None:
    X = sp.csr_array((np.ones(2, np.float32), np.array([1, 2]), np.array([0, 2])), shape=(1, 50))
    X.indices = np.array([1.7, 3.2])
    with pytest.raises(DataError, match="column numbers of type float64"):
        sparse_rows(X)
