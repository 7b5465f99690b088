"""Entries of training rows on their way into the index: how much each counts, then by column or by row.

Slow twin: ``entry_levels`` of :mod:`labeltree.reference.neighbours`; the lists themselves are the entries.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel

NOT_KEPT = 255  # instead of a level


@inlined
def _norm(indices, values, start, end, n_columns):
    """The length of a row, of its first columns only."""
    total = 0.0
    for place in range(start, end):
        if indices[place] < n_columns:
            total += np.float64(values[place]) * np.float64(values[place])
    return np.sqrt(total)


@kernel
def largest_value(indptr, indices, values, n_columns, weight, out_norm):
    """Of all rows that count, divided by their lengths, which are written; at least 0."""
    largest = np.float32(0.0)
    for row in range(len(weight)):
        start, end = indptr[row], indptr[row + 1]
        norm = _norm(indices, values, start, end, n_columns)
        out_norm[row] = norm
        if weight[row] > 0.0 and norm > 0.0:
            for place in range(start, end):
                if indices[place] < n_columns:
                    largest = max(largest, np.float32(np.float64(values[place]) / norm))
    return largest


@kernel
def find_levels(indptr, indices, values, n_columns, weight, norm, least, bounds, out_level, out_n_rows):
    """Of each entry the number of bounds that its value reaches, or NOT_KEPT if it is below the least one.

    ``out_n_rows`` (n_columns,) counts, for each column, the rows in which it is kept.
    """
    for row in range(len(weight)):
        counts = weight[row] > 0.0 and norm[row] > 0.0
        for place in range(indptr[row], indptr[row + 1]):
            column, level = indices[place], NOT_KEPT
            if counts and column < n_columns:
                value = np.float32(np.float64(values[place]) / norm[row])
                if value >= least:
                    level = 0
                    while level < len(bounds) and value >= bounds[level]:
                        level += 1
                    out_n_rows[column] += 1
            out_level[place] = level


@kernel
def count_chosen(indptr, indices, level, is_chosen, out_count):
    """(n_rows,) how many entries of chosen columns are kept of each row."""
    for row in range(len(out_count)):
        n = 0
        for place in range(indptr[row], indptr[row + 1]):
            if level[place] != NOT_KEPT and is_chosen[indices[place]]:
                n += 1
        out_count[row] = n


@kernel
def list_by_column(indptr, indices, level, is_listed, free, out_rows, out_levels):
    """The rows of each listed column, rising, from ``free[column]`` on, which moves; and their levels."""
    for row in range(len(indptr) - 1):
        for place in range(indptr[row], indptr[row + 1]):
            column = indices[place]
            if level[place] != NOT_KEPT and is_listed[column]:
                out_rows[free[column]] = row
                out_levels[free[column]] = level[place]
                free[column] += 1


@kernel
def list_by_row(indptr, indices, level, place_of_column, out_places, out_levels):
    """The places of each row's columns that have one, one row after another; and their levels."""
    n = 0
    for row in range(len(indptr) - 1):
        for place in range(indptr[row], indptr[row + 1]):
            if level[place] != NOT_KEPT and place_of_column[indices[place]] >= 0:
                out_places[n] = place_of_column[indices[place]]
                out_levels[n] = level[place]
                n += 1
