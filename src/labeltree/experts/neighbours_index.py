"""The training rows as an index of similar ones, small enough for the model file.

Every column of at least two rows is in it once: those of few rows as lists of rows, by which similar rows are
found, those of many as lists by rows, which are looked at for the rows that were found. Where the index would
get larger than BYTES_PER_ENTRY for each entry of the rows, the most frequent columns, which tell least, are
left out. Values are rounded to one of 16 levels, each a third larger than the one below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, SparseRows, pointers, read_only
from labeltree.errors import CorruptedModelError
from labeltree.kernels.neighbours.lists import (
    GROUP,
    LEVEL_BITS,
    N_LEVELS,
    PADDING,
    Lists,
    lists_fit,
    pack_lists,
)
from labeltree.kernels.neighbours.search import MOST_POSTINGS
from labeltree.storage.tensors import take_tensor

BYTES_PER_ENTRY = 1.5
MEAN_POSTINGS = 14_000  # rows in the lists of a mean row's columns
_MANY_ROWS = 1 << 18  # their sums do not fit into a core's cache, and a list takes nearly twice as long
_SMALL = 1 << 16  # bytes that no index is too large for
_LEAST_ROWS = 2  # of a column: one of a single row can only find that
_RANGE = 100.0  # the highest level is so many times the lowest one
_ENTRIES_LOOKED_AT = 8_000  # of the candidates for a mean row ...
_ENTRIES_OF_CANDIDATE = 6  # ... that take as long as finding it
_CANDIDATES = 100, 2000  # fewest and most

# How many ids lists can have: any number up to 128, then steps of 5 %. Lists are cut to fit.
LENGTHS = np.array([*range(129), *(int(128 * 2 ** (i / 14)) for i in range(1, 128))], np.int64)


class IndexTensors(NamedTuple):
    """What a model file holds of the index; a list's length is a place in LENGTHS."""

    column_lengths: NDArray[np.uint8]  # (n_columns,)
    column_lists: NDArray[np.uint8]  # of rows
    row_lengths: NDArray[np.uint8]  # (n_rows,) or, where no column is frequent, none
    row_lists: NDArray[np.uint8]  # of places in `frequent`
    frequent: NDArray[np.int32]  # columns, rising
    levels: NDArray[np.float32]  # (N_LEVELS,) values of entries, rising
    label_start: NDArray[np.int64]  # (n_rows + 1,)
    labels: NDArray[np.int32]  # of each row, one after another
    weight: NDArray[np.float32]  # (n_rows,) or, where all are 1, none

    @property
    def index_bytes(self) -> int:
        """Without labels and weights."""
        return sum(array.nbytes for array in self[:6])

    @property
    def n_rows(self) -> int:
        return len(self.label_start) - 1


def build_index(X: SparseRows, Y: LabelRows, weight: NDArray[np.float32]) -> IndexTensors:
    """An index of rows; those of weight 0, and values below 0, are not in it."""
    row_of = np.repeat(np.arange(X.n_rows, dtype=np.int32), np.diff(X.indptr))
    norm = np.sqrt(np.bincount(row_of, np.square(X.values, dtype=np.float64), X.n_rows))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (X.values / norm[row_of]).astype(np.float32)
    largest = float(values.max(initial=0.0, where=(weight > 0)[row_of] & (values > 0))) or 1.0
    levels = np.float32(largest) * np.geomspace(1 / _RANGE, 1.0, N_LEVELS).astype(np.float32)
    is_kept = (values >= 0.5 * levels[0]) & (weight > 0)[row_of]
    rows, columns, level = row_of[is_kept], X.indices[is_kept], _level_of(values[is_kept], levels)
    del row_of, values, is_kept
    chosen = _choose_columns(rows, columns, X)
    by_column = chosen.is_listed[columns]
    column_lengths, column_lists = pack_entries(
        columns[by_column], rows[by_column], level[by_column], X.n_columns, X.n_rows
    )
    place = np.full(X.n_columns, -1, np.int32)
    place[chosen.frequent] = np.arange(len(chosen.frequent), dtype=np.int32)
    by_row = place[columns] >= 0
    n_lists = X.n_rows if len(chosen.frequent) else 0
    row_lengths, row_lists = pack_entries(
        rows[by_row], place[columns[by_row]], level[by_row], n_lists, len(chosen.frequent)
    )
    is_weighted = bool(np.any(weight != 1))
    return IndexTensors(
        column_lengths, column_lists, row_lengths, row_lists, chosen.frequent, levels,
        Y.indptr, Y.indices, weight if is_weighted else np.empty(0, np.float32),
    )  # fmt: skip


