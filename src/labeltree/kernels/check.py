"""Checks of arrays that come from outside: no kernel may read beyond an array or meet a NaN."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel

CANONICAL = 0
NOT_SORTED = 1  # columns of a row are unsorted or appear twice
BAD_POINTER = 2
COLUMN_RANGE = 3
NOT_FINITE = 4


@inlined
def check_row(indices, values, start, end, n_columns):
    """What is wrong with the entries of a row, and the position of the first one: ``(code, position)``."""
    code = CANONICAL
    previous = np.int64(-1)
    for position in range(start, end):
        column = np.int64(indices[position])
        if column < 0 or column >= n_columns:
            return COLUMN_RANGE, position
        if not np.isfinite(values[position]):
            return NOT_FINITE, position
        if column <= previous:
            code = NOT_SORTED
        previous = column
    return code, start


@kernel
def check_rows(indptr, indices, values, n_columns):
    """What is wrong with CSR arrays, and the row and position of the first place: ``(code, row, position)``.

    An error wins over NOT_SORTED, which wins over CANONICAL.
    """
    n_values = min(len(indices), len(values))
    code = CANONICAL
    if len(indptr) == 0 or indptr[0] != 0:
        return BAD_POINTER, 0, 0
    for i in range(len(indptr) - 1):
        if indptr[i + 1] < indptr[i] or indptr[i + 1] > n_values:
            return BAD_POINTER, i, 0
        of_row, position = check_row(indices, values, indptr[i], indptr[i + 1], n_columns)
        if of_row > NOT_SORTED:
            return of_row, i, position
        code = max(code, of_row)
    return code, 0, 0


@kernel
def buckets_fit(chunk_bucket, bucket, chunk_row, length, chunk_entry, n_entries):
    """Whether the buckets of sparse nodes point to where rows begin and to those rows' first entries.

    A chunk's buckets begin with its first row and end behind its last one, and so for its entries. A chunk
    without rows has no buckets, and every row has entries: a search looks at a bucket's first row and at a
    row's first entry before it knows whether there are any. The pointers of chunks must have been checked.
    """
    row = 0
    entry = 0  # the first of the row
    for chunk in range(len(chunk_bucket) - 1):
        begin, end = chunk_bucket[chunk], chunk_bucket[chunk + 1]
        first, last = chunk_row[chunk], chunk_row[chunk + 1]
        if (begin == end) != (first == last):
            return False
        for b in range(begin, end):
            target = first + bucket[b, 0]
            if target < row or target > last:
                return False
            if (b == begin and target != first) or (b == end - 1 and target != last):
                return False
            while row < target:
                if length[row] == 0:
                    return False
                entry += length[row]
                row += 1
            if entry != chunk_entry[chunk] + bucket[b, 1]:
                return False
    return entry == n_entries
