"""The guess of how many pairs of a label and a feature there are, beside the count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from labeltree.data.pairs import guess_pairs
from labeltree.data.rows import LabelRows, SparseRows


def rows_of(X: csr_matrix, Y: csr_matrix) -> tuple[SparseRows, LabelRows]:
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    rows = SparseRows(indptr, indices, X.data.astype(np.float32), X.shape[1])
    return rows, LabelRows(Y.indptr.astype(np.int64), Y.indices.astype(np.int32), Y.shape[1])


def drawn(n_rows: int, n_columns: int, n_entries: int, seed: int) -> csr_matrix:
    """Columns of a power law, as words and labels have."""
    random = np.random.default_rng(seed)
    columns = (n_columns * random.random((n_rows, n_entries)) ** 3).astype(int)
    rows = np.repeat(np.arange(n_rows), n_entries)
    return csr_matrix((np.ones(columns.size), (rows, columns.ravel())), (n_rows, n_columns))


@pytest.mark.parametrize(("n_rows", "n_labels"), [(300, 20), (3000, 20), (3000, 2000)])
def test_about_as_many_as_there_are(n_rows: int, n_labels: int) -> None:
    X, Y = drawn(n_rows, 5000, 30, 1), drawn(n_rows, n_labels, 3, 2)
    true = (Y.T @ X).nnz
    found = guess_pairs(*rows_of(X, Y))
    assert 0.75 * true < found < 1.3 * true
    assert guess_pairs(*rows_of(X, Y)) == found


def test_nothing() -> None:
    empty = csr_matrix((3, 4))
    some = csr_matrix(random_array((3, 4), density=0.5, rng=np.random.default_rng(0)))
    assert guess_pairs(*rows_of(some, empty)) == 0
    assert guess_pairs(*rows_of(empty, csr_matrix(np.ones((3, 2))))) == 0


def test_many_rows_without_features() -> None:
    labels = csr_matrix(np.ones((500, 1)))
    assert guess_pairs(*rows_of(csr_matrix((500, 4)), labels)) == 0
