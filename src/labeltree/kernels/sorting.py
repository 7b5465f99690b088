"""Sorting and selecting of a row's entries, without recursion or memory of its own.

A key is a number and the place of its entry, so that keys are distinct and equal numbers keep their order.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import helper, inlined

MOST_RANKED = 128  # keys that are sorted by counting how many are smaller

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


@helper
def select_largest(bits, n_kept, count):
    """The bits of the ``n_kept``-th largest of positive floats, and how many equal to it are that large."""
    limit, mask = np.int64(0), np.int64(0)
    for shift in range(24, -1, -8):
        for digit in range(256):
            count[digit] = 0
        for place in range(len(bits)):
            if np.int64(bits[place]) & mask == limit:
                count[(np.int64(bits[place]) >> shift) & 255] += 1
        digit = 255
        while count[digit] < n_kept:
            n_kept -= count[digit]
            digit -= 1
        limit |= digit << shift
        mask |= 255 << shift
    return limit, n_kept
