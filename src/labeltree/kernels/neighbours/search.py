"""The most similar training rows of a row, and the votes of their labels.

Columns are of two kinds. Those of few rows have a list of these rows: the lists of a row's columns, at most
MOST_POSTINGS rows together, say which training rows can be similar at all, and by how much as far as these
columns go. Columns of many rows would take too long that way, so they are listed by rows instead, and looked
at for the ``n_candidates`` rows that are the most similar so far. Both together make the similarity: the
cosine, in whole numbers, so that no order of summation matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout
from labeltree.kernels.atomic import prefetch
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.neighbours.lists import N_LEVELS, Lists, place_of_list, read_list, take_entry
from labeltree.kernels.sorting import make_key, number_of, place_of, sort_keys

MOST_POSTINGS = 1 << 15  # entries of lists that are read for a row
ONE = 1 << 15  # the similarity 1
WEIGHT_BITS = 16  # the weight 1 of a column is 1 << WEIGHT_BITS

_MOST_RANKED = 256  # keys that are sorted by counting smaller ones: rows of many labels are common
_AHEAD = 8  # rows whose lists are brought near before they are read
_PLACE = 0xFFFFFFFF
_BINS = 256
_HALF = 8  # bits of a bin


class Index(NamedTuple):
    """The training rows as lists, and their labels."""

    by_column: Lists  # rows of each column; frequent columns have none, nor have those that are left out
    by_row: Lists  # places in `frequent` for each row
    frequent: NDArray[np.int32]  # (n_frequent,) columns, sorted
    levels: NDArray[np.int64]  # (N_LEVELS,) what a value of each level is, ONE for 1
    label_start: NDArray[np.int64]  # (n_rows + 1,)
    labels: NDArray[np.int32]
    weight: NDArray[np.float32]  # (n_rows,) of each row's vote; rows of weight 0 are no neighbours
    n_candidates: int


class Scratch(NamedTuple):
    """One thread's own memory, all zeros between calls where it is said."""

    sums: NDArray[np.uint16]  # (n_rows,) zeros
    votes: NDArray[np.float64]  # (n_labels,) zeros
    weights: NDArray[np.int64]  # (n_frequent,) zeros
    touched: NDArray[np.int32]  # (MOST_POSTINGS + 1,)
    of_touched: NDArray[np.uint16]  # (MOST_POSTINGS,)
    label_keys: NDArray[np.int64]  # as many as labels can have votes


INDEX_TABLE = Layout(Index)
SCRATCH_TABLE = Layout(Scratch)
read_index, read_scratch = INDEX_TABLE.reader(), SCRATCH_TABLE.reader()


@inlined
def _place_among(columns, column):
    """Where a column is among sorted ones, or -1."""
    low, high = 0, len(columns)
    while low < high:
        middle = (low + high) >> 1
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low if low < len(columns) and columns[low] == column else -1


@inlined
def _scale_of_row(values, start, end):
    """What makes whole numbers of a row's values: the length of the row becomes 1 << WEIGHT_BITS."""
    total = 0.0
    for e in range(start, end):
        total += np.float64(values[e]) * np.float64(values[e])
    return (1 << WEIGHT_BITS) / np.sqrt(total) if total > 0.0 else 0.0


@inlined
def choose_lists(index, scratch, indices, values, start, end, work):
    """Keys of the row's lists to read, and how many; the weights of its frequent columns go to scratch.

    All lists, in the order of the columns; or, where they are too long together, in the order of falling
    weights those that still fit.
    """
    lists, frequent, weights = index.by_column, index.frequent, scratch.weights
    keys, places, buffer = work.keys, work.places, work.buffer
    while end > start and indices[end - 1] >= len(lists.length):  # columns that are not in the index
        end -= 1
    scale = _scale_of_row(values, start, end)
    n, n_postings, n_frequent = 0, 0, 0
    for e in range(start, end):
        weight = np.int64(np.float64(values[e]) * scale)
        if weight <= 0:
            continue
        column = indices[e]
        length = lists.n_of_length[lists.length[column]]
        if length > 0:
            keys[n] = make_key(-weight, column)
            n_postings += length
            n += 1
        else:
            place = _place_among(frequent, column)
            if place >= 0:
                weights[place] = weight
                places[n_frequent] = place
                n_frequent += 1
    if n_postings > MOST_POSTINGS:
        sort_keys(keys, n, buffer)
        n_postings, n_kept = 0, 0
        for k in range(n):
            length = lists.n_of_length[lists.length[place_of(keys[k])]]
            if n_postings + length <= MOST_POSTINGS:
                n_postings += length
                keys[n_kept] = keys[k]
                n_kept += 1
        n = n_kept
    return n, n_frequent


class Adder(NamedTuple):
    """Adds what a column says to the sums of rows; the state is how many rows have one."""

    sums: NDArray[np.uint16]
    touched: NDArray[np.int32]
    of_level: NDArray[np.int64]  # (N_LEVELS,) at least 1