def _level_of(values: NDArray[np.float32], levels: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The nearest level of each value, by their ratio."""
    return np.searchsorted(np.sqrt(levels[1:] * levels[:-1]), values, side="right").astype(np.uint8)


class _Chosen(NamedTuple):
    is_listed: NDArray[np.bool_]  # (n_columns,)
    frequent: NDArray[np.int32]


def _choose_columns(rows: NDArray[np.int32], columns: NDArray[np.int32], X: SparseRows) -> _Chosen:
    """Of all that have an entry, given by its row and column."""
    n_rows = np.bincount(columns, minlength=X.n_columns)  # of each column
    sizes, n_of_size = np.unique(n_rows[n_rows >= _LEAST_ROWS], return_counts=True)
    postings = np.cumsum(n_of_size * sizes.astype(np.float64) ** 2) / max(1, X.n_rows)
    affordable = MEAN_POSTINGS if X.n_rows <= _MANY_ROWS else MEAN_POSTINGS / 2
    is_short = (postings <= affordable) & (sizes <= MOST_POSTINGS // 2)
    longest = sizes[is_short].max(initial=0)
    is_long = n_rows[columns] > longest
    of_long = rows[is_long], n_rows[columns[is_long]]
    limit = max(BYTES_PER_ENTRY * len(X.indices), _SMALL)

    def total_bytes(most: int) -> int:
        """With columns of at most so many rows."""
        lists = n_rows[(n_rows >= _LEAST_ROWS) & (n_rows <= min(most, longest))]
        n_frequent = int(np.count_nonzero((n_rows > longest) & (n_rows <= most)))
        in_lists = _list_bytes(lists, X.n_rows).sum() + X.n_columns + 2 * PADDING + 4 * N_LEVELS
        if not n_frequent:
            return int(in_lists)
        per_row = np.bincount(of_long[0][of_long[1] <= most], minlength=X.n_rows)
        return int(in_lists + _list_bytes(per_row, n_frequent).sum() + X.n_rows + 4 * n_frequent)

    low, high = 0, len(sizes)  # so many sizes fit
    if total_bytes(int(sizes.max(initial=0))) <= limit:
        low = high
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total_bytes(int(sizes[middle - 1])) <= limit else (low, middle - 1)
    most = sizes[low - 1] if low else 0
    is_kept = (n_rows >= _LEAST_ROWS) & (n_rows <= most)
    return _Chosen(
        is_kept & (n_rows <= longest), np.flatnonzero(is_kept & (n_rows > longest)).astype(np.int32)
    )


def _list_bytes(n: NDArray[np.int64], n_ids: int) -> NDArray[np.int64]:
    return _layout(n_ids)[1][_length_code(n)]


def _length_code(n: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Of the longest lists that these numbers of ids fill."""
    return (np.searchsorted(LENGTHS, n, side="right") - 1).astype(np.uint8)


def _layout(n_ids: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Low bits of an id, and bytes, of a list of each of LENGTHS with ids below ``n_ids``."""
    ratio = n_ids // np.maximum(LENGTHS, 1)
    low_bits = np.frexp(np.maximum(ratio, 1).astype(np.float64))[1].astype(np.int64) - 1
    fields = (LENGTHS * (low_bits + LEVEL_BITS) + 7) // 8
    upper = ((max(n_ids - 1, 0) >> low_bits) + LENGTHS + 7) // 8
    return low_bits, np.where(LENGTHS > 0, fields + upper, 0)


def pack_entries(
    lists: NDArray[np.int32], ids: NDArray[np.int32], levels: NDArray[np.uint8], n_lists: int, n_ids: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Lengths and data of lists, given as pairs whose ids rise for each list."""
    order = np.argsort(lists, kind="stable")
    n = np.bincount(lists, minlength=n_lists)
    length = _length_code(n)
    out = np.zeros(int(_list_bytes(n, n_ids).sum()) + PADDING, np.uint8)
    empty = open_lists(length, out, n_ids)
    pack_lists(empty, read_only(pointers(n)), read_only(ids[order]), read_only(levels[order]), out)
    return length, out


def open_lists(length: NDArray[np.uint8], data: NDArray[np.uint8], n_ids: int) -> Lists:
    """Lists for the kernels."""
    low_bits, n_bytes = _layout(n_ids)
    start = pointers(
        np.add.reduceat(n_bytes[length], np.arange(0, len(length), GROUP)) if len(length) else []
    )
    of_length = read_only(LENGTHS), read_only(low_bits), read_only(n_bytes)
    return Lists(*of_length, read_only(start), read_only(length), read_only(data))


class OpenIndex(NamedTuple):
    """The lists of an index, and what kernels must know of them."""

    by_column: Lists
    by_row: Lists
    n_candidates: int


def open_index(tensors: IndexTensors) -> OpenIndex:
    by_column = open_lists(tensors.column_lengths, tensors.column_lists, tensors.n_rows)
    by_row = open_lists(tensors.row_lengths, tensors.row_lists, len(tensors.frequent))
    if not len(by_row.length):
        return OpenIndex(by_column, by_row, 0)
    of_candidate = LENGTHS[by_row.length].mean() + _ENTRIES_OF_CANDIDATE
    n_candidates = int(np.clip(_ENTRIES_LOOKED_AT / of_candidate, *_CANDIDATES))
    return OpenIndex(by_column, by_row, n_candidates)


def take_index(saved: Mapping[str, NDArray], prefix: str, n_columns: int, n_labels: int) -> IndexTensors:
    """The tensors of a model file, checked: kernels take them on trust."""

    def take(name: str, dtype: Any, length: int | None = None) -> NDArray:
        return take_tensor(saved, f"{prefix}.{name}", dtype, (length,))

    label_start, labels = take("label_start", np.int64), take("labels", np.int32)
    n_rows = len(label_start) - 1
    if (
        n_rows < 0
        or label_start[0] != 0
        or label_start[-1] != len(labels)
        or np.any(np.diff(label_start) < 0)
    ):
        raise CorruptedModelError(f"{prefix}.label_start does not divide {len(labels)} labels among rows")
    if len(labels) and not 0 <= labels.min() <= labels.max() < n_labels:
        raise CorruptedModelError(f"{prefix}.labels are not below {n_labels}")
    frequent, levels = take("frequent", np.int32), take("levels", np.float32, N_LEVELS)
    if len(frequent) and (frequent[0] < 0 or frequent[-1] >= n_columns or np.any(np.diff(frequent) <= 0)):
        raise CorruptedModelError(f"{prefix}.frequent are not rising columns below {n_columns}")
    if not np.all((levels >= 0) & (levels <= 1)):
        raise CorruptedModelError(f"{prefix}.levels are not between 0 and 1")
    weight = take("weight", np.float32)
    if len(weight) not in (0, n_rows) or not np.all((weight >= 0) & np.isfinite(weight)):
        raise CorruptedModelError(f"{prefix}.weight is not {n_rows} numbers of at least 0")
    tensors = IndexTensors(
        take("column_lengths", np.uint8, n_columns), take("column_lists", np.uint8),
        take("row_lengths", np.uint8, n_rows if len(frequent) else 0), take("row_lists", np.uint8),
        frequent, levels, label_start, labels, weight,
    )  # fmt: skip
    _check_lists(tensors, prefix)
    return tensors


def _check_lists(tensors: IndexTensors, prefix: str) -> None:
    opened = open_index(tensors)
    for name, lists, n_ids in (
        ("column_lists", opened.by_column, tensors.n_rows),
        ("row_lists", opened.by_row, len(tensors.frequent)),
    ):
        expected = int(lists.start[-1]) + PADDING
        if len(lists.data) != expected:
            raise CorruptedModelError(f"{prefix}.{name} has {len(lists.data)} bytes instead of {expected}")
        if not lists_fit(lists, n_ids):
            raise CorruptedModelError(f"{prefix}.{name} are not lists of rising numbers below {n_ids}")
    too_long = LENGTHS[tensors.column_lengths.max(initial=0)] > MOST_POSTINGS
    if too_long or np.any(tensors.column_lengths[tensors.frequent] != 0):
        raise CorruptedModelError(f"{prefix}.column_lengths has a list that is too long, or frequent too")
