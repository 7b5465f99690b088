"""Strings in packed form: lower-cased, hashed and compared eight bytes at a time.

A packed string is 64-bit words, little end first, the last one padded with zero bytes. Hashing and comparing
then need no loop for the last bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.characters import decode_character, encode_character, is_space
from labeltree.kernels.jit import helper, inlined, kernel

U0, U1, U2, U3, U4, U5, U6, U7, U8 = (np.uint64(k) for k in range(9))
U16, U24, U32, U40, U48, U56 = (np.uint64(k) for k in (16, 24, 32, 40, 48, 56))
ONES = np.uint64(0x0101010101010101)  # one in every byte
HIGHS = np.uint64(0x8080808080808080)
FIRST_PRINTABLE = np.uint64(0x2121212121212121)
BEFORE_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # 0x80 - "A": adding it sets the high bit of "A" and above
AFTER_Z = np.uint64(0x2525252525252525)  # 0x80 - "Z" - 1
CASE = np.uint64(0x2020202020202020)  # the difference between the cases of ASCII letters
BEFORE_LOWER_A = BEFORE_A - CASE
AFTER_LOWER_Z = AFTER_Z - CASE
BEFORE_0 = np.uint64(0x5050505050505050)
AFTER_9 = np.uint64(0x4646464646464646)
# Odd numbers with well-mixed bits. Models with n-grams depend on them: a change is a new file format.
MIX_1 = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xD6E8FEB86659FD93)


class Pieces(NamedTuple):
    """Some words or labels in packed form: number k starts at ``packed[first[k]]``."""

    packed: NDArray[np.uint64]
    first: NDArray[np.int64]
    length: NDArray[np.int64]  # in bytes
    hashes: NDArray[np.uint64]


@inlined
def load_word(buffer, at):
    """Eight bytes as one number; compiles to a single load (unsigned indices skip the wrap-around test)."""
    p = np.uint64(at)
    low = np.uint64(buffer[p]) | np.uint64(buffer[p + U1]) << U8
    low |= np.uint64(buffer[p + U2]) << U16 | np.uint64(buffer[p + U3]) << U24
    high = np.uint64(buffer[p + U4]) << U32 | np.uint64(buffer[p + U5]) << U40
    return low | high | np.uint64(buffer[p + U6]) << U48 | np.uint64(buffer[p + U7]) << U56


@inlined
def load_tail(buffer, at):
    """Eight bytes as one number, where the buffer may end before: it goes on with zeros, which are spaces."""
    word = U0
    for k in range(min(8, len(buffer) - at)):
        word |= np.uint64(buffer[at + k]) << (np.uint64(k) * U8)
    return word


@inlined
def count_word_bytes(word):
    """How many of eight bytes come before white space."""
    # High bits mark bytes below "!": white space, rarely another control character or a false alarm just
    # above a marked byte, so each candidate is looked at.
    marks = (word - FIRST_PRINTABLE) & ~word & HIGHS
    while marks != U0:
        lowest = marks & (~marks + U1)
        n = ((((lowest >> U7) - U1) & ONES) * ONES) >> U56
        if is_space((word >> (n * U8)) & np.uint64(0xFF)):
            return np.int64(n)
        marks ^= lowest
    return 8


@inlined
def mix_word(value, word):
    value = (value ^ word) * MIX_1
    return value ^ (value >> U32)


@inlined
def finish_hash(value, length):
    # One product leaves the last bytes in the high bits only; the second brings them down to the slot number.
    value = (value ^ np.uint64(length)) * MIX_2
    return value ^ (value >> U32)


@inlined
def lower_ascii(word):
    """Lower-case the ASCII letters among eight bytes."""
    letters = word & ~HIGHS
    upper = ((letters + BEFORE_A) ^ (letters + AFTER_Z)) & ~word & HIGHS
    return word | upper >> U2  # 0x80 becomes 0x20, as in CASE


@inlined
def pack_word(buffer, start, end, spaces_end, lower, packed, at):
    """Write a span in packed form to ``packed[at:]``, up to white space if ``spaces_end``.

    Returns (where it ends, its hash, whether it has other bytes than ASCII, which are not lower-cased).
    """
    value, others = U0, U0
    p = start
    n = 8
    while n == 8 and p < end:
        word = load_word(buffer, p) if p + 8 <= len(buffer) else load_tail(buffer, p)
        n = min(count_word_bytes(word) if spaces_end else 8, end - p)
        if n < 8:
            word &= (U1 << (np.uint64(n) * U8)) - U1
        if n > 0:
            others |= word
            word = lower_ascii(word) if lower else word
            packed[at] = word
            at += 1
            value = mix_word(value, word)
            p += n
    return p, finish_hash(value, p - start), (others & HIGHS) != U0


@inlined
def take_alphanumeric(buffer, p, end, lower):
    """The ASCII letters and digits from ``p`` on, up to eight, as one number, and how many these are."""
    word = load_word(buffer, p) if p + 8 <= len(buffer) else load_tail(buffer, p)
    if p + 8 > end:
        word &= (U1 << (np.uint64(end - p) * U8)) - U1
    low = word & ~HIGHS
    letters = ((low | CASE) + BEFORE_LOWER_A) ^ ((low | CASE) + AFTER_LOWER_Z)
    digits = (low + BEFORE_0) ^ (low + AFTER_9)
    marks = (~(letters | digits) | word) & HIGHS  # bytes that are neither
    before = ((marks & (~marks + U1)) >> U7) - U1  # all bits of the bytes before the first of these
    n = np.int64(((before & ONES) * ONES) >> U56)
    return (word | (letters & HIGHS) >> U2 if lower else word) & before, n


@inlined
def pack_alphanumeric(buffer, start, end, lower, packed, at):
    """Write the ASCII letters and digits from ``start`` on in packed form; returns (where they end, hash).

    As :func:`pack_word`, but without a loop over candidates for the end, and the case costs nothing.
    """
    value = U0
    p = start
    n = 8
    while n == 8 and p < end:
        word, n = take_alphanumeric(buffer, p, end, lower)
        if n > 0:
            packed[at] = word
            at += 1
            value = mix_word(value, word)
            p += n
    return p, finish_hash(value, p - start)


@helper
def pack_characters(buffer, start, end, lower_case, kinds, kind, packed, at):
    """Write a span in packed form, up to the first character that is not of the kind.

    Returns (where it ends, its hash, its length). An empty ``lower_case`` leaves the case as it is; without
    ``kinds`` all characters are written, and bytes that are not UTF-8 are copied.
    """
    value, word = U0, U0
    filled = 0  # bits of the word that is being filled
    length = 0
    p = start
    is_of_letters = len(kinds) == 0 or kinds[ord("a")] == kind
    while p < end:
        encoded, n = U0, 0
        if is_of_letters and buffer[p] < 0x80:  # most are, between a few others
            encoded, n = take_alphanumeric(buffer, p, min(end, p + 7), len(lower_case) > 0)
        n_read = n
        if n == 0:
            code, n_read = decode_character(buffer, p, end)
            if len(kinds) > 0 and (code < 0 or kinds[code] != kind):
                break
            encoded, n = np.uint64(buffer[p]), 1
            if code >= 0:
                encoded, n = encode_character(np.int64(lower_case[code]) if code < len(lower_case) else code)
        p += n_read
        length += n
        word |= encoded << np.uint64(filled)
        filled += 8 * n
        if filled >= 64:
            packed[at] = word
            at += 1
            value = mix_word(value, word)
            filled -= 64
            word = encoded >> np.uint64(8 * n - filled)
    if filled > 0:
        packed[at] = word
        value = mix_word(value, word)
    return p, finish_hash(value, length), length


@kernel
def pack_spans(buffer, start, end, pieces):
    """Fill ``pieces`` with the given spans as they are."""
    at = 0
    for k in range(len(start)):
        _, value, _ = pack_word(buffer, start[k], end[k], False, False, pieces.packed, at)
        pieces.first[k], pieces.length[k], pieces.hashes[k] = at, end[k] - start[k], value
        at += (end[k] - start[k] + 7) // 8
