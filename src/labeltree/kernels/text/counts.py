"""Token ids to weighted sparse rows: n-grams, counts, TF-IDF, normalisation."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.sorting import (
    MOST_RANKED,
    make_key,
    number_of,
    place_of,
    select_largest,
    sort_keys,
)
from labeltree.kernels.text.packing import MIX_1, MIX_2, U32

# Ids of tokens: words from 0 on, n-gram bucket b is FIRST_BUCKET - b.
UNKNOWN, FIRST_BUCKET = -1, -2
TF_COUNT, TF_LOG, TF_BINARY = range(3)
NORM_NONE, NORM_L2, NORM_MEAN = range(3)


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
def count_rows(
    ids,
    weights,
    row_end,
    column_of_word,
    column_of_bucket,
    keys,
    out_indptr,
    out_indices,
    out_values,
):
    """Rows of token ids to CSR rows of counts (or of sums of ``weights``, unless it is empty).

    ``column_of_word`` and ``column_of_bucket`` give the column of a token, or -1; an empty ``column_of_word``
    leaves word ids as they are. Returns the number of entries.
    """
    ranked = np.empty(MOST_RANKED, np.int64)
    n_out, start = 0, 0
    for i in range(len(row_end)):
        n = 0
        for k in range(start, row_end[i]):
            column = np.int64(ids[k])
            if column <= FIRST_BUCKET:
                column = np.int64(column_of_bucket[FIRST_BUCKET - column])
            elif column >= 0 and len(column_of_word) > 0:
                column = np.int64(column_of_word[column])
            if column >= 0:
                keys[n] = make_key(column, k - start)  # equal words are summed in their order
                n += 1
        sort_keys(keys, n, ranked)
        j = 0
        while j < n:
            column = number_of(keys[j])
            total = 0.0
            while j < n and number_of(keys[j]) == column:
                total += weights[start + place_of(keys[j])] if len(weights) > 0 else 1.0
                j += 1
            out_indices[n_out], out_values[n_out] = column, total
            n_out += 1
        out_indptr[i + 1] = n_out
        start = row_end[i]
    return n_out


@kernel
def weigh_rows(indptr, indices, values, idf, tf, norm, block_end, block_weight, block_most):
    """Turn counts into weights in place: TF, times IDF (unless it is empty), then the norm.

    Each block of columns, up to ``block_end``, has a norm and a weight of its own; several together are
    normalised once more. What has a norm of 0 stays as it is. Of a block's entries all but the ``block_most``
    largest become 0, unless that is 0.
    """
    count = np.empty(256, np.int64)
    bits = values.view(np.uint32)
    for i in range(len(indptr) - 1):
        start = indptr[i]
        for b in range(len(block_end)):
            end = start
            while end < indptr[i + 1] and indices[end] < block_end[b]:
                end += 1
            weigh_block(indices, values, start, end, idf, tf)
            if 0 < block_most[b] < end - start:
                drop_weakest(values, bits, start, end, block_most[b], count)
            normalize_row(values, start, end, norm)
            if block_weight[b] != 1.0:
                for k in range(start, end):
                    values[k] *= block_weight[b]
            start = end
        if len(block_end) > 1:
            normalize_row(values, indptr[i], indptr[i + 1], norm)


@inlined
def weigh_block(indices, values, start, end, idf, tf):
    for k in range(start, end):
        value = np.float64(values[k])
        if tf == TF_LOG:
            value = 1.0 + np.log(value) if value != 1.0 else 1.0  # most are, and logarithms take long
        elif tf == TF_BINARY:
            value = 1.0
        if len(idf) > 0:
            value *= idf[indices[k]]
        values[k] = value


@inlined
def drop_weakest(values, bits, start, end, n_kept, count):
    """All but the ``n_kept`` largest of positive values become 0; ties go to the lower column."""
    limit, n_equal = select_largest(bits[start:end], n_kept, count)
    for k in range(start, end):
        if bits[k] == limit:
            n_equal -= 1
        if bits[k] < limit or (bits[k] == limit and n_equal < 0):
            values[k] = 0.0


@kernel
def drop_zeros(indptr, indices, values):
    """Take entries that are 0 out of the rows, in place; returns how many are left."""
    n, k = 0, 0
    for i in range(len(indptr) - 1):
        while k < indptr[i + 1]:
            if values[k] != 0.0:
                indices[n], values[n] = indices[k], values[k]
                n += 1
            k += 1
        indptr[i + 1] = n
    return n


@inlined
def normalize_row(values, start, end, norm):
    """Scale a row to length 1 or to absolute sum 1, or not at all."""
    total = 0.0
    for k in range(start, end):
        value = np.float64(values[k])
        total += value * value if norm == NORM_L2 else abs(value)
    if norm != NORM_NONE and total > 0.0:
        scale = 1.0 / (np.sqrt(total) if norm == NORM_L2 else total)
        for k in range(start, end):
            values[k] = values[k] * scale


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