@take_entry.of(Adder)
def _take_entry_adder(adder, state, id, level):
    before = adder.sums[id]
    adder.touched[np.uint64(state)] = id
    adder.sums[id] = before + adder.of_level[level]
    return state + (before == 0)


@inlined
def _add_lists(index, scratch, work, n_lists):
    """Sum up the chosen lists; returns how many rows were touched, which are in scratch by their first."""
    lists, value_of = index.by_column, index.levels
    keys, starts, of_level = work.keys, work.starts, work.of_level
    adder = Adder(scratch.sums, scratch.touched, of_level)
    for k in range(n_lists):
        starts[k] = place_of_list(lists, place_of(keys[k]))
        prefetch(lists.data, starts[k])
    n_touched = np.int64(0)
    for k in range(n_lists):
        weight = -number_of(keys[k])
        for level in range(N_LEVELS):
            of_level[level] = max(1, (weight * value_of[level]) >> WEIGHT_BITS)
        _, n_touched = read_list(lists, place_of(keys[k]), starts[k], adder, n_touched)
    return n_touched


@inlined
def _nth_largest(sums, n_sums, n, bins):
    """The n-th largest number, and how many that are equal to it are among the first n.

    ``bins`` counts the upper bytes of all.
    """
    above = np.int64(0)
    upper = np.int64(_BINS - 1)
    while upper > 0 and above + bins[upper] < n:
        above += bins[upper]
        upper -= 1
    bins[:] = 0
    for t in range(n_sums):
        if sums[t] >> _HALF == upper:
            bins[sums[t] & (_BINS - 1)] += 1
    lower = np.int64(_BINS - 1)
    while lower > 0 and above + bins[lower] < n:
        above += bins[lower]
        lower -= 1
    return upper << _HALF | lower, n - above


@inlined
def take_candidates(scratch, work, n_touched, n):
    """The n touched rows of the largest sums, of equal ones those that were touched first; clears the sums.

    Rows and sums are then the first in work.
    """
    sums, touched, of_touched, bins = scratch.sums, scratch.touched, scratch.of_touched, work.bins
    rows, candidates = work.rows, work.sums
    bins[:] = 0
    for t in range(n_touched):
        row = np.uint64(touched[t])
        number = sums[row]
        sums[row] = 0
        of_touched[t] = number
        bins[number >> _HALF] += 1
    least, n_equal = np.int64(0), np.int64(0)
    if n_touched > n:
        least, n_equal = _nth_largest(of_touched, n_touched, n, bins)
    found = 0
    for t in range(n_touched):
        number = np.int64(of_touched[t])
        if number >= least and number > 0:
            if number == least:
                if n_equal == 0:
                    continue
                n_equal -= 1
            rows[found] = touched[t]
            candidates[found] = number
            found += 1
    return found


class Multiplier(NamedTuple):
    """The state is the sum of a row's frequent columns so far."""

    weights: NDArray[np.int64]
    value_of: NDArray[np.int64]


@take_entry.of(Multiplier)
def _take_entry_multiplier(multiplier, state, id, level):
    return state + (multiplier.weights[id] * multiplier.value_of[level] >> WEIGHT_BITS)


@inlined
def add_frequent(index, scratch, work, n):
    """Add what the frequent columns say to the sums of the candidates."""
    lists, rows, sums, ahead = index.by_row, work.rows, work.sums, work.ahead
    multiplier = Multiplier(scratch.weights, index.levels)
    for k in range(n + _AHEAD):
        if k >= _AHEAD:
            place = ahead[k % _AHEAD]
            _, total = read_list(lists, rows[k - _AHEAD], place, multiplier, np.int64(0))
            sums[k - _AHEAD] += total
        if k < n:
            place = place_of_list(lists, rows[k])
            ahead[k % _AHEAD] = place
            prefetch(lists.data, place)
            prefetch(lists.data, place + 64)


@inlined
def keep_row(weight, row, sum_of_row, n_best, out_keys, found):
    """Among the keys of the n_best rows of the largest sums so far, largest first, ties to the lower row.

    Returns how many there are, of which there were ``found``.
    """
    key = make_key(sum_of_row, _PLACE - row)
    if weight[row] == 0.0 or (found == n_best and key <= out_keys[found - 1]):
        return found
    at = min(found, n_best - 1)
    while at > 0 and out_keys[at - 1] < key:
        out_keys[at] = out_keys[at - 1]
        at -= 1
    out_keys[at] = key
    return min(found + 1, n_best)


class Work(NamedTuple):
    """Memory for the rows of a call."""

    keys: NDArray[np.int64]  # (longest row,) of lists: their weight and column
    starts: NDArray[np.int64]  # (longest row,) where these begin
    places: NDArray[np.int64]  # (longest row,) of the row's frequent columns
    buffer: NDArray[np.int64]  # (_MOST_RANKED,) for sorting
    bins: NDArray[np.int64]  # (_BINS,)
    of_level: NDArray[np.int64]  # (N_LEVELS,)
    rows: NDArray[np.int64]  # (n_candidates,)
    sums: NDArray[np.int64]  # (n_candidates,)
    ahead: NDArray[np.int64]  # (_AHEAD,)


