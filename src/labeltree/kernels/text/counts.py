"""Token ids to weighted sparse rows: n-grams, counts, TF-IDF, normalisation."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel

# Ids of tokens: words from 0 on, n-gram bucket b is FIRST_BUCKET - b.
UNKNOWN, FIRST_BUCKET = -1, -2
TF_COUNT, TF_LOG, TF_BINARY = range(3)
NORM_NONE, NORM_L2, NORM_MEAN = range(3)

MOST_RANKED = 128  # keys that are sorted by counting how many are smaller

U32 = np.uint64(32)
# Models with n-grams depend on these numbers: a change is a new file format.
MIX_1 = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xD6E8FEB86659FD93)


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


@inlined
def sort_keys(keys, n, room):
    """Sort the first n keys, which are distinct.

    Few are put where the number of smaller ones says: n² comparisons, but without a single branch that is
    hard to foresee, several at a time. More by Shell sort, which needs neither recursion nor memory.
    """
    if n <= len(room):
        for k in range(n):
            key = keys[k]
            rank = 0
            for j in range(n):
                rank += keys[j] < key
            room[rank] = key
        for k in range(n):
            keys[k] = room[k]
        return
    gap = n
    while gap > 1:
        gap = max(1, gap * 5 // 11)
        for k in range(gap, n):
            key = keys[k]
            j = k
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key


@kernel
def count_rows(
    ids, weights, row_end, word_row, bucket_row, keys, n_before, out_indptr, out_indices, out_values
):
    """Rows of token ids to CSR rows of counts (or of sums of ``weights``, unless it is empty).

    ``word_row`` and ``bucket_row`` give the column of a token, or -1; an empty ``word_row`` leaves word ids
    as they are. Writes from entry ``n_before`` on and returns the next free one.
    """
    room = np.empty(MOST_RANKED, np.int64)
    n_out, start = n_before, 0
    for i in range(len(row_end)):
        n = 0
        for k in range(start, row_end[i]):
            column = np.int64(ids[k])
            if column <= FIRST_BUCKET:
                column = np.int64(bucket_row[FIRST_BUCKET - column])
            elif column >= 0 and len(word_row) > 0:
                column = np.int64(word_row[column])
            if column >= 0:
                keys[n] = column << 32 | (k - start)  # the place in the row: equal words are summed in order
                n += 1
        sort_keys(keys, n, room)
        j = 0
        while j < n:
            column = keys[j] >> 32
            total = 0.0
            while j < n and keys[j] >> 32 == column:
                total += weights[start + (keys[j] & 0xFFFFFFFF)] if len(weights) > 0 else 1.0
                j += 1
            out_indices[n_out], out_values[n_out] = column, total
            n_out += 1
        out_indptr[i + 1] = n_out
        start = row_end[i]
    return n_out


@kernel
def weigh_rows(indptr, indices, values, idf, tf, norm):
    """Turn counts into weights in place: TF, times IDF (unless it is empty), then the rows' norm.

    A row whose norm is 0 stays as it is.
    """
    for i in range(len(indptr) - 1):
        start, end = indptr[i], indptr[i + 1]
        for k in range(start, end):
            value = np.float64(values[k])
            if tf == TF_LOG:
                value = 1.0 + np.log(value) if value != 1.0 else 1.0  # most are, and logarithms take long
            elif tf == TF_BINARY:
                value = 1.0
            if len(idf) > 0:
                value *= idf[indices[k]]
            values[k] = value
        normalize_row(values, start, end, norm)


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
    room = np.empty(MOST_RANKED, np.int64)
    n_out, start = 0, 0
    for i in range(len(row_end)):
        n = row_end[i] - start
        for k in range(n):
            keys[k] = np.int64(ids[start + k]) << 32 | k
        sort_keys(keys, n, room)
        for k in range(n):
            label = keys[k] >> 32
            if k == 0 or label != keys[k - 1] >> 32:
                out_ids[n_out] = max(label, UNKNOWN)
                n_out += 1
        out_end[i] = n_out
        start = row_end[i]
    return n_out
