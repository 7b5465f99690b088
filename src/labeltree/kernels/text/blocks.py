"""What rows have beside their words: character n-grams of words, and pairs of neighbouring words."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.text.counts import FIRST_BUCKET
from labeltree.kernels.text.packing import U0, U1, U8, U32, finish_hash, mix_word

_SPACE, _BYTE = np.uint64(32), np.uint64(0xFF)
_SIX = np.uint64(6)
PAIR_BYTES = 8  # a pair is the packed string of its words' columns, four bytes each


@inlined
def byte_between_spaces(packed, at, length, k):
    """Byte k of a packed string that has a space before it, byte -1, and one behind it."""
    if k < 0 or k >= length:
        return _SPACE
    return packed[at + k // 8] >> (np.uint64(k % 8) * U8) & _BYTE


@inlined
def next_character(packed, at, length, k):
    """Where the character after the one at byte k begins."""
    k += 1
    while k < length and packed[at + k // 8] >> (np.uint64(k % 8) * U8) & np.uint64(0xC0) == np.uint64(0x80):
        k += 1
    return k


@kernel
def cut_ngrams(words, n_words, n, out_pieces, out_end):
    """The runs of ``n`` characters of each word, as pieces, and how many there are up to each; returns that.

    A space belongs to the word before and after it; of a word that is shorter with them all is one run.
    """
    # Taken out of their tuples first: an access in the loop would count references.
    packed, first, length = words.packed, words.first, words.length
    out_packed, out_first = out_pieces.packed, out_pieces.first
    out_length, out_hashes = out_pieces.length, out_pieces.hashes
    n_out, to = 0, 0
    for w in range(n_words):
        at, size = first[w], length[w]
        start, end = -1, -1  # the run's bytes; the space behind the word is byte ``size``
        for _ in range(n):
            if end <= size:
                end = next_character(packed, at, size, end)
        is_last = False
        while not is_last:
            out_first[n_out], out_length[n_out] = to, end - start
            value, word, filled = U0, U0, 0
            for k in range(start, end):
                word |= byte_between_spaces(packed, at, size, k) << np.uint64(filled)
                filled += 8
                if filled == 64 or k == end - 1:
                    out_packed[to] = word
                    to += 1
                    value = mix_word(value, word)
                    word, filled = U0, 0
            out_hashes[n_out] = finish_hash(value, end - start)
            n_out += 1
            is_last = end > size
            if not is_last:
                start = next_character(packed, at, size, start)
                end = next_character(packed, at, size, end)
        out_end[w] = n_out
    return n_out


@kernel
def gather_unlisted(ids, first, length, n_listed, out_first, out_length):
    """Where the words are whose id is not one of the ``n_listed`` first, as pieces; returns how many."""
    n = 0
    for k in range(len(ids)):
        if ids[k] < 0 or ids[k] >= n_listed:
            out_first[n], out_length[n] = first[k], length[k]
            n += 1
    return n


@kernel
def expand_words(ids, row_end, parts, part_end, others, other_end, out_parts, out_end):
    """The parts of each row's words, and how many up to each row; returns how many.

    Those of word ids up to a limit are listed; those of ``others`` are in the order in which these come.
    """
    n, k, other = 0, 0, 0
    for i in range(len(row_end)):
        while k < row_end[i]:
            word = np.int64(ids[k])
            if 0 <= word < len(part_end):
                for j in range(part_end[word - 1] if word > 0 else 0, part_end[word]):
                    out_parts[n] = parts[j]
                    n += 1
            elif word > FIRST_BUCKET:
                for j in range(other_end[other], other_end[other + 1]):
                    out_parts[n] = others[j]
                    n += 1
                other += 1
            k += 1
        out_end[i] = n
    return n


@inlined
def column_of(token, column_of_word):
    """Of a word's id, or -1; all ids are columns if there is no table."""
    return np.int64(column_of_word[token]) if token >= 0 and len(column_of_word) > 0 else np.int64(token)


@inlined
def is_marked(marks, value):
    """Whether the bit that a hash names is set; there are as many words of marks as a power of two."""
    bit = value & np.uint64(64 * len(marks) - 1)
    return marks[bit >> _SIX] >> (bit & np.uint64(63)) & U1 != U0


@inlined
def mark(marks, value):
    bit = value & np.uint64(64 * len(marks) - 1)
    marks[bit >> _SIX] |= U1 << (bit & np.uint64(63))


@kernel
def mark_pairs(keys, once, twice):
    """Mark each pair's bit in ``once``, and in ``twice`` if it is there already.

    So a pair that occurs twice has its bit in ``twice``; few others have, where bits are many.
    """
    for k in range(len(keys)):
        value = finish_hash(mix_word(U0, keys[k]), PAIR_BYTES)
        if is_marked(once, value):
            mark(twice, value)
        else:
            mark(once, value)


@kernel
def gather_pairs(ids, row_end, column_of_word, twice, out_keys, out_hashes, out_end):
    """Pairs of neighbouring words of known columns as packed strings, and how many up to each row.

    Only those marked in ``twice``, unless that is empty. Returns how many.
    """
    n, k = 0, 0
    for i in range(len(row_end)):
        before = np.int64(-1)
        while k < row_end[i]:
            column = column_of(ids[k], column_of_word) if ids[k] > FIRST_BUCKET else np.int64(-1)
            if before >= 0 and column >= 0:
                key = np.uint64(before) | np.uint64(column) << U32
                value = finish_hash(mix_word(U0, key), PAIR_BYTES)
                if len(twice) == 0 or is_marked(twice, value):
                    out_keys[n], out_hashes[n] = key, value
                    n += 1
            before = column
            k += 1
        out_end[i] = n
    return n


@kernel
def append_tokens(ids, row_end, more, more_end, first_column, out_ids, out_end):
    """Each row's ids, then what it has ``more``: columns from ``first_column`` on, -1 are left out.

    Returns how many.
    """
    n, k, j = 0, 0, 0
    for i in range(len(row_end)):
        while k < row_end[i]:
            out_ids[n] = ids[k]
            n += 1
            k += 1
        while j < more_end[i]:
            out_ids[n] = first_column + more[j]
            n += more[j] >= 0
            j += 1
        out_end[i] = n
    return n
