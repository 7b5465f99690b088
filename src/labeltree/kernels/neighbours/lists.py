"""Sorted lists of ids with a level each, in few bits: Elias and Fano's code.

The n ids of a list, all below N, are cut at ``low = floor(log2(N / n))`` bits. The lower bits are written as
they are, together with the level; of the upper part of the i-th id, u, nothing is kept but bit u + i, which
is set. That makes at most 2 + low bits for an id, half a bit more than any code needs, and since the size
follows from N and n, no list needs a pointer of its own: of a list, a byte says how long it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.atomic import count_ones, lowest_one, read_word
from labeltree.kernels.jit import generic, inlined, kernel

LEVEL_BITS = 4
N_LEVELS = 1 << LEVEL_BITS
GROUP = 8  # lists with one pointer, which is not in the file
PADDING = 8  # bytes behind the last list, so that a word can be read anywhere

_LEVEL, _SHIFT = np.uint64(N_LEVELS - 1), np.uint64(LEVEL_BITS)
_WORD_BITS = 64


class Lists(NamedTuple):
    """Many lists, packed."""

    n_of_length: NDArray[np.int64]  # (256,) how many ids a list of this length has, rising
    low_bits: NDArray[np.int64]  # (256,) of each id of such a list
    n_bytes: NDArray[np.int64]  # (256,) that such a list takes
    start: NDArray[np.int64]  # (n_groups + 1,) where each GROUP of lists begins
    length: NDArray[np.uint8]  # (n_lists,) a code, see above
    data: NDArray[np.uint8]  # of all lists, one after another, and PADDING


@inlined
def place_of_list(lists, number):
    """Where a list begins: behind those of its group that come before."""
    length, n_bytes = lists.length, lists.n_bytes
    first = number & ~(GROUP - 1)
    place = lists.start[number // GROUP]
    for j in range(first, number):
        place += n_bytes[length[j]]
    return place


@generic
def take_entry(taker, state, id, level):
    """What is done with an entry of a list; returns the new state, a whole number, as the old one was."""


@inlined
def read_list(lists, number, place, taker, state):
    """Hand the entries of the list that begins at ``place`` to ``take_entry``, one after another.

    Returns how many there were, and the last state. Of lists that are not as :func:`pack_lists` makes them
    there may be fewer, but nothing else is read.
    """
    data, code = lists.data, lists.length[number]
    n, low_bits = lists.n_of_length[code], lists.low_bits[code]
    # Indices are unsigned: signed ones may count from the end, which takes a comparison each.
    low, width = np.uint64(low_bits), low_bits + LEVEL_BITS
    mask = (np.uint64(1) << low) - np.uint64(1)
    upper = place + ((n * width + 7) >> 3)
    end = (place + lists.n_bytes[code] - upper) << 3  # bits of the upper parts
    where = place << 3
    i = np.int64(0)
    base = np.int64(0)
    while i < n and base < end:
        word = read_word(data, upper + (base >> 3))
        for _ in range(min(n - i, count_ones(word))):
            field = read_word(data, where >> 3) >> np.uint64(where & 7)
            high = np.uint64(base + lowest_one(word) - i) << low
            word &= word - np.uint64(1)
            state = take_entry(taker, state, high | (field >> _SHIFT & mask), field & _LEVEL)
            where += width
            i += 1
        base += _WORD_BITS
    return i, state


class Checker(NamedTuple):
    """The state is the last id, or BROKEN after ids that do not rise or are too large."""

    n_ids: int


_BROKEN = np.int64(1) << 40


@take_entry.of(Checker)
def _take_entry_checker(checker, state, id, level):
    id = np.int64(id)
    return id if state < id < checker.n_ids else _BROKEN


@kernel
def lists_fit(lists, n_ids):
    """Whether each list has as many ids as it says, rising, and below ``n_ids``; pointers must be right."""
    place = np.int64(0)
    checker = Checker(n_ids)
    for number in range(len(lists.length)):
        code = lists.length[number]
        n, last = read_list(lists, number, place, checker, np.int64(-1))
        if n != lists.n_of_length[code] or last == _BROKEN:
            return False
        place += lists.n_bytes[code]
    return True


@inlined
def _write_bits(data, place, number):
    """Or the bits of a number into data, from bit ``place`` on."""
    shifted = np.uint64(number) << np.uint64(place & 7)
    byte = place >> 3
    while shifted:
        data[byte] |= np.uint8(shifted & np.uint64(255))
        shifted >>= np.uint64(8)
        byte += 1


@kernel
def pack_lists(lists, indptr, ids, levels, out_data):
    """Write lists into zeros; of one that is too long for its length code the ids of the highest levels.

    Of equal levels the lower ids are kept. ``lists`` has all but the data.
    """
    n_of_level = np.zeros(N_LEVELS, np.int64)
    place = np.int64(0)
    for number in range(len(lists.length)):
        code = lists.length[number]
        n, low = lists.n_of_length[code], lists.low_bits[code]
        width, mask = low + LEVEL_BITS, (np.int64(1) << low) - 1
        begin, end = indptr[number], indptr[number + 1]
        n_of_level[:] = 0
        for e in range(begin, end):
            n_of_level[levels[e]] += 1
        least, left = np.int64(N_LEVELS - 1), n
        while least > 0 and left > n_of_level[least]:
            left -= n_of_level[least]
            least -= 1
        first = place << 3
        upper = (place + ((n * width + 7) >> 3)) << 3
        i = np.int64(0)
        for e in range(begin, end):
            level = np.int64(levels[e])
            if level < least or (level == least and left == 0):
                continue
            left -= level == least
            id = np.int64(ids[e])
            _write_bits(out_data, first + i * width, ((id & mask) << LEVEL_BITS) | level)
            _write_bits(out_data, upper + (id >> low) + i, np.int64(1))
            i += 1
        place += lists.n_bytes[code]
