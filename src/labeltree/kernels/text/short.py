"""A single short text to its sparse row in one call: what the batch does in four, without their overhead."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.addresses import frozen, vector_at
from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.text.counts import add_ngrams, count_rows, weigh_rows
from labeltree.kernels.text.strings import find_strings
from labeltree.kernels.text.words import DONE, Pieces, TextOptions, split_row

# Places in ``table``, the addresses of the features' arrays ...
SLOTS, RECORDS, COLUMN_OF_BUCKET, IDF, LOWER_CASE, NO_PREFIX, SETTINGS = range(7)
# ... and of a thread's own ones (two Pieces have four each); the row is what comes out.
WORDS, LABELS, WEIGHTS, IDS, TOKENS, KEYS, NO_COLUMNS, INDICES, VALUES = 7, 11, 15, 16, 17, 18, 19, 20, 21
_PIECES = (np.uint64, np.int64, np.int64, np.uint64)
TYPES = (
    np.uint64, np.uint64, np.int32, np.float32, np.uint16, np.uint8, np.int64, *_PIECES, *_PIECES,
    np.float32, np.int32, np.int32, np.int64, np.int32, np.int32, np.float32,
)  # fmt: skip
# Places in the settings.
WEIGHTED, LONGEST, N_BUCKETS, TF, NORM, N_SETTINGS = range(6)


@inlined
def _pieces_at(table, i):
    return Pieces(
        vector_at(table, i, np.uint64),
        vector_at(table, i + 1, np.int64),
        vector_at(table, i + 2, np.int64),
        vector_at(table, i + 3, np.uint64),
    )


@helper
def transform_text(table, buffer):
    """Fill the row of a text, UTF-8 bytes; returns its length, or -1 if a word has no good weight."""
    settings = vector_at(table, SETTINGS, np.int64)
    options = TextOptions(
        frozen(vector_at(table, LOWER_CASE, np.uint16)),
        frozen(vector_at(table, NO_PREFIX, np.uint8)),
        settings[WEIGHTED] != 0,
    )
    words, weights = _pieces_at(table, WORDS), vector_at(table, WEIGHTS, np.float32)
    labels = _pieces_at(table, LABELS)
    status, _, _, n_words, _, _ = split_row(buffer, 0, len(buffer), options, words, weights, labels, 0, 0, 0)
    if status != DONE:
        return -1
    tokens = vector_at(table, IDS, np.int32)[:n_words]
    slots, records = vector_at(table, SLOTS, np.uint64), vector_at(table, RECORDS, np.uint64)
    find_strings(slots, records, words.packed, words.first, words.length, words.hashes, tokens)
    row_end = np.empty(1, np.int64)
    row_end[0] = n_words
    if settings[LONGEST] > 1:
        ids, tokens = tokens, vector_at(table, TOKENS, np.int32)
        add_ngrams(ids, words.hashes, row_end.copy(), settings[LONGEST], settings[N_BUCKETS], tokens, row_end)
    no_columns = vector_at(table, NO_COLUMNS, np.int32)
    column_of_bucket = vector_at(table, COLUMN_OF_BUCKET, np.int32)
    keys, indptr = vector_at(table, KEYS, np.int64), np.zeros(2, np.int64)
    indices, values = row_at(table)
    count_rows(tokens, weights, row_end, no_columns, column_of_bucket, keys, 0, indptr, indices, values)
    idf = vector_at(table, IDF, np.float32)
    weigh_rows(indptr, indices, values, idf, settings[TF], settings[NORM])
    return indptr[1]


@inlined
def row_at(table):
    """The arrays whose first entries are the row."""
    return vector_at(table, INDICES, np.int32), vector_at(table, VALUES, np.float32)
