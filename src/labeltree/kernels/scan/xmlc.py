"""Rows of XMLC repository files, ``1,7 3:0.5 9:1``, read into CSR arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.characters import is_space, skip_space
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.numbers import parse_id, parse_number
from labeltree.kernels.scan.lines import GOOD
from labeltree.kernels.sorting import MOST_RANKED, make_key, number_of, place_of, sort_keys

BAD_LABEL = 50
LABEL_RANGE = 51
BAD_FEATURE = 52
FEATURE_RANGE = 53
BAD_VALUE = 54
VALUE_RANGE = 55
FEATURE_TWICE = 56

COMMA, COLON = 44, 58


class Limits(NamedTuple):
    """Ids from these on are out of range; labels from ``n_known_labels`` on are read as -1."""

    n_columns: int
    n_labels: int
    n_known_labels: int


class Scratch(NamedTuple):
    """For sorting a row; memory that is not written is never taken."""

    keys: NDArray[np.int64]
    ranked: NDArray[np.int64]  # (MOST_RANKED,)
    values: NDArray[np.float32]


@inlined
def sort_labels(labels, first, last, scratch):
    """Sort ``labels[first:last]``, collapse equal ones, and return where they end.

    Unknown ones are all -1 already and stay, unlike in :func:`labeltree.kernels.text.counts.unite_labels`,
    where equal ones can be told.
    """
    end = first + 1
    while end < last and labels[end - 1] < labels[end]:
        end += 1
    if end >= last:  # as most files have them
        return last
    keys, n = scratch.keys, last - first
    for k in range(n):
        keys[k] = make_key(labels[first + k], k)
    sort_keys(keys, n, scratch.ranked)
    end = first
    for k in range(n):
        label = number_of(keys[k])
        if label < 0 or end == first or label != labels[end - 1]:
            labels[end] = label
            end += 1
    return end


@inlined
def sort_features(indices, values, first, last, scratch):
    """Sort the features in ``first:last`` by their ids; False if one appears twice."""
    keys, moved, n = scratch.keys, scratch.values, last - first
    for k in range(n):
        keys[k] = make_key(indices[first + k], k)
        moved[k] = values[first + k]
    sort_keys(keys, n, scratch.ranked)
    are_distinct = True
    for k in range(n):
        indices[first + k] = number_of(keys[k])
        values[first + k] = moved[place_of(keys[k])]
        if k > 0 and number_of(keys[k]) == number_of(keys[k - 1]):
            are_distinct = False
    return are_distinct


@inlined
def read_labels(buffer, i, end, limits, n_labels, scratch, out_labels):
    """Read ``1,7`` at ``i``: next position, code, labels so far. With a colon it is a feature: no labels."""
    start = i
    first = n_labels
    while True:
        label, after = parse_id(buffer, i, end)
        if after < end and buffer[after] == COLON and after > i and n_labels == first:
            return start, GOOD, first
        if after == i or (after < end and buffer[after] != COMMA and not is_space(buffer[after])):
            return start, BAD_LABEL, first
        if label >= limits.n_labels:
            return i, LABEL_RANGE, first
        out_labels[n_labels] = label if label < limits.n_known_labels else -1
        n_labels += 1
        if after >= end or buffer[after] != COMMA:
            return after, GOOD, sort_labels(out_labels, first, n_labels, scratch)
        i = after + 1


@inlined
def read_features(buffer, i, end, limits, n_values, scratch, out_indices, out_values):
    """Read ``3:0.5 9:1`` at ``i``: place, code, values so far."""
    first = n_values
    line = i
    is_sorted = True
    i = skip_space(buffer, i, end)
    while i < end:
        token = i
        feature, after = parse_id(buffer, i, end)
        if after == token or after >= end or buffer[after] != COLON:
            return token, BAD_FEATURE, first
        if feature >= limits.n_columns:
            return token, FEATURE_RANGE, first
        value, i = parse_number(buffer, after + 1, end)
        if i == after + 1 or (i < end and not is_space(buffer[i])):
            return token, BAD_VALUE, first
        value32 = np.float32(value)
        if not np.isfinite(value32):
            return token, VALUE_RANGE, first
        if n_values > first and feature <= out_indices[n_values - 1]:
            is_sorted = False
        out_indices[n_values] = feature
        out_values[n_values] = value32
        n_values += 1
        i = skip_space(buffer, i, end)
    if not is_sorted and not sort_features(out_indices, out_values, first, n_values, scratch):
        return line, FEATURE_TWICE, first
    return i, GOOD, n_values


@kernel
def scan_sparse_rows(
    buffer,
    line_start,
    line_end,
    limits,
    out_status,
    out_place,
    out_indptr,
    out_indices,
    out_values,
    out_label_indptr,
    out_labels,
):
    """Read the lines that are good so far into features and labels, each sorted within its row.

    Equivalent to :func:`labeltree.reference.scan.scan_sparse_rows`.
    """
    most = max(len(out_values), len(out_labels))
    scratch = Scratch(np.empty(most, np.int64), np.empty(MOST_RANKED, np.int64), np.empty(most, np.float32))
    n_values = 0
    n_labels = 0
    out_indptr[0] = 0
    out_label_indptr[0] = 0
    for row in range(len(line_start)):
        i = line_start[row]
        end = line_end[row]
        if out_status[row] == GOOD and i < end:
            code = GOOD
            row_labels = n_labels
            if not is_space(buffer[i]):
                i, code, row_labels = read_labels(buffer, i, end, limits, n_labels, scratch, out_labels)
            if code == GOOD:
                i, code, n_values = read_features(
                    buffer, i, end, limits, n_values, scratch, out_indices, out_values
                )
            out_status[row] = code
            out_place[row] = i
            if code == GOOD:
                n_labels = row_labels
        out_indptr[row + 1] = n_values
        out_label_indptr[row + 1] = n_labels
    return n_values, n_labels
