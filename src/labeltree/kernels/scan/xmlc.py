"""Rows of XMLC repository files, ``1,7 3:0.5 9:1``, read into CSR arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labeltree.kernels.jit import helper, kernel

GOOD = 0
BAD_LABEL = 50
LABEL_RANGE = 51
BAD_FEATURE = 52
FEATURE_RANGE = 53
BAD_VALUE = 54
VALUE_RANGE = 55
FEATURE_TWICE = 56

COMMA, COLON = 44, 58
MAX_ID = 2**31 - 1
MAX_MANTISSA = 10**17  # takes one more digit without overflow; further ones do not change a 32-bit float
MAX_EXPONENT = 400  # beyond any 64-bit float
POWERS_OF_TEN = np.array([float(10**exponent) for exponent in range(23)])


class Limits(NamedTuple):
    """Ids from these on are out of range; labels from ``n_known_labels`` on are read as -1."""

    n_columns: int
    n_labels: int
    n_known_labels: int


@helper
def is_space(byte):
    return byte == 32 or (byte >= 9 and byte <= 13)


@helper
def skip_space(buffer, i, end):
    while i < end and is_space(buffer[i]):
        i += 1
    return i


@helper
def parse_id(buffer, i, end):
    """The natural number at ``i`` and where it ends; too large ones become ``MAX_ID``."""
    number = 0
    while i < end and buffer[i] >= 48 and buffer[i] <= 57:
        number = min(number * 10 + np.int64(buffer[i]) - 48, MAX_ID)
        i += 1
    return number, i


@helper
def scale_by_ten(number, exponent):
    """``number * 10**exponent``; powers up to 22 are exact, so common numbers are rounded only once."""
    if exponent == 0:
        return number
    size = min(abs(exponent), MAX_EXPONENT)
    scale = POWERS_OF_TEN[size % len(POWERS_OF_TEN)]
    for _ in range(size // len(POWERS_OF_TEN)):
        scale *= 1e23
    return number / scale if exponent < 0 else number * scale


@helper
def append_digits(buffer, i, end, mantissa):
    """Write the digits at ``i`` behind those of ``mantissa``: it, where they end, how many had no room."""
    n_without_room = 0
    while i < end and buffer[i] >= 48 and buffer[i] <= 57:
        if mantissa < MAX_MANTISSA:
            mantissa = mantissa * 10 + np.int64(buffer[i]) - 48
        else:
            n_without_room += 1
        i += 1
    return mantissa, i, n_without_room


@helper
def parse_number(buffer, start, end):
    """The decimal number at ``start`` and where it ends (``start`` itself where there is none).

    Within one 32-bit unit in the last place of ``float(text)``.
    """
    i = start
    negative = i < end and buffer[i] == 45
    if negative or (i < end and buffer[i] == 43):
        i += 1
    first = i
    mantissa, i, exponent = append_digits(buffer, i, end, 0)
    n_digits = i - first
    if i < end and buffer[i] == 46:
        first = i + 1
        mantissa, i, n_without_room = append_digits(buffer, first, end, mantissa)
        n_digits += i - first
        exponent -= i - first - n_without_room
    if n_digits == 0:
        return 0.0, start
    if i < end and (buffer[i] | 32) == 101:
        minus = i + 1 < end and buffer[i + 1] == 45
        first = i + 1 + (minus or (i + 1 < end and buffer[i + 1] == 43))
        power, i = parse_id(buffer, first, end)
        if i == first:
            return 0.0, start
        exponent += -power if minus else power
    if mantissa == 0:
        return 0.0, i
    value = scale_by_ten(float(mantissa), exponent)
    return -value if negative else value, i


@helper
def sort_pairs(keys, values):
    """Sort ``keys`` in place and move ``values`` along (Shell's method: short code, rarely needed)."""
    gap = 1
    while gap < len(keys) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(keys)):
            key = keys[i]
            value = values[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                values[j] = values[j - gap]
                j -= gap
            keys[j] = key
            values[j] = value
        gap //= 3


@helper
def sort_labels(labels):
    """Sort labels in place, collapse equal ones except unknown ones, and return how many are left."""
    sort_pairs(labels, labels)
    n_kept = 0
    for i in range(len(labels)):
        if n_kept == 0 or labels[i] < 0 or labels[i] != labels[n_kept - 1]:
            labels[n_kept] = labels[i]
            n_kept += 1
    return n_kept


@helper
def read_labels(buffer, i, end, limits, n_labels, out_labels):
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
            n_labels = first + sort_labels(out_labels[first:n_labels])
            return after, GOOD, n_labels
        i = after + 1


@helper
def read_features(buffer, i, end, limits, n_values, out_indices, out_values):
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
    if not is_sorted:
        sort_pairs(out_indices[first:n_values], out_values[first:n_values])
        for j in range(first + 1, n_values):
            if out_indices[j] == out_indices[j - 1]:
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
                i, code, row_labels = read_labels(buffer, i, end, limits, n_labels, out_labels)
            if code == GOOD:
                i, code, n_values = read_features(buffer, i, end, limits, n_values, out_indices, out_values)
            out_status[row] = code
            out_place[row] = i
            if code == GOOD:
                n_labels = row_labels
        out_indptr[row + 1] = n_values
        out_label_indptr[row + 1] = n_labels
    return n_values, n_labels
