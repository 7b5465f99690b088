"""Lists of votes are merged as sums say."""

from __future__ import annotations

import numpy as np

from labeltree.data.rows import pointers, read_only
from labeltree.kernels.search.votes import add_votes

N_ROWS, N_LABELS = 40, 12


def random_votes(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pointers, labels, votes; and the same as a matrix. Some rows have none."""
    random = np.random.default_rng(seed)
    dense = random.uniform(0.1, 1.0, (N_ROWS, N_LABELS)).astype(np.float32)
    dense[random.random(dense.shape) < 0.6] = 0.0
    dense[:: seed + 3] = 0.0
    rows, labels = np.nonzero(dense)
    votes = dense[rows, labels]
    return pointers(np.bincount(rows, minlength=N_ROWS)), labels.astype(np.int32), votes, dense


def test_votes_are_added_label_by_label() -> None:
    indptr, ids, first, dense = random_votes(0)
    more_indptr, more_ids, more, other = random_votes(1)
    out = np.zeros(N_ROWS + 1, np.int64), np.empty(500, np.int32), np.empty(500)
    given = (indptr, ids, first.astype(np.float64), more_indptr, more_ids, 0.3 * more.astype(np.float64))
    n = add_votes(*[read_only(array) for array in given], *out)
    assert n == out[0][-1] == np.count_nonzero(dense + other)
    found = np.zeros((N_ROWS, N_LABELS))
    found[np.repeat(np.arange(N_ROWS), np.diff(out[0])), out[1][:n]] = out[2][:n]
    assert np.array_equal(found, dense.astype(np.float64) + 0.3 * other.astype(np.float64))
    assert all(np.all(np.diff(out[1][a:b]) > 0) for a, b in zip(out[0], out[0][1:], strict=False))
