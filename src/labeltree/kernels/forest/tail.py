"""Votes of a forest ranked anew (PfastreXML): rare labels count more, and those whose rows are similar."""

from __future__ import annotations

import math

import numpy as np

from labeltree.kernels.addresses import Layout
from labeltree.kernels.forest.arrays import HALF_BITS, Tail
from labeltree.kernels.forest.voting import clear_row, read_work, spread_row
from labeltree.kernels.jit import inlined, kernel

TAIL_TABLE = Layout(Tail)
_read_tail = TAIL_TABLE.reader()


@inlined
def _product(tail, label, row):
    """Of a label's mean row and the row, which has a place for each column."""
    low, high, amount = tail.low, tail.high, tail.amount
    total = np.float32(0.0)
    for e in range(tail.start[label], tail.start[label + 1]):
        column = np.int64(low[e])
        if len(high) > 0:
            column |= np.int64(high[e]) << HALF_BITS
        total += np.float32(amount[e]) * row[column]
    return total * tail.scale[label]


@kernel
def rank_votes(tail_table, work_table, indptr, indices, values, share, sharpness, vote_indptr, ids, votes):
    """Replace the votes for each row's labels, as :func:`labeltree.reference.forest.rank`."""
    tail, row = _read_tail(tail_table, ()), read_work(work_table, ()).row
    for i in range(len(indptr) - 1):
        end, length = spread_row(indptr, indices, values, i, row)
        for e in range(vote_indptr[i], vote_indptr[i + 1]):
            label = ids[e]
            score = (1.0 - share) * math.log(votes[e] * np.float64(tail.weight[label]))
            if share > 0.0:
                distance = 1.0 - np.float64(_product(tail, label, row)) / length
                score -= share * math.log1p(math.exp(sharpness * distance))
            votes[e] = math.exp(score)
        clear_row(indices, indptr[i], end, row)