@inlined
def make_work(index, indptr, n_best):
    longest = np.int64(1)
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    n_candidates = max(n_best, index.n_candidates)
    return Work(
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(_MOST_RANKED, np.int64),
        np.empty(_BINS, np.int64),
        np.empty(N_LEVELS, np.int64),
        np.empty(n_candidates, np.int64),
        np.empty(n_candidates, np.int64),
        np.empty(_AHEAD, np.int64),
    )


@inlined
def _find_row(index, scratch, indices, values, start, end, n_best, work, out_keys):
    """Keys of the n_best most similar rows; how many there are."""
    n_lists, n_frequent = choose_lists(index, scratch, indices, values, start, end, work)
    n_touched = _add_lists(index, scratch, work, n_lists)
    n = take_candidates(scratch, work, n_touched, max(n_best, index.n_candidates))
    if n_frequent:
        add_frequent(index, scratch, work, n)
        for k in range(n_frequent):
            scratch.weights[work.places[k]] = 0
    found = 0
    for k in range(n):
        found = keep_row(index.weight, work.rows[k], work.sums[k], n_best, out_keys, found)
    return found


@kernel
def find_neighbours(
    index_table, scratch_table, indptr, indices, values, n_best, out_rows, out_similarities
):  # fmt: skip
    """The n_best most similar training rows of each row, most similar first; -1 and 0 where there are fewer.

    As :func:`labeltree.reference.neighbours.find`.
    """
    index, scratch = read_index(index_table, ()), read_scratch(scratch_table, ())
    work = make_work(index, indptr, n_best)
    keys = np.empty(n_best, np.int64)
    for i in range(len(indptr) - 1):
        n = _find_row(index, scratch, indices, values, indptr[i], indptr[i + 1], n_best, work, keys)
        for k in range(n_best):
            out_rows[i, k] = _PLACE - place_of(keys[k]) if k < n else -1
            out_similarities[i, k] = min(1.0, number_of(keys[k]) / ONE) if k < n else 0.0


@inlined
def _weight_of(index, key, power):
    """What a similar row counts."""
    similarity = number_of(key) / ONE
    weight = similarity
    for _ in range(power - 1):
        weight *= similarity
    return weight * index.weight[_PLACE - place_of(key)]


@inlined
def _vote(index, scratch, keys, n, power):
    """Sum up the weights of labels in scratch: a similar row counts by a power of its similarity.

    Returns the number of labels, whose keys are there too, and the sum of all weights.
    """
    votes, label_keys, labels, n_labels = scratch.votes, scratch.label_keys, index.labels, 0
    for k in range(n):
        prefetch(index.label_start, _PLACE - place_of(keys[k]))
    for k in range(n):
        prefetch(labels, index.label_start[_PLACE - place_of(keys[k])])
    total = 0.0
    for k in range(n):
        total += _weight_of(index, keys[k], power)
    for k in range(n):
        row, weight = _PLACE - place_of(keys[k]), _weight_of(index, keys[k], power)
        for e in range(index.label_start[row], index.label_start[row + 1]):
            if votes[labels[e]] == 0.0:
                label_keys[n_labels] = make_key(labels[e], 0)
                n_labels += 1
            votes[labels[e]] += weight
    return n_labels, total


@kernel
def vote_labels(
    index_table, scratch_table, indptr, indices, values, n_best, powers, row, out_indptr, out_ids, out_votes
):  # fmt: skip
    """The labels of each row's n_best neighbours with their votes, from ``row`` on while there is room.

    Votes are (n_powers, n): by each power of the similarities, at least 1, by which neighbours may count.
    Returns the first row that found no room: where that is not the last, it wants larger arrays and another
    call. As :func:`labeltree.reference.neighbours.vote`.
    """
    index, scratch = read_index(index_table, ()), read_scratch(scratch_table, ())
    work = make_work(index, indptr, n_best)
    keys = np.empty(n_best, np.int64)
    votes, label_keys = scratch.votes, scratch.label_keys
    for i in range(row, len(indptr) - 1):
        n = _find_row(index, scratch, indices, values, indptr[i], indptr[i + 1], n_best, work, keys)
        first = out_indptr[i]
        for p in range(len(powers)):
            n_labels, total = _vote(index, scratch, keys, n, powers[p])
            has_room = first + n_labels <= len(out_ids)
            if has_room:
                sort_keys(label_keys, n_labels, work.buffer)
            for k in range(n_labels):
                label = number_of(label_keys[k])
                if has_room:
                    out_ids[first + k] = label
                    out_votes[p, first + k] = votes[label] / total
                votes[label] = 0.0
            if not has_room:
                return i
            out_indptr[i + 1] = first + n_labels
    return len(indptr) - 1
