"""What a row has in common with given training rows: how much each of its columns makes them similar."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Matrix
from labeltree.kernels.jit import kernel
from labeltree.kernels.neighbours.lists import N_LEVELS, place_of_list, read_list, take_entry
from labeltree.kernels.neighbours.search import (
    WEIGHT_BITS,
    choose_lists,
    make_work,
    read_index,
    read_scratch,
)
from labeltree.kernels.sorting import number_of, place_of


class Finder(NamedTuple):
    """Notes what a column says to the rows that are asked for."""

    places: NDArray[np.uint16]  # (n_rows,) 1 + the place of a row that is asked for, else 0
    of_level: NDArray[np.int64]  # (N_LEVELS,)
    out: Matrix[np.int64]  # (n_asked, n_entries)


@take_entry.of(Finder)
def _take_entry_finder(finder, state, id, level):
    """The state is the entry of the row whose column is read."""
    place = finder.places[id]
    if place > 0:
        finder.out[np.int64(place) - 1, state] = finder.of_level[level]
    return state


class Spreader(NamedTuple):
    """Gives a training row's frequent columns to the entries of the row."""

    weights: NDArray[np.int64]  # (n_frequent,) of the row's columns
    entries: NDArray[np.int64]  # (n_frequent,) where these are in the row
    value_of: NDArray[np.int64]
    out: Matrix[np.int64]


@take_entry.of(Spreader)
def _take_entry_spreader(spreader, state, id, level):
    """The state is the place of the training row."""
    weight = spreader.weights[id]
    if weight > 0:
        amount = weight * spreader.value_of[level] >> WEIGHT_BITS
        spreader.out[state, spreader.entries[id]] = amount
    return state


@kernel
def fill_shared(index_table, scratch_table, indptr, indices, values, rows, out_shared):
    """(n_rows, n_entries) what each entry of one row adds to the similarity of the given training rows.

    In the whole numbers of the search, whose sums are its similarities. As
    :func:`labeltree.reference.neighbours.shared`.
    """
    index, scratch = read_index(index_table, ()), read_scratch(scratch_table, ())
    work = make_work(index, indptr, np.int64(1))
    n_lists, n_frequent = choose_lists(index, scratch, indices, values, indptr[0], indptr[1], work)
    out_shared[:] = 0
    lists, places, of_level = index.by_column, scratch.sums, work.of_level
    for k in range(len(rows)):
        places[rows[k]] = np.uint16(k + 1)
    finder = Finder(places, of_level, out_shared)
    for k in range(n_lists):
        column, weight = place_of(work.keys[k]), -number_of(work.keys[k])
        for level in range(N_LEVELS):
            of_level[level] = max(1, (weight * index.levels[level]) >> WEIGHT_BITS)
        entry = np.int64(np.searchsorted(indices, np.int32(column)))
        read_list(lists, column, place_of_list(lists, column), finder, entry)
    for k in range(len(rows)):
        places[rows[k]] = 0
    if n_frequent == 0:
        return
    entries = np.empty(len(scratch.weights), np.int64)
    for k in range(n_frequent):
        column = index.frequent[work.places[k]]
        entries[work.places[k]] = np.searchsorted(indices, column)
    spreader = Spreader(scratch.weights, entries, index.levels, out_shared)
    for k in range(len(rows)):
        row = np.int64(rows[k])
        read_list(index.by_row, row, place_of_list(index.by_row, row), spreader, np.int64(k))
    for k in range(n_frequent):
        scratch.weights[work.places[k]] = 0
