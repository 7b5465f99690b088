"""Ids of tokens: n-grams of words, counts, columns; and rows of labels."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import kernel
from labeltree.kernels.sorting import MOST_RANKED, make_key, number_of, sort_keys
from labeltree.kernels.text.packing import MIX_1, MIX_2, U32

# Ids of tokens: words from 0 on, n-gram bucket b is FIRST_BUCKET - b.
UNKNOWN, FIRST_BUCKET = -1, -2


@kernel
def add_ngrams(ids, hashes, row_end, longest, n_buckets, out_ids, out_end):
    """Each row's word ids, then the buckets of its runs of 2 to ``longest`` words; returns how many.

    A run's bucket comes from its words' hashes alone, so words without an id take part.
    """
    n, start = 0, 0
    for i in range(len(row_end)):
        end = row_end[i]
        for k in range(start, end):
            out_ids[n] = ids[k]
            n += 1
        for k in range(start, end):
            value = hashes[k]
            for last in range(k + 1, min(k + longest, end)):
                value = (value * MIX_1 + hashes[last]) * MIX_2
                value ^= value >> U32
                # The high half of a 32 x 32 bit product: a bucket without a division.
                out_ids[n] = FIRST_BUCKET - np.int64((value >> U32) * np.uint64(n_buckets) >> U32)
                n += 1
        out_end[i] = n
        start = end
    return n


@kernel
def count_ids(ids, word_counts, bucket_counts):
    """Add the occurrences of each word and bucket, like ``Counter.update``."""
    for k in range(len(ids)):
        if ids[k] >= 0:
            word_counts[ids[k]] += 1
        elif ids[k] != UNKNOWN:
            bucket_counts[FIRST_BUCKET - ids[k]] += 1


@kernel
def count_rows_of(ids, row_end, first_row, last_row, out_counts):
    """Add to ``out_counts[id]`` the number of rows that have it.

    ``last_row[id]`` is the last row that had it, for this call and those before; rows count from first_row.
    """
    k = 0
    for i in range(len(row_end)):
        while k < row_end[i]:
            if ids[k] >= 0 and last_row[ids[k]] != first_row + i:
                last_row[ids[k]] = first_row + i
                out_counts[ids[k]] += 1
            k += 1


@kernel
def number_tokens(ids, column_of_word, column_of_bucket, out_columns):
    """The columns of words and buckets, or -1; word ids stay as they are if ``column_of_word`` is empty."""
    for k in range(len(ids)):
        token = np.int64(ids[k])
        if token <= FIRST_BUCKET:
            out_columns[k] = column_of_bucket[FIRST_BUCKET - token]
        elif token >= 0 and len(column_of_word) > 0:
            out_columns[k] = column_of_word[token]
        else:
            out_columns[k] = token


@kernel
def unite_labels(ids, row_end, keys, out_end, out_ids):
    """Each row's labels sorted, each once; negative ids (unknown labels, told apart) become -1."""
    ranked = np.empty(MOST_RANKED, np.int64)
    n_out, start = 0, 0
    for i in range(len(row_end)):
        n = row_end[i] - start
        for k in range(n):
            keys[k] = make_key(ids[start + k], k)
        sort_keys(keys, n, ranked)
        for k in range(n):
            label = number_of(keys[k])
            if k == 0 or label != number_of(keys[k - 1]):
                out_ids[n_out] = max(label, UNKNOWN)
                n_out += 1
        out_end[i] = n_out
        start = row_end[i]
    return n_out
