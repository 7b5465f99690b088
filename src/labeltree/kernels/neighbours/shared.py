"""The training rows that are similar to a row, and how much each of its columns makes them so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Matrix
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.neighbours.lists import N_LEVELS, place_of_list, read_list, take_entry
from labeltree.kernels.neighbours.search import (
    ONE,
    WEIGHT_BITS,
    add_frequent,
    choose_lists,
    keep_row,
    make_work,
    read_index,
    read_scratch,
    take_candidates,
)
from labeltree.kernels.sorting import number_of, place_of, select_largest

_PLACE = 0xFFFFFFFF


class Recorder(NamedTuple):
    """Keeps what lists hold, which is read twice; the state is how many entries there are."""

    ids: NDArray[np.int32]
    levels: NDArray[np.uint8]


@take_entry.of(Recorder)
def _take_entry_recorder(recorder, state, id, level):
    recorder.ids[np.uint64(state)], recorder.levels[np.uint64(state)] = id, level
    return state + 1


class Spreader(NamedTuple):
    """Gives a training row's frequent columns to the entries of the row."""

    weights: NDArray[np.int64]  # (n_frequent,) of the row's columns
    entries: NDArray[np.int64]  # (n_frequent,) where these are in the row
    value_of: NDArray[np.int64]
    out: Matrix[np.int32]


@take_entry.of(Spreader)
def _take_entry_spreader(spreader, state, id, level):
    """The state is the place of the training row."""
    weight = spreader.weights[id]
    if weight > 0:
        amount = weight * spreader.value_of[level] >> WEIGHT_BITS
        spreader.out[spreader.entries[id], state] = amount
    return state


@kernel
def compare_rows(index_table, scratch_table, indptr, indices, values, n_best, n_more, out_rows, out_shared):
    """The n_best most similar training rows of one row, most similar first, then others, up to ``n_more``.

    ``out_shared`` is (n_compared, n_more): what each entry of the row, of those that are compared, adds to
    the similarity of each of these rows, in the whole numbers of the search, whose sums are its similarities.
    Returns how many rows are the best, and how many there are. As :func:`labeltree.reference.neighbours.find`
    and :func:`labeltree.reference.neighbours.shared`.
    """
    index, scratch = read_index(index_table, ()), read_scratch(scratch_table, ())
    work = make_work(index, indptr, n_more)
    n_lists, n_frequent = choose_lists(index, scratch, indices, values, indptr[0], indptr[1], work)
    n_postings = 0
    for k in range(n_lists):
        n_postings += index.by_column.n_of_length[index.by_column.length[place_of(work.keys[k])]]
    recorder = Recorder(np.empty(n_postings, np.int32), np.empty(n_postings, np.uint8))
    ends = np.empty(n_lists, np.int64)
    end = np.int64(0)
    for k in range(n_lists):
        column = place_of(work.keys[k])
        _, end = read_list(index.by_column, column, place_of_list(index.by_column, column), recorder, end)
        ends[k] = end
    n_touched = _sum_up(recorder, ends, index.levels, work, scratch.sums, scratch.touched)
    n = take_candidates(scratch, work, n_touched, max(n_more, index.n_candidates))
    n_best, n = _choose_best(index, scratch, work, n, n_frequent, n_best, n_more, out_rows)
    out_shared[:] = 0
    for k in range(n):
        scratch.sums[out_rows[k]] = np.uint16(k + 1)
    _share_lists(recorder, ends, index.levels, work, indices, scratch.sums, out_shared)
    for k in range(n):
        scratch.sums[out_rows[k]] = 0
    if n_frequent:
        _share_frequent(index, scratch, work, indices, n_frequent, out_rows, n, out_shared)
    return n_best, n


@inlined
def _fill_levels(weight, value_of, of_level):
    for level in range(N_LEVELS):
        of_level[level] = max(1, (weight * value_of[level]) >> WEIGHT_BITS)


@inlined
def _sum_up(recorder, ends, value_of, work, sums, touched):
    """What the lists add to the sums of rows; returns how many rows they touch."""
    ids, levels, keys, of_level = recorder.ids, recorder.levels, work.keys, work.of_level
    n_touched, e = np.int64(0), np.int64(0)
    for k in range(len(ends)):
        _fill_levels(-number_of(keys[k]), value_of, of_level)
        while e < ends[k]:
            row = np.uint64(ids[e])
            before = sums[row]
            touched[n_touched] = ids[e]
            sums[row] = before + of_level[levels[e]]
            n_touched += before == 0
            e += 1
    return n_touched


