"""Tables of distinct strings: which id has a string, and which string has an id.

A string is a record of 64-bit words: id and length in the first, then its bytes in packed form (see
:mod:`.packing`). A slot holds half of the hash and the place of the record, so that looking up a string
touches two places in memory, however large the table is.

A string is at most ``MOST_AWAY`` slots behind the one that its hash names, and on average ``MEAN_AWAY`` at
most. Hashes of words as they come keep to that by far. Where someone has chosen words so that they do not,
:func:`hash_secretly` gives them other hashes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.atomic import prefetch
from labeltree.kernels.jit import helper, inlined, kernel
from labeltree.kernels.text.packing import U1, U32

EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW = np.uint64(0xFFFFFFFF)
NOWHERE = EMPTY  # a slot that there is not
# A table is at most half full: of a million strings one is some 70 slots behind, their mean is half a slot.
MOST_AWAY, MEAN_AWAY = 128, 4
# So many strings before its turn, a string's slot and its record are prefetched: both are waited for else.
_SLOT_AHEAD, _RECORD_AHEAD = 16, 8
_SIP_A, _SIP_B = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_SIP_C, _SIP_D = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)


class StringArrays(NamedTuple):
    """All arrays may be longer than their strings need."""

    records: NDArray[np.uint64]
    first: NDArray[np.int64]  # by id: where its record starts; then where the next string's will
    hashes: NDArray[np.uint64]  # by id
    slots: NDArray[np.uint64]  # open addressing; the length is a power of two
    size: NDArray[np.int64]  # (2,) the number of strings, and how many slots they are behind in sum


@helper
def find_slot(slots, records, packed, at, length, value):
    """The slot that holds a packed string, or the empty one where it belongs; NOWHERE if that is too far."""
    mask = np.uint64(len(slots) - 1)
    slot = value & mask
    tag = value >> U32
    n_packed = (length + 7) // 8
    for _ in range(MOST_AWAY + 1):
        if slots[slot] == EMPTY:
            return slot
        if slots[slot] >> U32 == tag:
            record = np.int64(slots[slot] & LOW)
            if np.int64(records[record] & LOW) == length:
                j = 0
                while j < n_packed and records[record + 1 + j] == packed[at + j]:
                    j += 1
                if j == n_packed:
                    return slot
        slot = (slot + U1) & mask
    return NOWHERE


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
        slot = find_slot(slots, records, packed, first[k], length[k], hashes[k])
        entry = EMPTY if slot == NOWHERE else slots[slot]
        out_ids[k] = -1 if entry == EMPTY else np.int32(records[np.int64(entry & LOW)] >> U32)


@kernel
def insert_strings(strings, pieces, start, out_ids):
    """Like ``ids.setdefault(piece, len(ids))`` for the pieces from ``start`` on.

    Returns the number of pieces done; fewer than all if the table must grow before the next one, or get other
    hashes because strings are too far from their slots.
    """
    slots, records, ends, known_hashes = strings.slots, strings.records, strings.first, strings.hashes
    packed, first, length, hashes = pieces.packed, pieces.first, pieces.length, pieces.hashes
    n, n_away = strings.size[0], strings.size[1]
    mask = np.uint64(len(slots) - 1)
    done = len(out_ids)
    for k in range(start, len(out_ids)):
        if k + _SLOT_AHEAD < len(out_ids):
            prefetch(slots, np.int64(hashes[k + _SLOT_AHEAD] & mask))
        slot = find_slot(slots, records, packed, first[k], length[k], hashes[k])
        if slot == NOWHERE or n_away > MEAN_AWAY * n:
            done = k
            break
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
            n_away += np.int64((slot - hashes[k]) & mask)
            n += 1
            ends[n] = record + 1 + n_packed
        out_ids[k] = np.int32(records[np.int64(slots[slot] & LOW)] >> U32)
    strings.size[0], strings.size[1] = n, n_away
    return done


@kernel
def place_strings(first, hashes, n_strings, slots):
    """Put strings known to be distinct into empty slots.

    Returns how many slots they are behind in sum, or -1 if one would be too far.
    """
    mask = np.uint64(len(slots) - 1)
    n_away = 0
    for k in range(n_strings):
        slot = hashes[k] & mask
        away = 0
        while slots[slot] != EMPTY:
            slot = (slot + U1) & mask
            away += 1
            if away > MOST_AWAY:
                return -1
        slots[slot] = (hashes[k] >> U32) << U32 | np.uint64(first[k])
        n_away += away
    return n_away


@inlined
def _rotate(word, n):
    return word << np.uint64(n) | word >> np.uint64(64 - n)


@inlined
def _sip_round(a, b, c, d):
    a += b
    b = _rotate(b, 13) ^ a
    c += d
    d = _rotate(d, 16) ^ c
    a, c = _rotate(a, 32) + d, c + b
    d = _rotate(d, 21) ^ a
    b = _rotate(b, 17) ^ c
    return a, b, _rotate(c, 32), d


@kernel
def hash_secretly(packed, first, length, key, out_hashes):
    """Hashes that nobody can foresee who does not know the key (2,): SipHash-1-3 of the packed words.

    The length comes last, as a word of its own (Aumasson and Bernstein, INDOCRYPT 2012).
    """
    for k in range(len(out_hashes)):
        a, b = key[0] ^ _SIP_A, key[1] ^ _SIP_B
        c, d = key[0] ^ _SIP_C, key[1] ^ _SIP_D
        n_packed = (length[k] + 7) // 8
        for j in range(n_packed + 1):
            word = packed[first[k] + j] if j < n_packed else np.uint64(length[k])
            a, b, c, d = _sip_round(a, b, c, d ^ word)
            a ^= word
        c ^= np.uint64(0xFF)
        for _ in range(3):
            a, b, c, d = _sip_round(a, b, c, d)
        out_hashes[k] = a ^ b ^ c ^ d


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
