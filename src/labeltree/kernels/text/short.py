"""A single short text to its sparse row in one call: what the batch does in four, without their overhead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, frozen
from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.text.counts import add_ngrams, count_rows, weigh_rows
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
    tf: int
    norm: int
    words: Pieces  # ... and what a text is taken apart into
    labels: Pieces
    weights: NDArray[np.float32]
    ids: NDArray[np.int32]
    tokens: NDArray[np.int32]
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
    tokens = arrays.ids[:n_words]
    find_strings(arrays.slots, arrays.records, words.packed, words.first, words.length, words.hashes, tokens)
    row_end = np.empty(1, np.int64)
    row_end[0] = n_words
    if arrays.longest > 1:
        ids, tokens = tokens, arrays.tokens
        add_ngrams(ids, words.hashes, row_end.copy(), arrays.longest, arrays.n_buckets, tokens, row_end)
    indptr, indices, values = np.zeros(2, np.int64), arrays.indices, arrays.values
    count_rows(
        tokens,
        weights,
        row_end,
        arrays.no_columns,
        arrays.column_of_bucket,
        arrays.keys,
        0,
        indptr,
        indices,
        values,
    )
    weigh_rows(indptr, indices, values, arrays.idf, arrays.tf, arrays.norm)
    return indptr[1]


@inlined
def row_at(table):
    """The arrays whose first entries are the row."""
    arrays = _read(table, ())
    return arrays.indices, arrays.values
