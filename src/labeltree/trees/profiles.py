"""Label profiles: what the documents with a label look like on average: their features, or their labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, SparseRows, pointers
from labeltree.errors import DataError
from labeltree.nodes.kind import Parts
from labeltree.parallel import Pool, row_slices
from labeltree.parameter import MOST_IDS

# The strongest entries of a profile decide where its label belongs: trees from so many were as good as from
# all of them (mean similarity to the group's centroid, three data sets, arity 2 and 8), in half the time.
ENTRIES_PER_LABEL = 500
_ENTRIES_PER_TASK = 1 << 21  # at most, unless a single label has more; bounds the memory of a task
_PARTS = 64  # at most, where they are made elsewhere


def label_profiles(
    X: SparseRows,
    Y: LabelRows,
    pool: Pool,
    max_entries: int | None = None,
    kind: str = "features",
    parts: Parts | None = None,
) -> SparseRows:
    """(n_labels, n_columns): the mean of the rows with each label, scaled to length 1.

    Of ``kind`` "features" these are the rows of X; of "labels" the rows of Y, where a label counts the more
    the rarer it is: labels that occur together, or with the same ones, are similar. "both" has the columns
    of features, then those of labels, each part scaled to length 1.

    Labels without examples, or whose rows are empty, have an empty profile. With ``max_entries`` only the
    strongest entries of each are kept, and the memory of all is never needed. ``parts``, of ENTRIES_PER_LABEL
    entries, may be made elsewhere.
    """
    if X.n_rows != Y.n_rows:
        raise DataError(f"X has {X.n_rows} rows, but Y has {Y.n_rows}: each row of X needs one of Y")
    return PROFILES[kind](X, Y, pool, max_entries, parts)


def _of_labels(
    X: SparseRows, Y: LabelRows, pool: Pool, max_entries: int | None, parts: Parts | None = None
) -> SparseRows:
    return _mean_rows(_weighted_labels(Y), Y, pool, max_entries)


def _of_both(
    X: SparseRows, Y: LabelRows, pool: Pool, max_entries: int | None, parts: Parts | None = None
) -> SparseRows:
    if X.n_columns + Y.n_labels > MOST_IDS:
        raise DataError(
            f"{X.n_columns} features and {Y.n_labels} labels are more than {MOST_IDS} columns: "
            "use profiles of one kind, features or labels"
        )
    joined = _side_by_side(_mean_rows(X, Y, pool, max_entries, parts), _of_labels(X, Y, pool, max_entries))
    return joined if max_entries is None else strongest_entries(joined, max_entries)


def _weighted_labels(Y: LabelRows) -> SparseRows:
    """The labels of each row as its features, weighted as words are: 1 + ln(rows / rows with it), length 1.

    Each label is among its own features: two that always occur together have the same profile.
    """
    known = Y.indices >= 0
    indices = Y.indices[known]
    row = np.repeat(np.arange(Y.n_rows), np.diff(Y.indptr))[known]
    count = np.bincount(indices, minlength=Y.n_labels)
    weight = 1.0 + np.log(max(Y.n_rows, 1) / np.maximum(count, 1))
    squares = np.bincount(row, weight[indices] ** 2, minlength=Y.n_rows)
    values = (weight[indices] / np.sqrt(squares[row])).astype(np.float32)
    return SparseRows(pointers(np.bincount(row, minlength=Y.n_rows)), indices, values, Y.n_labels)


def _side_by_side(left: SparseRows, right: SparseRows) -> SparseRows:
    """The columns of both, those of ``right`` after those of ``left``."""
    lengths = np.stack([np.diff(left.indptr), np.diff(right.indptr)], axis=1)
    is_left = np.repeat(np.tile([True, False], left.n_rows), lengths.ravel())
    indices, values = np.empty(len(is_left), np.int32), np.empty(len(is_left), np.float32)
    indices[is_left], values[is_left] = left.indices, left.values
    indices[~is_left], values[~is_left] = right.indices + np.int32(left.n_columns), right.values
    return SparseRows(pointers(lengths.sum(axis=1)), indices, values, left.n_columns + right.n_columns)


def _mean_rows(
    X: SparseRows, Y: LabelRows, pool: Pool, max_entries: int | None, parts: Parts | None = None
) -> SparseRows:
    """The mean of the rows of X with each label, scaled to length 1."""
    sums = _Sums(X, Y, pool, max_entries)
    if parts is None or parts.elsewhere is None:
        found = pool.map(sums.of_task, range(sums.n_tasks))
    else:
        numbers = range(len(row_slices(sums.n_tasks, _PARTS)))
        missing = [number for number in numbers if not parts.has_sound(number)]
        if missing:
            parts.elsewhere(parts.name, missing, lambda number: None)
        found = [_Profiles(**parts.read(number)) for number in numbers]
    lengths, indices, values = map(list, zip(*found, strict=True))
    join = pool.space.joined
    return SparseRows(
        pointers(np.concatenate(lengths)), join(indices, np.int32), join(values, np.float32), X.n_columns
    )


def keep_profiles(X: SparseRows, Y: LabelRows, pool: Pool, parts: Parts, number: int) -> None:
    """A part of the profiles that a tree is built from, unless it is there."""
    if parts.has_sound(number):
        return
    sums = _Sums(X, Y, pool, ENTRIES_PER_LABEL)
    tasks = row_slices(sums.n_tasks, _PARTS)[number]
    found = [sums.of_task(task) for task in range(tasks.start, tasks.stop)]
    joined = _Profiles(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))
    parts.write(number, joined._asdict())


class _Profiles(NamedTuple):
    """Of some labels, one after another."""

    lengths: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]


class _Sums:
    """The profiles of all labels, in tasks that share nothing."""

    def __init__(self, X: SparseRows, Y: LabelRows, pool: Pool, max_entries: int | None) -> None:
        from labeltree.kernels.trees.shapes import group_rows_by_label

        self._X, self._space, self._max_entries = X, pool.space, max_entries
        self._indptr = np.zeros(Y.n_labels + 1, np.int64)
        self._rows = np.empty(len(Y.indices), np.int32)
        group_rows_by_label(Y.indptr, Y.indices, self._indptr, self._rows)
        self._edges, self._n_entries = _task_edges(X, self._indptr, self._rows)
        self.n_tasks = len(self._edges) - 1

    def of_task(self, task: int) -> _Profiles:
        from labeltree.kernels.trees.shapes import sum_profiles

        first, last = int(self._edges[task]), int(self._edges[task + 1])
        bound = int(self._n_entries[first:last].sum())
        indptr = np.zeros(last - first + 1, np.int64)
        indices, values = self._space.empty(bound, np.int32), self._space.empty(bound, np.float32)
        where = first, last - first, indptr, indices, values
        filled = sum_profiles(self._X, self._indptr, self._rows, *where)
        kept = SparseRows(indptr, indices[:filled], values[:filled], self._X.n_columns)
        if self._max_entries is not None:
            kept = strongest_entries(kept, self._max_entries)
        keep = self._space.kept
        return _Profiles(np.diff(kept.indptr), keep(kept.indices.copy()), keep(kept.values.copy()))


def strongest_entries(profiles: SparseRows, max_entries: int) -> SparseRows:
    """The profiles with at most so many entries each, those of the largest values."""
    from labeltree.kernels.trees.shapes import keep_strongest

    lengths = np.diff(profiles.indptr)
    if lengths.max(initial=0) <= max_entries:
        return profiles
    n_entries = int(np.minimum(lengths, max_entries).sum())
    indptr = np.zeros(profiles.n_rows + 1, np.int64)
    indices, values = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    keep_strongest(profiles, max_entries, indptr, indices, values)
    return SparseRows(indptr, indices, values, profiles.n_columns)


def _task_edges(
    X: SparseRows, label_indptr: np.ndarray, label_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where each task's labels begin, and the most entries that each label's profile can have."""
    sums = np.zeros(len(label_rows) + 1, np.int64)
    n_entries_of_row = np.diff(X.indptr)
    np.cumsum(n_entries_of_row[label_rows[: label_indptr[-1]]], out=sums[1 : label_indptr[-1] + 1])
    n_entries = np.minimum(np.diff(sums[label_indptr]), X.n_columns)
    task = np.cumsum(n_entries) // _ENTRIES_PER_TASK
    edges = np.flatnonzero(np.diff(task, prepend=-1, append=-1))
    return edges, n_entries


# By the parameter ``profiles``.
PROFILES: dict[str, Callable[[SparseRows, LabelRows, Pool, int | None, Parts | None], SparseRows]] = {
    "features": _mean_rows,
    "labels": _of_labels,
    "both": _of_both,
}
