"""Tokens of rows to weighted sparse rows: counts, TF-IDF, the strongest of each block, normalisation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.sorting import select_largest, sort_entries
from labeltree.kernels.text.packing import MIX_1

TF_COUNT, TF_LOG, TF_BINARY = range(3)
NORM_NONE, NORM_L2, NORM_MEAN = range(3)
N_COUNTS = 64  # smaller ones have their TF in a table


class Weighing(NamedTuple):
    """How counts become weights: TF times IDF. Each block of columns has a norm and a weight of its own."""

    idf: NDArray[np.float32]  # (n_columns,)
    tf: int
    norm: int
    block_end: NDArray[np.int64]  # (n_blocks,) where the columns of each end
    block_weight: NDArray[np.float32]
    block_most: NDArray[np.int64]  # so many entries of a row are kept, those of the largest weights; 0: all


class RowScratch(NamedTuple):
    """Memory for a row of so many tokens."""

    slots: NDArray[np.int64]  # zeros, at least twice as many as tokens and a power of two
    columns: NDArray[np.int32]  # distinct ones, as they come
    totals: NDArray[np.float64]
    values: NDArray[np.float32]
    keys: NDArray[np.int64]


@kernel
def make_rows(columns, weights, row_end, weighing, scratch, out_indptr, out_indices, out_values):
    """Rows of columns, a block's after those of the block before, to CSR rows; returns how many entries.

    Each time that a column is there counts 1, or its weight if ``weights`` is not empty; -1 is left out. Then
    as :func:`weigh_rows`, but a block keeps its ``block_most`` largest only; ties go to the lower column.
    """
    # Taken out of their tuples first: an access in the loop would count references.
    idf, tf, norm, block_end, block_weight, block_most = weighing
    slots, found, totals, values, keys = scratch
    bits = values.view(np.int32)
    tf_of = tf_of_counts(tf)
    n_out, start = 0, 0
    for i in range(len(row_end)):
        n = unite_columns(columns, weights, start, row_end[i], slots, found, totals)
        weigh_columns(found, totals, n, idf, tf, tf_of, values)
        begin, first = n_out, 0
        for b in range(len(block_end)):
            end = first
            while end < n and found[end] < block_end[b]:
                end += 1
            block_begin, n_kept = n_out, end - first
            limit, n_equal = np.int32(-1), 0
            if 0 < block_most[b] < n_kept:
                limit, n_equal = select_largest(bits[first:end], block_most[b])
            # Those that are kept go to the front; what was there is not looked at again.
            n_kept = gather_strong(found, values, bits, first, end, limit)
            sort_entries(found, values, n_kept, keys, n_out, out_indices, out_values)
            n_out = drop_surplus(out_indices, out_values, n_out, n_kept, limit, n_equal)
            normalize_row(out_values, block_begin, n_out, norm)
            scale_row(out_values, block_begin, n_out, block_weight[b])
            first = end
        if len(block_end) > 1:
            normalize_row(out_values, begin, n_out, norm)
        out_indptr[i + 1] = n_out
        start = row_end[i]
    return n_out


@inlined
def unite_columns(columns, weights, start, end, slots, found, totals):
    """The distinct columns of a row, and how often each is there or the sum of its weights; returns how many.

    By open addressing in so few slots that they stay in the processor's nearest cache. A slot holds a column
    and, counted from 1, its place; whether a column is new is hard to foresee, so no branch asks.
    """
    n_slots, shift = 2, np.uint64(63)
    while n_slots < 2 * (end - start):
        n_slots, shift = 2 * n_slots, shift - np.uint64(1)
    n = 0
    for k in range(start, end):
        column = np.int64(columns[k])
        if column < 0:
            continue
        slot = np.int64((np.uint64(column) * MIX_1) >> shift)
        while slots[slot] != 0 and slots[slot] >> 32 != column:
            slot = (slot + 1) & (n_slots - 1)
        is_new = slots[slot] == 0
        place = n if is_new else (slots[slot] & 0xFFFFFFFF) - 1
        slots[slot] = column << 32 | place + 1
        found[place] = column
        before = 0.0 if is_new else totals[place]
        totals[place] = before + (np.float64(weights[k]) if len(weights) > 0 else 1.0)
        n += is_new
    for slot in range(n_slots):
        slots[slot] = 0
    return n


@inlined
def tf_of_counts(tf):
    """(N_COUNTS,) of small counts, which most are: logarithms take long."""
    tf_of = np.empty(N_COUNTS, np.float64)
    for n in range(N_COUNTS):
        tf_of[n] = tf_of_count(np.float64(n), tf)
    return tf_of


@inlined
def tf_of_count(count, tf):
    if tf == TF_LOG:
        return 1.0 + np.log(count) if count != 1.0 else 1.0
    return 1.0 if tf == TF_BINARY else count


@inlined
def weigh_columns(columns, totals, n, idf, tf, tf_of, out_values):
    for k in range(n):
        count = np.float64(np.float32(totals[k]))
        place = np.int64(min(count, N_COUNTS - 1.0))
        value = tf_of[place] if place == count else tf_of_count(count, tf)
        out_values[k] = value * idf[columns[k]]


@inlined
def gather_strong(columns, values, bits, start, end, limit):
    """Move the entries whose bits reach the limit to the front; returns how many."""
    n = 0
    for k in range(start, end):
        reaches = bits[k] >= limit
        columns[n], values[n] = columns[k], values[k]
        n += reaches
    return n


@inlined
def drop_surplus(indices, values, start, n, limit, n_equal):
    """Of n entries from ``start`` on leave out those equal to the limit but for the first ``n_equal``.

    Returns where they end.
    """
    bits = values.view(np.int32)
    if limit < 0:
        return start + n
    to = start
    for k in range(start, start + n):
        is_equal = bits[k] == limit
        n_equal -= is_equal
        indices[to], values[to] = indices[k], values[k]
        to += not is_equal or n_equal >= 0
    return to


@kernel
def weigh_rows(indptr, indices, values, column_weight, norm, block_end, block_weight):
    """Multiply values by their columns' weights (unless these are empty), then the norm, in place.

    Each block has a norm and a weight of its own; several together are normalised once more. What has a norm
    of 0 stays as it is.
    """
    for i in range(len(indptr) - 1):
        begin, start = indptr[i], indptr[i]
        if len(column_weight) > 0:
            for k in range(begin, indptr[i + 1]):
                values[k] = np.float64(values[k]) * column_weight[indices[k]]
        for b in range(len(block_end)):
            end = start
            while end < indptr[i + 1] and indices[end] < block_end[b]:
                end += 1
            normalize_row(values, start, end, norm)
            scale_row(values, start, end, block_weight[b])
            start = end
        if len(block_end) > 1:
            normalize_row(values, begin, indptr[i + 1], norm)


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


@inlined
def scale_row(values, start, end, weight):
    if weight != 1.0:
        for k in range(start, end):
            values[k] *= weight
