"""Bytes to token ids: words are found, lower-cased and hashed eight bytes at a time.

Strings are kept *packed* while they are looked up: as 64-bit words, little end first, the last one padded
with zero bytes. Hashing and comparing then need no loop for the last bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.characters import decode_character, encode_character, is_space
from labeltree.kernels.jit import helper, inlined, kernel
from labeltree.kernels.numbers import is_sign, parse_number

# Why `split_rows` stopped.
DONE, EMPTY_LABEL, BAD_WEIGHT = range(3)
# Where it stopped, in ``progress``: the next row, the pieces found so far, and the span a bad row is about.
ROW, N_WORDS, N_LABELS, BAD_START, BAD_END, N_PROGRESS = range(6)
MAX_WEIGHT = 1e18  # sums and squares of weights stay far from the largest float32

U0, U1, U2, U3, U4, U5, U6, U7, U8 = (np.uint64(k) for k in range(9))
U16, U24, U32, U40, U48, U56 = (np.uint64(k) for k in (16, 24, 32, 40, 48, 56))
ONES = np.uint64(0x0101010101010101)  # one in every byte
HIGHS = np.uint64(0x8080808080808080)
FIRST_PRINTABLE = np.uint64(0x2121212121212121)
BEFORE_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # 0x80 - "A": adding it sets the high bit of "A" and above
AFTER_Z = np.uint64(0x2525252525252525)  # 0x80 - "Z" - 1
# Odd numbers with well-mixed bits. Models with n-grams depend on them: a change is a new file format.
MIX_1 = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xD6E8FEB86659FD93)


class Pieces(NamedTuple):
    """Some words or labels in packed form: number k starts at ``packed[first[k]]``."""

    packed: NDArray[np.uint64]
    first: NDArray[np.int64]
    length: NDArray[np.int64]  # in bytes
    hashes: NDArray[np.uint64]


class TextOptions(NamedTuple):
    """How text becomes words. Arrays instead of flags: an empty one means the step is left out."""

    lower_case: NDArray[np.uint16]  # (65536,) by code point; empty: keep the case
    prefix: NDArray[np.uint8]  # what a label among the words starts with; empty: there are none
    weighted: bool  # words are written as word:weight


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
    return word | upper >> U2  # 0x80 becomes 0x20, the difference between the cases


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


@helper
def pack_lower_case(buffer, start, end, lower_case, packed, at):
    """Write a span lower-cased, character by character, in packed form; returns (its hash, its length).

    Bytes that are not UTF-8 and characters beyond the first 65536 are copied as they are.
    """
    value, word = U0, U0
    filled = 0  # bits of the word that is being filled
    length = 0
    p = start
    while p < end:
        code, n_read = decode_character(buffer, p, end)
        encoded, n = np.uint64(buffer[p]), 1
        if code >= 0:
            encoded, n = encode_character(np.int64(lower_case[code]))
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
    return finish_hash(value, length), length


@helper
def parse_weight(buffer, start, end):
    """The number in a span (digits, point, exponent); -1 if it is none, has a sign or is too large."""
    if start == end or is_sign(buffer[start]):
        return -1.0
    value, stop = parse_number(buffer, start, end)
    return value if stop == end and value <= MAX_WEIGHT else -1.0


@inlined
def has_prefix(buffer, start, end, prefix):
    n = len(prefix)
    k = 0
    while k < n and start + k < end and buffer[start + k] == prefix[k]:
        k += 1
    return k == n


@helper
def split_weight(buffer, start, end):
    """Cut ``word:weight`` at the last colon; returns (end of the word, weight), weight -1 if it is bad."""
    colon = end - 1
    while colon > start and buffer[colon] != 58:
        colon -= 1
    return (colon, parse_weight(buffer, colon + 1, end)) if colon > start else (colon, -1.0)


@inlined
def split_row(buffer, p, end, options, words, weights, labels, n_words, n_labels, at):
    """Add the words and labels of one row to the pieces.

    Returns (status, where the last piece starts and ends, the new n_words, n_labels and at).
    """
    # Taken out of their tuples first: an access in the loop would count references.
    lower_case, prefix, weighted = options.lower_case, options.prefix, options.weighted
    packed, word_first, word_length, word_hashes = words.packed, words.first, words.length, words.hashes
    label_first, label_length, label_hashes = labels.first, labels.length, labels.hashes
    lower = len(lower_case) > 0
    first_of_prefix = np.int64(prefix[0]) if len(prefix) > 0 else -1
    status, stop = DONE, p
    following = p
    while status == DONE and following < end:
        p = following
        following += 1
        if is_space(buffer[p]):
            continue
        is_label = buffer[p] == first_of_prefix and has_prefix(buffer, p, end, prefix)
        if is_label:
            p += len(prefix)
        stop, value, has_others = pack_word(buffer, p, end, True, lower and not is_label, packed, at)
        length = stop - p
        if is_label:
            label_first[n_labels], label_length[n_labels], label_hashes[n_labels] = at, length, value
            n_labels += 1
            status = EMPTY_LABEL if length == 0 else DONE
        else:
            word_stop = stop
            if weighted:
                word_stop, weight = split_weight(buffer, p, stop)
                weights[n_words] = weight
                status = BAD_WEIGHT if weight < 0.0 else DONE
                _, value, has_others = pack_word(buffer, p, word_stop, False, lower, packed, at)
                length = word_stop - p
            if lower and has_others:
                value, length = pack_lower_case(buffer, p, word_stop, lower_case, packed, at)
            word_first[n_words], word_length[n_words], word_hashes[n_words] = at, length, value
            n_words += 1
        at += (length + 7) // 8
        following = stop + 1
    return status, p, stop, n_words, n_labels, at


@kernel
def split_rows(
    buffer, text_start, text_end, options, max_bytes, progress, words, weights, word_end, labels, label_end
):
    """Cut the texts of rows ``progress[ROW]:`` into words and labels, until about ``max_bytes`` are read.

    Fills the pieces ``words`` and ``labels`` (which share ``packed``), the words' ``weights``, and per row
    the number of pieces so far. A bad row leaves no pieces and stops the kernel at that row.
    """
    n_words, n_labels, at, n_bytes = 0, 0, 0, 0
    row = progress[ROW]
    status = DONE
    while row < len(text_start) and n_bytes < max_bytes:
        start, end = text_start[row], text_end[row]
        status, p, stop, words_after, labels_after, at_after = split_row(
            buffer, start, end, options, words, weights, labels, n_words, n_labels, at
        )
        if status != DONE:
            progress[BAD_START], progress[BAD_END] = p, stop
            break
        n_words, n_labels, at = words_after, labels_after, at_after
        word_end[row], label_end[row] = n_words, n_labels
        n_bytes += end - start
        row += 1
    progress[ROW], progress[N_WORDS], progress[N_LABELS] = row, n_words, n_labels
    return status


@kernel
def pack_spans(buffer, start, end, pieces):
    """Fill ``pieces`` with the given spans as they are."""
    at = 0
    for k in range(len(start)):
        _, value, _ = pack_word(buffer, start[k], end[k], False, False, pieces.packed, at)
        pieces.first[k], pieces.length[k], pieces.hashes[k] = at, end[k] - start[k], value
        at += (end[k] - start[k] + 7) // 8
