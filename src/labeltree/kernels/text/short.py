"""A single short text to its sparse row in one call: what the batch does in four, without their overhead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, frozen
from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.text.blocks import PAIR_BYTES, cut_ngrams, gather_pairs
from labeltree.kernels.text.counts import add_ngrams, count_rows, drop_zeros, weigh_rows
from labeltree.kernels.text.packing import Pieces
from labeltree.kernels.text.strings import find_strings
from labeltree.kernels.text.words import DONE, TextOptions, split_row


class ShortArrays(NamedTuple):
    """What becomes of a text: the features' arrays and settings, then a thread's own memory."""

    slots: NDArray[np.uint64]  # those of the table of words ...
    records: NDArray[np.uint64]
    column_of_bucket: NDArray[np.int32]
    idf: NDArray[np.float32]
    lower_case: NDArray[np.uint16]  # ... TextOptions ...
    kinds: NDArray[np.uint8]
    prefix: NDArray[np.uint8]
    weighted: int  # 0 or 1
    longest: int  # n-gram, in words
    n_buckets: int
    ngram_slots: NDArray[np.uint64]  # ... the blocks' tables ...
    ngram_records: NDArray[np.uint64]
    ngram_length: int  # 0: there are none
    pair_slots: NDArray[np.uint64]  # empty: there are none
    pair_records: NDArray[np.uint64]
    block_end: NDArray[np.int64]
    block_weight: NDArray[np.float32]
    block_most: NDArray[np.int64]
    tf: int
    norm: int
    words: Pieces  # ... and what a text is taken apart into
    labels: Pieces
    weights: NDArray[np.float32]
    ids: NDArray[np.int32]
    tokens: NDArray[np.int32]
    parts: Pieces  # n-grams of characters, or pairs
    part_end: NDArray[np.int64]
    found: NDArray[np.int32]
    keys: NDArray[np.int64]
    no_columns: NDArray[np.int32]  # empty
    indices: NDArray[np.int32]  # the row that comes out, in the first entries of both
    values: NDArray[np.float32]


SHORT_TABLE = Layout(ShortArrays)
_read = SHORT_TABLE.reader()


@helper
def transform_text(table, buffer):
    """Fill the row of a text, UTF-8 bytes; returns its length, or -1 if a word has no good weight."""
    arrays = _read(table, ())
    options = TextOptions(
        frozen(arrays.lower_case), frozen(arrays.kinds), frozen(arrays.prefix), arrays.weighted != 0
    )
    words, labels, weights = arrays.words, arrays.labels, arrays.weights
    status, _, _, n_words, _, _ = split_row(buffer, 0, len(buffer), options, words, weights, labels, 0, 0, 0)
    if status != DONE:
        return -1
    ids = arrays.ids[:n_words]
    find_strings(arrays.slots, arrays.records, words.packed, words.first, words.length, words.hashes, ids)
    tokens, row_end = arrays.tokens, np.empty(1, np.int64)
    row_end[0] = n_words
    if arrays.longest > 1:
        add_ngrams(ids, words.hashes, row_end.copy(), arrays.longest, arrays.n_buckets, tokens, row_end)
    else:
        tokens[:n_words] = ids
    row_end[0] = add_blocks(arrays, ids, tokens, row_end[0])
    indptr, indices, values = np.zeros(2, np.int64), arrays.indices, arrays.values
    count_rows(
        tokens,
        weights,
        row_end,
        arrays.no_columns,
        arrays.column_of_bucket,
        arrays.keys,
        indptr,
        indices,
        values,
    )
    ends, weights_of, most = arrays.block_end, arrays.block_weight, arrays.block_most
    weigh_rows(indptr, indices, values, arrays.idf, arrays.tf, arrays.norm, ends, weights_of, most)
    if most[-1] > 0:
        drop_zeros(indptr, indices, values)
    return indptr[1]


@inlined
def add_blocks(arrays, ids, tokens, n):
    """Add the columns of the text's n-grams and pairs to its ``n`` tokens; returns their new number."""
    parts, block = arrays.parts, 0
    if arrays.ngram_length > 0:
        n_parts = cut_ngrams(arrays.words, len(ids), arrays.ngram_length, parts, arrays.part_end)
        found = arrays.found[:n_parts]
        slots, records = arrays.ngram_slots, arrays.ngram_records
        find_strings(slots, records, parts.packed, parts.first, parts.length, parts.hashes, found)
        n = add_found(found, arrays.block_end[block], tokens, n)
        block += 1
    if len(arrays.pair_slots) > 0:
        row_end, end = np.empty(1, np.int64), np.empty(1, np.int64)
        row_end[0] = len(ids)
        no_marks = parts.packed[:0]
        n_parts = gather_pairs(ids, row_end, arrays.no_columns, no_marks, parts.packed, parts.hashes, end)
        for k in range(n_parts):
            parts.first[k], parts.length[k] = k, PAIR_BYTES
        found = arrays.found[:n_parts]
        slots, records = arrays.pair_slots, arrays.pair_records
        find_strings(slots, records, parts.packed, parts.first, parts.length, parts.hashes, found)
        n = add_found(found, arrays.block_end[block], tokens, n)
    return n


@inlined
def add_found(found, first_column, tokens, n):
    for k in range(len(found)):
        if found[k] >= 0:
            tokens[n] = first_column + found[k]
            n += 1
    return n


@inlined
def row_at(table):
    """The arrays whose first entries are the row."""
    arrays = _read(table, ())
    return arrays.indices, arrays.values
