"""In which words of a short text its features are: what batches of one row would tell, in one call."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.addresses import frozen
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.text.blocks import PAIR_BYTES, cut_ngrams, expand_words, gather_unlisted
from labeltree.kernels.text.packing import U0, U32, finish_hash, mix_word
from labeltree.kernels.text.short import SHORT_TABLE, transform_text
from labeltree.kernels.text.strings import find_strings

_read = SHORT_TABLE.reader()


@kernel
def list_places(table, text, n_words, farthest, out_column, out_first, out_n_words):
    """Each known feature of a text of ``n_words`` wherever it is: its column, first word, and how many words.

    Two words make a pair that are up to ``farthest`` apart. Beyond 1 they are neighbours only once the words
    between them are deleted, and their number is negative. Returns how many there are, or -1 if there is
    something wrong with the text. Runs of words are not listed. As
    :meth:`labeltree.features.text.TextFeatures.listed_places`.
    """
    if transform_text(table, frozen(text)) < 0:
        return -1
    arrays = _read(table, ())
    ids = arrays.ids[:n_words]
    n = 0
    for k in range(n_words):
        if ids[k] >= 0:
            out_column[n], out_first[n], out_n_words[n] = ids[k], k, 1
            n += 1
    block, first_columns = 0, arrays.weighing.block_end
    if arrays.ngram_length > 0:
        n = _list_ngrams(arrays, ids, first_columns[block], n, out_column, out_first, out_n_words)
        block += 1
    if len(arrays.pair_slots) > 0:
        first_column = first_columns[block]
        n = _list_pairs(arrays, ids, farthest, first_column, n, out_column, out_first, out_n_words)
    return n


@inlined
def _list_ngrams(arrays, ids, first_column, n, out_column, out_first, out_n_words):
    words, others, parts, part_end = arrays.words, arrays.others, arrays.parts, arrays.part_end
    listed_end, columns = arrays.listed_end, arrays.of_words
    row_end, end = np.arange(1, len(ids) + 1), np.empty(len(ids), np.int64)
    n_others = gather_unlisted(ids, words.first, words.length, len(listed_end), others.first, others.length)
    part_end[0] = 0
    n_parts = cut_ngrams(others, n_others, arrays.ngram_length, parts, part_end[1:])
    found = arrays.found[:n_parts]
    slots, records = arrays.ngram_slots, arrays.ngram_records
    find_strings(slots, records, parts.packed, parts.first, parts.length, parts.hashes, found)
    expand_words(ids, row_end, arrays.listed_parts, listed_end, found, part_end, columns, end)
    place = 0
    for k in range(len(ids)):
        while place < end[k]:
            if columns[place] >= 0:
                out_column[n], out_first[n], out_n_words[n] = first_column + columns[place], k, 1
                n += 1
            place += 1
    return n


@inlined
def _list_pairs(arrays, ids, farthest, first_column, n, out_column, out_first, out_n_words):
    parts, n_parts, start = arrays.parts, 0, n
    packed, first, length, hashes = parts.packed, parts.first, parts.length, parts.hashes
    for k in range(len(ids)):
        for other in range(k + 1, min(k + farthest + 1, len(ids))):
            if ids[k] >= 0 and ids[other] >= 0:
                key = np.uint64(ids[k]) | np.uint64(ids[other]) << U32
                packed[n_parts], hashes[n_parts] = key, finish_hash(mix_word(U0, key), PAIR_BYTES)
                first[n_parts], length[n_parts] = n_parts, PAIR_BYTES
                out_first[start + n_parts] = k
                out_n_words[start + n_parts] = 2 if other == k + 1 else k - other - 1
                n_parts += 1
    found = arrays.found[:n_parts]
    find_strings(arrays.pair_slots, arrays.pair_records, packed, first, length, hashes, found)
    for k in range(n_parts):
        if found[k] >= 0:
            out_column[n] = first_column + found[k]
            out_first[n], out_n_words[n] = out_first[start + k], out_n_words[start + k]
            n += 1
    return n