@inlined
def _choose_best(index, scratch, work, n, n_frequent, n_best, n_more, out_rows):
    """Of n candidates, in the order of the search, first the rows that it finds, then others.

    Returns how many these are, and with the others.
    """
    rows, sums, weight, is_best = work.rows, work.sums, index.weight, scratch.sums
    n_looked_at, limit, n_equal = max(n_best, index.n_candidates), np.int32(0), n
    if n > n_looked_at:
        limit, n_equal = select_largest(sums[:n].astype(np.int32), n_looked_at)
    looked_at, keys = np.empty(n, np.bool_), np.empty(n_best, np.int64)
    for k in range(n):
        n_equal -= sums[k] == limit  # of equal ones those that were touched first, as in the search
        looked_at[k] = sums[k] > limit or (sums[k] == limit and n_equal >= 0)
    if n_frequent:
        add_frequent(index, scratch, work, n)
    found = 0
    for k in range(n):
        if looked_at[k]:
            found = keep_row(weight, rows[k], sums[k], n_best, keys, found)
    for k in range(found):
        out_rows[k] = _PLACE - place_of(keys[k])
        is_best[out_rows[k]] = 1
    n_best = found
    for k in range(n):
        if found < n_more and is_best[rows[k]] == 0 and weight[rows[k]] > 0.0:
            out_rows[found] = rows[k]
            found += 1
    for k in range(n_best):
        is_best[out_rows[k]] = 0
    return n_best, found


@inlined
def _share_lists(recorder, ends, value_of, work, indices, places, out_shared):
    """``places`` are those of the rows that are asked for, counted from 1, else 0."""
    ids, levels, keys, of_level = recorder.ids, recorder.levels, work.keys, work.of_level
    e = np.int64(0)
    for k in range(len(ends)):
        _fill_levels(-number_of(keys[k]), value_of, of_level)
        entry = np.searchsorted(indices, np.int32(place_of(keys[k])))
        while e < ends[k]:
            place = places[np.uint64(ids[e])]
            if place > 0:
                out_shared[entry, np.int64(place) - 1] = of_level[levels[e]]
            e += 1


@inlined
def _share_frequent(index, scratch, work, indices, n_frequent, rows, n_rows, out_shared):
    entries = np.empty(len(scratch.weights), np.int64)
    for k in range(n_frequent):
        entries[work.places[k]] = np.searchsorted(indices, index.frequent[work.places[k]])
    spreader = Spreader(scratch.weights, entries, index.levels, out_shared)
    for k in range(n_rows):
        row = np.int64(rows[k])
        read_list(index.by_row, row, place_of_list(index.by_row, row), spreader, np.int64(k))
    for k in range(n_frequent):
        scratch.weights[work.places[k]] = 0


@kernel
def share_votes(
    label_start, labels, weight, rows, shared, power, label, frequency, out_similar, out_has_label, out_shares
):  # fmt: skip
    """How rows that vote share out a label's probability, which is returned, among a row's entries.

    ``shared`` are those of :func:`compare_rows`; the first rows, as many as ``out_similar`` (2, n_voters) has
    places for their similarities and their parts of all votes, are those that vote. ``out_has_label`` is of
    all. As :func:`labeltree.reference.neighbours.share_votes`.
    """
    for k in range(len(rows)):
        row = rows[k]
        out_has_label[k] = False
        for e in range(label_start[row], label_start[row + 1]):
            out_has_label[k] |= labels[e] == label
    n_voters, n_entries = out_similar.shape[1], len(shared)
    sums, total = out_similar[0], 0.0
    sums[:] = 0.0
    for e in range(n_entries):
        for k in range(n_voters):
            sums[k] += shared[e, k]
    for k in range(n_voters):
        vote = np.float64(weight[rows[k]])
        for _ in range(power):
            vote *= sums[k]
        out_similar[1, k] = vote
    for k in range(n_voters):
        total += out_similar[1, k]
    probability, counts = 0.0, np.empty(n_voters)
    for k in range(n_voters):
        vote = out_similar[1, k] / total
        out_similar[1, k] = vote
        counts[k] = vote * (out_has_label[k] - frequency) / sums[k]
    for k in range(n_voters):
        probability += out_similar[1, k] if out_has_label[k] else 0.0
    for e in range(n_entries):
        share = 0.0
        for k in range(n_voters):
            share += counts[k] * shared[e, k]
        out_shares[e] = share
    for e in range(n_entries):
        out_shares[e] += frequency / n_entries
    for k in range(n_voters):
        sums[k] /= ONE
    return probability
