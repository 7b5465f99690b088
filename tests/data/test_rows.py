"""The shapes of data: pointers to rows, and parts joined to a whole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from labeltree.data.rows import LabelRows, SparseRows, distinct_labels, join_labels, join_rows, pointers


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], [0]),
        ([2, 0, 3], [0, 2, 2, 5]),
        (np.array([], bool), [0]),
        (np.array([True, False, True]), [0, 1, 1, 2]),
        (np.array([200, 100], np.uint8), [0, 200, 300]),
        (np.array([2**31 - 1, 1], np.int32), [0, 2**31 - 1, 2**31]),
    ],
)
def test_pointers(lengths: Any, expected: list[int]) -> None:
    found = pointers(lengths)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def rows_of(*rows: list[int]) -> SparseRows:
    flat = np.array([column for row in rows for column in row], np.int32)
    return SparseRows(pointers([len(row) for row in rows]), flat, flat.astype(np.float32) / 2, 9)


@pytest.mark.parametrize("cuts", [[], [1], [0, 2], [1, 1, 3]])
def test_joined_parts_are_the_whole(cuts: list[int]) -> None:
    rows = [[1, 2], [], [3], [0, 4, 8]]
    edges = [0, *cuts, len(rows)]
    parts = [rows_of(*rows[start:stop]) for start, stop in pairwise(edges)]
    whole = rows_of(*rows)
    joined = join_rows(parts, 9)
    assert joined.n_columns == 9
    for one, other in zip(joined[:3], whole[:3], strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    labels = join_labels([LabelRows(part.indptr, part.indices, 9) for part in parts], 9)
    assert labels.indptr.tolist() == whole.indptr.tolist()
    assert labels.indices.tolist() == whole.indices.tolist()
    assert labels.indices.dtype == np.int32


def test_distinct_labels_are_sorted_and_unique_but_for_unknown_ones() -> None:
    rows = np.array([2, 0, 2, 0, 2, 2, 2], np.int64)
    ids = np.array([5, 3, 1, 3, 5, -1, -1], np.int32)
    indptr, merged = distinct_labels(rows, ids, 4)
    assert indptr.tolist() == [0, 1, 1, 5, 5]
    assert merged.tolist() == [3, -1, -1, 1, 5]
    assert merged.dtype == np.int32


def test_no_parts_are_no_rows() -> None:
    assert (join_rows([], 3).n_rows, join_rows([], 3).n_columns) == (0, 3)
    assert (join_labels([], 3).n_rows, join_labels([], 3).n_labels) == (0, 3)


def test_labels_without_examples_do_not_make_the_others_rare() -> None:
    Y = LabelRows(np.array([0, 2, 3, 3]), np.array([1, 4, 4], np.int32), 100)
    assert Y.examples_per_label == 1.5
    assert LabelRows(np.array([0]), np.empty(0, np.int32), 3).examples_per_label == 0.0
