"""A single short text to its sparse row in one call: what the batch does in four, without their overhead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, frozen
from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.text.blocks import (
    PAIR_BYTES,
    cut_ngrams,
    expand_words,
    gather_pairs,
    gather_unlisted,
)
from labeltree.kernels.text.counts import add_ngrams, number_tokens
from labeltree.kernels.text.packing import Pieces
from labeltree.kernels.text.rows import RowScratch, Weighing, make_rows
from labeltree.kernels.text.strings import find_strings
from labeltree.kernels.text.words import DONE, TextOptions, split_row


class ShortArrays(NamedTuple):
    """What becomes of a text: the features' arrays and settings, then a thread's own memory."""

    slots: NDArray[np.uint64]  # those of the table of words ...
    records: NDArray[np.uint64]
    column_of_bucket: NDArray[np.int32]
    lower_case: NDArray[np.uint16]  # ... TextOptions ...
    kinds: NDArray[np.uint8]
    prefix: NDArray[np.uint8]
    weighted: int  # 0 or 1
    longest: int  # n-gram, in words
    n_buckets: int
    ngram_slots: NDArray[np.uint64]  # ... the blocks' tables ...
    ngram_records: NDArray[np.uint64]
    ngram_length: int  # 0: there are none
    listed_parts: NDArray[np.int32]
    listed_end: NDArray[np.int64]
    pair_slots: NDArray[np.uint64]  # empty: there are none
    pair_records: NDArray[np.uint64]
    weighing: Weighing
    words: Pieces  # ... and what a text is taken apart into
    labels: Pieces
    weights: NDArray[np.float32]
    ids: NDArray[np.int32]
    tokens: NDArray[np.int32]
    others: Pieces  # words whose n-grams are not listed
    parts: Pieces  # n-grams of characters, or pairs
    part_end: NDArray[np.int64]
    found: NDArray[np.int32]
    of_words: NDArray[np.int32]
    scratch: RowScratch
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
        columns = tokens[: row_end[0]]
        number_tokens(columns, arrays.no_columns, arrays.column_of_bucket, columns)
    else:
        tokens[:n_words] = ids
    row_end[0] = add_blocks(arrays, ids, tokens, row_end[0])
    indptr = np.zeros(2, np.int64)
    weighing, scratch = arrays.weighing, arrays.scratch
    return make_rows(tokens, weights, row_end, weighing, scratch, indptr, arrays.indices, arrays.values)


@inlined
def add_blocks(arrays, ids, tokens, n):
    """Add the columns of the text's n-grams and pairs to its ``n`` tokens; returns their new number."""
    parts, block, first_columns = arrays.parts, 0, arrays.weighing.block_end
    row_end, end = np.empty(1, np.int64), np.empty(1, np.int64)
    row_end[0] = len(ids)
    if arrays.ngram_length > 0:
        words, others, part_end, listed_end = arrays.words, arrays.others, arrays.part_end, arrays.listed_end
        n_others = gather_unlisted(
            ids, words.first, words.length, len(listed_end), others.first, others.length
        )
        part_end[0] = 0
        n_parts = cut_ngrams(others, n_others, arrays.ngram_length, parts, part_end[1:])
        found = arrays.found[:n_parts]
        slots, records = arrays.ngram_slots, arrays.ngram_records
        find_strings(slots, records, parts.packed, parts.first, parts.length, parts.hashes, found)
        columns = arrays.of_words
        n_parts = expand_words(ids, row_end, arrays.listed_parts, listed_end, found, part_end, columns, end)
        n = add_found(columns[:n_parts], first_columns[block], tokens, n)
        block += 1
    if len(arrays.pair_slots) > 0:
        no_marks = parts.packed[:0]
        n_parts = gather_pairs(ids, row_end, arrays.no_columns, no_marks, parts.packed, parts.hashes, end)
        for k in range(n_parts):
            parts.first[k], parts.length[k] = k, PAIR_BYTES
        found = arrays.found[:n_parts]
        slots, records = arrays.pair_slots, arrays.pair_records
        find_strings(slots, records, parts.packed, parts.first, parts.length, parts.hashes, found)
        n = add_found(found, first_columns[block], tokens, n)
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
