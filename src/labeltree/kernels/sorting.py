"""Sorting and selecting of a row's entries, without recursion or memory of its own.

A key is a number and the place of its entry, so that keys are distinct and equal numbers keep their order.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import helper, inlined

MOST_RANKED = 128  # keys that are sorted by counting how many are smaller
MOST_COLUMNS_RANKED = 256

_PLACE = 0xFFFFFFFF


@inlined
def make_key(number, place):
    return np.int64(number) << 32 | place


@inlined
def number_of(key):
    return key >> 32


@inlined
def place_of(key):
    return key & _PLACE


@inlined
def sort_keys(keys, n, buffer):
    """Sort the first n keys, which are distinct; ``buffer`` has MOST_RANKED.

    Few are put where the number of smaller ones says: n² comparisons, but without a single branch that is
    hard to foresee, several at a time. More by Shell sort.
    """
    if n <= len(buffer):
        for k in range(n):
            key = keys[k]
            rank = 0
            for j in range(n):
                rank += keys[j] < key
            buffer[rank] = key
        for k in range(n):
            keys[k] = buffer[k]
        return
    gap = n
    while gap > 1:
        gap = max(1, gap * 5 // 11)
        for k in range(gap, n):
            key = keys[k]
            j = k
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key


@inlined
def sort_entries(columns, values, n, keys, start, out_columns, out_values):
    """Write n entries of distinct columns by rising column, from ``start`` on; ``keys`` has n.

    As :func:`sort_keys`, but of half as wide numbers twice as many are compared at a time.
    """
    if n <= MOST_COLUMNS_RANKED:
        for k in range(n):
            rank = np.int32(0)
            for j in range(n):
                rank = np.int32(rank + (columns[j] < columns[k]))
            out_columns[start + rank], out_values[start + rank] = columns[k], values[k]
        return
    for k in range(n):
        keys[k] = make_key(columns[k], k)
    sort_keys(keys, n, keys[:0])
    for k in range(n):
        place = place_of(keys[k])
        out_columns[start + k], out_values[start + k] = columns[place], values[place]


@helper
def select_largest(bits, n_kept):
    """(limit, n_equal): the ``n_kept`` largest of positive floats, by their bits, are all above the limit
    and ``n_equal`` of those that are equal to it.

    By halving: how many reach a limit is counted without a branch, many at a time.
    """
    low, high = np.int32(0x7FFFFFFF), np.int32(0)
    for place in range(len(bits)):
        low, high = min(low, bits[place]), max(high, bits[place])
    n_above = 0  # those above high
    while low < high:
        middle = np.int32(low + (high - low + 1) // 2)
        n = np.int32(0)
        for place in range(len(bits)):
            n = np.int32(n + (bits[place] >= middle))
        if n == n_kept:
            return middle, n_kept
        if n > n_kept:
            low = middle
        else:
            high, n_above = np.int32(middle - 1), np.int64(n)
    return low, n_kept - n_above
