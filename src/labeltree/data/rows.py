"""The shapes that data has inside the package: sparse rows of features, rows of label ids, blocks of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.storage.space import IN_MEMORY, Space

Arrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]  # indptr, indices, values


class SparseRows(NamedTuple):
    """A CSR matrix without SciPy: row i is ``indices[indptr[i]:indptr[i + 1]]``, and so for values."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    indices: NDArray[np.int32]  # sorted and unique within a row
    values: NDArray[np.float32]  # finite
    n_columns: int

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1


class LabelRows(NamedTuple):
    """The label ids of each row; an id of -1 is a label the model has never seen (it can only be missed)."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    indices: NDArray[np.int32]  # sorted within a row; unique but for -1
    n_labels: int

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def examples_per_label(self) -> float:
        """The mean over the labels that occur; of known labels only."""
        return len(self.indices) / max(1, int(np.count_nonzero(np.bincount(self.indices))))


class TrainingRows(NamedTuple):
    """Rows to train on."""

    X: SparseRows
    Y: LabelRows
    weight: NDArray[np.float32]  # (n_rows,) what each row counts


def read_only(array: NDArray) -> NDArray:
    """A view for kernels, which are compiled once per kind of array: they get all they only read this way."""
    view = array.view()
    view.setflags(write=False)  # half the time of setting the flag: a single row has ten such arrays
    return view


def read_only_rows(arrays: Arrays) -> Arrays:
    """So for the arrays of rows."""
    return read_only(arrays[0]), read_only(arrays[1]), read_only(arrays[2])


def pointers(lengths: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """The ``indptr`` of rows of these lengths."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    # As np.cumsum, which takes longer to begin than a single row's lengths are worth.
    np.add.accumulate(lengths, dtype=np.int64, out=indptr[1:])
    return indptr


def distinct_labels(
    rows: NDArray[np.int64], ids: NDArray[Any], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Pointers and ids of each row's labels, given as pairs in any order: sorted, unique but for -1."""
    order = np.lexsort((ids, rows))
    rows, ids = rows[order], ids[order]
    keep = np.ones(len(ids), bool)
    keep[1:] = (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1]) | (ids[1:] < 0)
    return pointers(np.bincount(rows[keep], minlength=n_rows)), ids[keep]


def without_entries(rows: SparseRows) -> NDArray[np.bool_]:
    """(n_rows,) whether all of a row's values are 0."""
    return np.diff(pointers(rows.values != 0)[rows.indptr]) == 0


def emptied(rows: SparseRows, chosen: NDArray[np.bool_]) -> SparseRows:
    """The same rows, without the entries of the chosen ones."""
    return keep_entries(rows, np.repeat(~chosen, np.diff(rows.indptr)))


def keep_entries(rows: SparseRows, keep: NDArray[np.bool_]) -> SparseRows:
    """The same rows with these of their entries only, in arrays of their own."""
    indptr = pointers(keep)[rows.indptr]
    return SparseRows(indptr, rows.indices[keep], rows.values[keep], rows.n_columns)


def take_rows(arrays: Arrays, rows: NDArray[np.int64]) -> Arrays:
    """The chosen rows, in their order; the arrays themselves if that are all."""
    indptr, indices, values = arrays
    if len(rows) == len(indptr) - 1:
        return arrays
    new_indptr, entries = entries_of(indptr, rows)
    return new_indptr, indices[entries], values[entries]


def entries_of(
    indptr: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of chosen rows: where each begins among them, and the numbers of their entries."""
    lengths = indptr[rows + 1] - indptr[rows]
    new_indptr = pointers(lengths)
    return new_indptr, np.repeat(indptr[rows] - new_indptr[:-1], lengths) + np.arange(new_indptr[-1])


def first_rows(rows: SparseRows, n: int) -> SparseRows:
    """At most n rows, without a copy."""
    indptr = rows.indptr[: n + 1]
    return SparseRows(indptr, rows.indices[: indptr[-1]], rows.values[: indptr[-1]], rows.n_columns)


def join_rows(parts: Sequence[SparseRows], n_columns: int, space: Space = IN_MEMORY) -> SparseRows:
    """The rows of all parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    return SparseRows(
        _joined_pointers([part.indptr for part in parts]),
        space.joined([part.indices for part in parts], np.int32),
        space.joined([part.values for part in parts], np.float32),
        n_columns,
    )


def join_labels(parts: Sequence[LabelRows], n_labels: int) -> LabelRows:
    """The labels of all parts' rows, one part after another."""
    if len(parts) == 1:
        return parts[0]
    indices = np.concatenate([np.empty(0, np.int32), *(part.indices for part in parts)])
    return LabelRows(_joined_pointers([part.indptr for part in parts]), indices, n_labels)


def _joined_pointers(indptrs: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return pointers(np.concatenate([np.empty(0, np.int64), *(np.diff(indptr) for indptr in indptrs)]))


class RowParts:
    """Rows that come in parts; together they are as large again, so parts are let go when they are joined."""

    def __init__(self, space: Space = IN_MEMORY) -> None:
        self._space = space
        self._lengths: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        self._indices: list[NDArray[np.int32]] = []
        self._values: list[NDArray[np.float32]] = []

    def add(
        self, lengths: NDArray[np.int64], indices: NDArray[np.int32], values: NDArray[np.float32]
    ) -> None:
        """Rows of these lengths; arrays that nobody else changes."""
        self._lengths.append(lengths)
        self._indices.append(self._space.kept(indices))
        self._values.append(self._space.kept(values))

    def rows(self, n_columns: int) -> SparseRows:
        """All of them; then there are none."""
        indptr = pointers(np.concatenate(self._lengths))
        indices = self._space.joined(self._indices, np.int32)
        return SparseRows(indptr, indices, self._space.joined(self._values, np.float32), n_columns)


class Block(NamedTuple):
    """Consecutive rows of one source. In fastText lines the labels are words of the text span itself
    (those that start with the label prefix); other formats list them as spans of their own."""

    source: str  # file name for messages
    buffer: NDArray[np.uint8]  # the bytes all spans point into; words in them are separated by white space
    text_start: NDArray[np.int64]  # (n_rows,)
    text_end: NDArray[np.int64]  # (n_rows,)
    label_start: NDArray[np.int64]  # (n_row_labels,)
    label_end: NDArray[np.int64]  # (n_row_labels,)
    label_indptr: NDArray[np.int64]  # (n_rows + 1,) row i has the spans label_indptr[i]:label_indptr[i + 1]
    line: NDArray[np.int64]  # (n_rows,) line number in the source, from 1
    labels_in_text: bool  # words of the text with the label prefix are labels (fastText lines)
    unit: str = "line"  # what is numbered: "row" where a source has no lines

    @property
    def n_rows(self) -> int:
        return len(self.text_start)
