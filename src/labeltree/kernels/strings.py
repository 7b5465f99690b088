"""Tables of distinct strings: which id has a string, and which string has an id.

A string is a record of 64-bit words: id and length in the first, then its bytes in packed form (see
:mod:`labeltree.kernels.text`). A slot holds half of the hash and the place of the record, so that looking
up a string touches two places in memory, however large the table is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.atomic import prefetch
from labeltree.kernels.jit import helper, kernel

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW = np.uint64(0xFFFFFFFF)
U1, U8, U32 = np.uint64(1), np.uint64(8), np.uint64(32)
# So many strings before its turn, a string's slot and its record are called for: both are waited for else.
_SLOT_AHEAD, _RECORD_AHEAD = 16, 8


class StringArrays(NamedTuple):
    """All arrays may have room for more strings than there are."""

    records: NDArray[np.uint64]
    first: NDArray[np.int64]  # by id: where its record starts; then where the next string's will
    hashes: NDArray[np.uint64]  # by id
    slots: NDArray[np.uint64]  # open addressing; the length is a power of two
    size: NDArray[np.int64]  # (1,) the number of strings


@helper
def find_slot(slots, records, packed, at, length, value):
    """The slot that holds a packed string, or the empty one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = value & mask
    tag = value >> U32
    n_packed = (length + 7) // 8
    while slots[slot] != EMPTY:
        if slots[slot] >> U32 == tag:
            record = np.int64(slots[slot] & LOW)
            if np.int64(records[record] & LOW) == length:
                j = 0
                while j < n_packed and records[record + 1 + j] == packed[at + j]:
                    j += 1
                if j == n_packed:
                    return slot
        slot = (slot + U1) & mask
    return slot


@kernel
def find_strings(slots, records, packed, first, length, hashes, out_ids):
    """``out_ids[k]``: the id of piece k, or -1. Like ``[ids.get(piece, -1) for piece in pieces]``."""
    mask = np.uint64(len(slots) - 1)
    n = len(out_ids)
    for k in range(-_SLOT_AHEAD, n):
        if k + _SLOT_AHEAD < n:
            prefetch(slots, np.int64(hashes[k + _SLOT_AHEAD] & mask))
        if 0 <= k + _RECORD_AHEAD < n:
            entry = slots[hashes[k + _RECORD_AHEAD] & mask]
            if entry != EMPTY:
                prefetch(records, np.int64(entry & LOW))
        if k < 0:
            continue
        entry = slots[find_slot(slots, records, packed, first[k], length[k], hashes[k])]
        out_ids[k] = -1 if entry == EMPTY else np.int32(records[np.int64(entry & LOW)] >> U32)


@kernel
def insert_strings(strings, pieces, start, out_ids):
    """Like ``ids.setdefault(piece, len(ids))`` for the pieces from ``start`` on.

    Returns the number of pieces done; fewer than all if the table must grow before the next one.
    """
    slots, records, ends, known_hashes = strings.slots, strings.records, strings.first, strings.hashes
    packed, first, length, hashes = pieces.packed, pieces.first, pieces.length, pieces.hashes
    n = strings.size[0]
    done = len(out_ids)
    for k in range(start, len(out_ids)):
        slot = find_slot(slots, records, packed, first[k], length[k], hashes[k])
        if slots[slot] == EMPTY:
            record, n_packed = ends[n], (length[k] + 7) // 8
            if n >= len(known_hashes) or record + 1 + n_packed > len(records) or 2 * (n + 1) > len(slots):
                done = k
                break
            records[record] = np.uint64(n) << U32 | np.uint64(length[k])
            for j in range(n_packed):
                records[record + 1 + j] = packed[first[k] + j]
            known_hashes[n] = hashes[k]
            slots[slot] = (hashes[k] >> U32) << U32 | np.uint64(record)
            n += 1
            ends[n] = record + 1 + n_packed
        out_ids[k] = np.int32(records[np.int64(slots[slot] & LOW)] >> U32)
    strings.size[0] = n
    return done


@kernel
def place_strings(first, hashes, n_strings, slots):
    """Put strings known to be distinct into empty slots."""
    mask = np.uint64(len(slots) - 1)
    for k in range(n_strings):
        slot = hashes[k] & mask
        while slots[slot] != EMPTY:
            slot = (slot + U1) & mask
        slots[slot] = (hashes[k] >> U32) << U32 | np.uint64(first[k])


@kernel
def measure_strings(records, first, order, out_length):
    """``out_length[k]``: the number of bytes of string ``order[k]``."""
    for k in range(len(order)):
        out_length[k] = np.int64(records[first[order[k]]] & LOW)


@kernel
def write_strings(records, first, order, offsets, out_data):
    """Write string ``order[k]`` to ``out_data[offsets[k]:offsets[k + 1]]``."""
    for k in range(len(order)):
        begin = first[order[k]] + 1
        for j in range(offsets[k + 1] - offsets[k]):
            out_data[offsets[k] + j] = (records[begin + j // 8] >> np.uint64(8 * (j % 8))) & np.uint64(0xFF)
