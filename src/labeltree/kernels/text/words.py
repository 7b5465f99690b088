"""Rows of text to words and labels, in packed form (see :mod:`.packing`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.characters import decode_character, is_space
from labeltree.kernels.jit import helper, inlined, kernel
from labeltree.kernels.numbers import is_sign, parse_number
from labeltree.kernels.text.packing import pack_alphanumeric, pack_characters, pack_word

# Why `split_rows` stopped.
DONE, EMPTY_LABEL, BAD_WEIGHT = range(3)
# Where it stopped, in ``progress``: the next row, the pieces found so far, and the span a bad row is about.
ROW, N_WORDS, N_LABELS, BAD_START, BAD_END, N_PROGRESS = range(6)
MAX_WEIGHT = 1e18  # sums and squares of weights stay far from the largest float32
# What a character is to words: what separates them, what they are made of, or a character of a script without
# spaces, where every two neighbours are a word.
NOT_IN_WORDS, IN_WORDS, UNSPACED = range(3)


class TextOptions(NamedTuple):
    """How text becomes words. Arrays instead of flags: an empty one means the step is left out."""

    lower_case: NDArray[np.uint16]  # (65536,) by code point; empty: keep the case
    kinds: NDArray[np.uint8]  # (0x110000,) by code point: what it is to words; empty: spaces separate them
    prefix: NDArray[np.uint8]  # what a label among the words starts with; empty: there are none
    weighted: bool  # words are written as word:weight


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
def kind_at(buffer, p, end, kinds):
    """(what the character at ``p`` is to words, where the next one is)."""
    if p >= end:
        return NOT_IN_WORDS, end
    code, width = decode_character(buffer, p, end)
    return np.int64(kinds[code]) if code >= 0 else NOT_IN_WORDS, p + width


@helper
def pack_other(buffer, start, p, end, lower_case, kinds, packed, at):
    """Write the word that starts here in packed form, where a character that is not ASCII is at ``p``.

    Returns (its length, which is 0 if no word starts here, its hash, where to look for the next).
    """
    following, value, length = pack_characters(buffer, start, end, lower_case, kinds, IN_WORDS, packed, at)
    if following > p:  # most often
        return length, value, following
    kind, following = kind_at(buffer, p, end, kinds)
    if kind == UNSPACED and length > 0:
        following = p
    elif kind == UNSPACED:
        second = following
        kind, third = kind_at(buffer, second, end, kinds)
        stop = third if kind == UNSPACED else second
        # The second character begins the next word, unless it is the last of its run.
        following = second if kind_at(buffer, stop, end, kinds)[0] == UNSPACED else stop
        _, value, length = pack_characters(buffer, start, stop, lower_case, kinds, UNSPACED, packed, at)
    return length, value, following


@inlined
def split_row(buffer, start, end, options, words, weights, labels, n_words, n_labels, at):
    """Add the words and labels of one row to the pieces.

    Returns (status, where the last piece starts and ends, the new n_words, n_labels and at).
    """
    # Taken out of their tuples first: an access in the loop would count references.
    lower_case, kinds, prefix, weighted = options.lower_case, options.kinds, options.prefix, options.weighted
    packed, word_first, word_length, word_hashes = words.packed, words.first, words.length, words.hashes
    label_first, label_length, label_hashes = labels.first, labels.length, labels.hashes
    lower = len(lower_case) > 0
    first_of_prefix = np.int64(prefix[0]) if len(prefix) > 0 else -1
    status, p, stop, following = DONE, start, start, start
    while status == DONE and following < end:
        p = following
        following += 1
        if is_space(buffer[p]):
            continue
        is_label = buffer[p] == first_of_prefix and has_prefix(buffer, p, end, prefix)
        if is_label and (p == start or is_space(buffer[p - 1])):
            p += len(prefix)
            stop, value, _ = pack_word(buffer, p, end, True, False, packed, at)
            length, following = stop - p, stop + 1
            label_first[n_labels], label_length[n_labels], label_hashes[n_labels] = at, length, value
            n_labels += 1
            status = EMPTY_LABEL if length == 0 else DONE
        else:
            if len(kinds) > 0:
                stop, value = pack_alphanumeric(buffer, p, end, lower, packed, at)
                length, following = stop - p, stop + 1
                if stop < end and buffer[stop] >= 0x80:
                    length, value, following = pack_other(buffer, p, stop, end, lower_case, kinds, packed, at)
            else:
                stop, value, has_others = pack_word(buffer, p, end, True, lower, packed, at)
                length, following, word_stop = stop - p, stop + 1, stop
                if weighted:
                    word_stop, weight = split_weight(buffer, p, stop)
                    weights[n_words] = weight
                    status = BAD_WEIGHT if weight < 0.0 else DONE
                    _, value, has_others = pack_word(buffer, p, word_stop, False, lower, packed, at)
                    length = word_stop - p
                if lower and has_others:
                    _, value, length = pack_characters(
                        buffer, p, word_stop, lower_case, kinds, IN_WORDS, packed, at
                    )
            if length > 0:
                word_first[n_words], word_length[n_words], word_hashes[n_words] = at, length, value
                n_words += 1
        at += (length + 7) // 8
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
