"""Entries of rows, by level, as the reference has them; by column and by row they are the same."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from labeltree.data.rows import pointers
from labeltree.kernels.neighbours.building import (
    NOT_KEPT,
    count_chosen,
    find_levels,
    largest_value,
    list_by_column,
    list_by_row,
)
from labeltree.reference.neighbours import entry_levels

N_COLUMNS = 6
values = st.floats(-1.0, 4.0, width=32).filter(lambda value: value == 0 or abs(value) > 1e-3)
rows_of_values = st.lists(st.dictionaries(st.integers(0, N_COLUMNS + 2), values, max_size=6), max_size=8)


class Built:
    """Rows as arrays, and what the kernels make of them."""

    def __init__(self, rows: list[dict[int, float]], weight: np.ndarray) -> None:
        self.indptr = pointers([len(row) for row in rows])
        self.indices = np.array([column for row in rows for column in sorted(row)], np.int32)
        own = [row[column] for row in rows for column in sorted(row)]
        arrays = self.indptr, self.indices, np.array(own, np.float32)
        norm = np.empty(len(rows))
        largest = largest_value(*arrays, N_COLUMNS, weight, norm) or 1.0
        self.levels = np.float32(largest) * np.geomspace(0.01, 1.0, 16).astype(np.float32)
        bounds = np.sqrt(self.levels[1:] * self.levels[:-1])
        self.level, self.n_rows = np.empty(len(own), np.uint8), np.zeros(N_COLUMNS, np.int64)
        least = np.float32(0.5) * self.levels[0]
        find_levels(*arrays, N_COLUMNS, weight, norm, least, bounds, self.level, self.n_rows)

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.indices, self.level

    def kept(self) -> list[dict[int, int]]:
        found = []
        for start, end in zip(self.indptr[:-1], self.indptr[1:], strict=True):
            pairs = zip(self.indices[start:end].tolist(), self.level[start:end].tolist(), strict=True)
            found.append({column: level for column, level in pairs if level != NOT_KEPT})
        return found


def compared(rows: list[dict[int, float]]) -> list[dict[int, float]]:
    return [{c: float(np.float32(v)) for c, v in sorted(row.items()) if c < N_COLUMNS} for row in rows]


@given(rows_of_values, st.integers(0, 3))
def test_levels_are_those_of_the_reference(rows: list[dict[int, float]], seed: int) -> None:
    weight = np.random.default_rng(seed).integers(0, 3, len(rows)).astype(np.float32)
    built = Built(rows, weight)
    # A row without any length has no values to compare.
    counts = np.array([w * any(row.values()) for w, row in zip(weight, compared(rows), strict=True)])
    kept, levels = entry_levels(compared(rows), counts.astype(np.float32))
    assert np.array_equal(built.levels, levels)
    assert built.kept() == kept
    columns = [column for row in kept for column in row]
    assert built.n_rows.tolist() == [columns.count(column) for column in range(N_COLUMNS)]


@given(rows_of_values, st.lists(st.booleans(), min_size=N_COLUMNS, max_size=N_COLUMNS))
def test_lists_are_the_entries(rows: list[dict[int, float]], chosen: list[bool]) -> None:
    built = Built(rows, np.ones(len(rows), np.float32))
    is_chosen = np.array([*chosen, False, False, False])  # columns that are not compared are never kept
    expected = [{c: level for c, level in row.items() if is_chosen[c]} for row in built.kept()]
    count = np.empty(len(rows), np.int64)
    count_chosen(*built.entries, is_chosen, count)
    assert count.tolist() == [len(row) for row in expected]

    start = pointers(np.where(is_chosen[:N_COLUMNS], built.n_rows, 0))
    listed, levels = np.empty(start[-1], np.int32), np.empty(start[-1], np.uint8)
    list_by_column(*built.entries, is_chosen, start[:-1].copy(), listed, levels)
    for column in range(N_COLUMNS):
        own = slice(start[column], start[column + 1])
        of_column = {n: row[column] for n, row in enumerate(expected) if column in row}
        assert listed[own].tolist() == sorted(of_column)
        assert levels[own].tolist() == [of_column[row] for row in sorted(of_column)]

    place = np.where(is_chosen, np.cumsum(is_chosen) - 1, -1).astype(np.int32)
    places, levels = np.empty(count.sum(), np.int32), np.empty(count.sum(), np.uint8)
    list_by_row(*built.entries, place, places, levels)
    assert places.tolist() == [int(place[column]) for row in expected for column in row]
    assert levels.tolist() == [level for row in expected for level in row.values()]


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_nothing_above_zero(value: float) -> None:
    built = Built([{0: value}, {}], np.ones(2, np.float32))
    assert built.kept() == [{}, {}]
    assert np.isfinite(built.levels).all()
