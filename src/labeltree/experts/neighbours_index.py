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

from labeltree.data.rows import Arrays, LabelRows, SparseRows, pointers, read_only, read_only_rows
from labeltree.errors import CorruptedModelError
from labeltree.kernels.neighbours.building import (
    count_chosen,
    find_levels,
    largest_value,
    list_by_column,
    list_by_row,
)
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
from labeltree.parallel import Pool
from labeltree.storage.space import IN_MEMORY, Space
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

    column_lengths: NDArray[np.uint8]  # (n_columns,) of those that are compared, the first ones
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


def build_index(
    X: SparseRows, Y: LabelRows, weight: NDArray[np.float32], pool: Pool | None = None
) -> IndexTensors:
    """An index of rows; those of weight 0, and values below 0, are not in it.

    ``X`` may have more entries than its columns say: those beyond ``n_columns`` are not compared.
    """
    space = IN_MEMORY if pool is None else pool.space
    arrays = read_only_rows(X[:3])
    entries = _find_levels(arrays, X.n_columns, weight, space)
    chosen = _choose_columns(entries, X.n_columns)
    column_lengths, column_lists = _lists_of_columns(entries, chosen.is_listed, space)
    row_lengths, row_lists = _lists_of_rows(entries, chosen.frequent, X.n_columns, space)
    is_weighted = bool(np.any(weight != 1))
    return IndexTensors(
        column_lengths, column_lists, row_lengths, row_lists, chosen.frequent, entries.levels,
        Y.indptr, Y.indices, weight if is_weighted else np.empty(0, np.float32),
    )  # fmt: skip


class _Entries(NamedTuple):
    """The entries of the rows, and which level each has."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    level: NDArray[np.uint8]  # or NOT_KEPT
    levels: NDArray[np.float32]  # (N_LEVELS,)
    n_rows: NDArray[np.int64]  # (n_columns,) those in which a column is kept
    n_compared: int  # entries, kept or not

    @property
    def total_rows(self) -> int:
        return len(self.indptr) - 1


def _find_levels(arrays: Arrays, n_columns: int, weight: NDArray[np.float32], space: Space) -> _Entries:
    indptr, indices, values = arrays
    norm, weight = np.empty(len(indptr) - 1), read_only(weight)
    largest = largest_value(indptr, indices, values, n_columns, weight, norm) or 1.0
    levels = np.float32(largest) * np.geomspace(1 / _RANGE, 1.0, N_LEVELS).astype(np.float32)
    bounds = read_only(np.sqrt(levels[1:] * levels[:-1]))
    level, n_rows = space.empty(len(indices), np.uint8), np.zeros(n_columns, np.int64)
    least = np.float32(0.5) * levels[0]
    find_levels(*arrays, n_columns, weight, read_only(norm), least, bounds, level, n_rows)
    n_compared = int(np.count_nonzero(indices < n_columns))
    return _Entries(indptr, indices, read_only(level), levels, n_rows, n_compared)


class _Chosen(NamedTuple):
    is_listed: NDArray[np.bool_]  # (n_columns,)
    frequent: NDArray[np.int32]


def _choose_columns(entries: _Entries, n_columns: int) -> _Chosen:
    n_rows, total_rows = entries.n_rows, entries.total_rows
    sizes, n_of_size = np.unique(n_rows[n_rows >= _LEAST_ROWS], return_counts=True)
    postings = np.cumsum(n_of_size * sizes.astype(np.float64) ** 2) / max(1, total_rows)
    affordable = MEAN_POSTINGS if total_rows <= _MANY_ROWS else MEAN_POSTINGS / 2
    is_short = (postings <= affordable) & (sizes <= MOST_POSTINGS // 2)
    longest = sizes[is_short].max(initial=0)
    limit = max(BYTES_PER_ENTRY * entries.n_compared, _SMALL)
    per_row = np.empty(total_rows, np.int64)

    def total_bytes(most: int) -> int:
        """With columns of at most so many rows."""
        lists = n_rows[(n_rows >= _LEAST_ROWS) & (n_rows <= min(most, longest))]
        is_frequent = (n_rows > longest) & (n_rows <= most)
        n_frequent = int(np.count_nonzero(is_frequent))
        in_lists = _list_bytes(lists, total_rows).sum() + n_columns + 2 * PADDING + 4 * N_LEVELS
        if not n_frequent:
            return int(in_lists)
        count_chosen(*entries[:3], read_only(is_frequent), per_row)
        return int(in_lists + _list_bytes(per_row, n_frequent).sum() + total_rows + 4 * n_frequent)

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


def _lists_of_columns(
    entries: _Entries, is_listed: NDArray[np.bool_], space: Space
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Lengths and data of the lists of rows."""
    n = np.where(is_listed, entries.n_rows, 0)
    start = pointers(n)
    rows, levels = space.empty(int(start[-1]), np.int32), space.empty(int(start[-1]), np.uint8)
    list_by_column(*entries[:3], read_only(is_listed), start[:-1].copy(), rows, levels)
    return pack_sorted(start, rows, levels, entries.total_rows, space)


def _lists_of_rows(
    entries: _Entries, frequent: NDArray[np.int32], n_columns: int, space: Space
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Lengths and data of the lists of places in ``frequent``; of no row where that is empty."""
    if not len(frequent):
        nothing = np.empty(0, np.int32)
        return pack_sorted(np.zeros(1, np.int64), nothing, nothing.astype(np.uint8), 0, space)
    place = np.full(n_columns, -1, np.int32)
    place[frequent] = np.arange(len(frequent), dtype=np.int32)
    n = np.empty(entries.total_rows, np.int64)
    count_chosen(*entries[:3], read_only(place >= 0), n)
    start = pointers(n)
    places, levels = space.empty(int(start[-1]), np.int32), space.empty(int(start[-1]), np.uint8)
    list_by_row(*entries[:3], read_only(place), places, levels)
    return pack_sorted(start, places, levels, len(frequent), space)


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


def pack_sorted(
    start: NDArray[np.int64],
    ids: NDArray[np.int32],
    levels: NDArray[np.uint8],
    n_ids: int,
    space: Space = IN_MEMORY,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Lengths and data of lists that begin at ``start``, whose ids rise."""
    n = np.diff(start)
    length = _length_code(n)
    out = space.lasting(int(_list_bytes(n, n_ids).sum()) + PADDING, np.uint8)
    out[:] = 0
    empty = open_lists(length, out, n_ids)
    pack_lists(empty, read_only(start), read_only(ids), read_only(levels), out)
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
    column_lengths = take("column_lengths", np.uint8)
    if len(column_lengths) > n_columns:
        raise CorruptedModelError(f"{prefix}.column_lengths has more than {n_columns} columns")
    n_columns = len(column_lengths)
    if len(frequent) and (frequent[0] < 0 or frequent[-1] >= n_columns or np.any(np.diff(frequent) <= 0)):
        raise CorruptedModelError(f"{prefix}.frequent are not rising columns below {n_columns}")
    if not np.all((levels >= 0) & (levels <= 1)):
        raise CorruptedModelError(f"{prefix}.levels are not between 0 and 1")
    weight = take("weight", np.float32)
    if len(weight) not in (0, n_rows) or not np.all((weight >= 0) & np.isfinite(weight)):
        raise CorruptedModelError(f"{prefix}.weight is not {n_rows} numbers of at least 0")
    tensors = IndexTensors(
        column_lengths, take("column_lists", np.uint8),
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
