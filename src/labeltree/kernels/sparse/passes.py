"""Training of sparse nodes: all children of a chunk at once, example by example.

The weights of a chunk are feature-major, so that one example's scores for all children, and its change of all
their weights, are a few vector operations per feature. What an example changes is resolved by the type of
``method`` when compiled (:mod:`.methods`). Slow twin: :mod:`labeltree.reference.sparse`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.arithmetic import prefetch_rows
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.lanes import (
    LANES,
    add_scaled,
    add_sizes,
    load_lanes,
    no_lanes,
    scaled,
    store_lanes,
    sum_lanes,
)
from labeltree.kernels.random import shuffle
from labeltree.kernels.sparse.arrays import FEW_LANES
from labeltree.kernels.sparse.methods import learn_example

_RESTING = 0.1  # an example that moves less than this part of the tolerance rests ...
_REST = 4  # ... until every so-many-th pass
_FEW = 16  # but not among so few: one may come twice in a row, and so not move, before all are done


@inlined
def _score_example(indices, values, start, end, weights, out):
    """``out = weights.T @ example``: four vectors of columns at a time, so that no sum waits for another."""
    n_columns = weights.shape[1]
    if n_columns == FEW_LANES:
        _score_few(indices, values, start, end, weights, out)
        return
    n_fours = n_columns // (4 * LANES) * 4 * LANES
    for column in range(0, n_fours, 4 * LANES):
        a, b, c, d = no_lanes(), no_lanes(), no_lanes(), no_lanes()
        for position in range(start, end):
            value, place = values[position], indices[position] * n_columns + column
            a = add_scaled(a, value, load_lanes(weights, place))
            b = add_scaled(b, value, load_lanes(weights, place + LANES))
            c = add_scaled(c, value, load_lanes(weights, place + 2 * LANES))
            d = add_scaled(d, value, load_lanes(weights, place + 3 * LANES))
        store_lanes(out, column, a)
        store_lanes(out, column + LANES, b)
        store_lanes(out, column + 2 * LANES, c)
        store_lanes(out, column + 3 * LANES, d)
    for column in range(n_fours, n_columns, LANES):
        a = no_lanes()
        for position in range(start, end):
            place = indices[position] * n_columns + column
            a = add_scaled(a, values[position], load_lanes(weights, place))
        store_lanes(out, column, a)


@inlined
def _score_few(indices, values, start, end, weights, out):
    for lane in range(FEW_LANES):
        out[lane] = 0.0
    for position in range(start, end):
        f, value = indices[position], values[position]
        for lane in range(FEW_LANES):
            out[lane] += value * weights[f, lane]


@inlined
def shrink(weight, l1):
    """The weight that an L1 term of this strength leaves: closer to 0 by l1, or 0."""
    return np.copysign(max(abs(weight) - l1, np.float32(0.0)), weight)


@inlined
def _score_shrunk(indices, values, start, end, weights, l1, out):
    n_columns = weights.shape[1]
    for c in range(n_columns):
        out[c] = 0.0
    for position in range(start, end):
        f, value = indices[position], values[position]
        for c in range(n_columns):
            out[c] += value * shrink(weights[f, c], l1)


@inlined
def _change_weights(indices, values, start, end, next_start, next_end, change, keep, weights):
    """weights = keep * weights + value * change, in the rows of an example's features.

    Those of the next example are fetched meanwhile: weights of many features are in no cache, and waiting for
    them took most of the time.
    """
    n_columns = weights.shape[1]
    for position in range(next_start + end - start, next_end):
        prefetch_rows(weights, indices[position], 1)
    for position in range(start, end):
        f, value = indices[position], values[position]
        if next_start + position - start < next_end:
            prefetch_rows(weights, indices[next_start + position - start], 1)
        if n_columns == FEW_LANES:
            for lane in range(FEW_LANES):
                weights[f, lane] = keep * weights[f, lane] + value * change[lane]
            continue
        for column in range(0, n_columns, LANES):
            place = f * n_columns + column
            kept = scaled(keep, load_lanes(weights, place))
            store_lanes(weights, place, add_scaled(kept, value, load_lanes(change, column)))


@inlined
def _sum_sizes(change, variables):
    """How far an example moves its variables, and how large they are, both summed over the children."""
    if len(change) == FEW_LANES:
        moved, total = np.float32(0.0), np.float32(0.0)
        for lane in range(FEW_LANES):
            moved += abs(change[lane])
            total += abs(variables[lane])
        return moved, total
    moves, sizes = no_lanes(), no_lanes()
    for column in range(0, len(change), LANES):
        moves = add_sizes(moves, load_lanes(change, column))
        sizes = add_sizes(sizes, load_lanes(variables, column))
    return sum_lanes(moves), sum_lanes(sizes)


@inlined
def _choose_examples(order, held_out, is_active, with_held_out, number, out_chosen):
    """The examples that pass ``number`` visits, in their order; returns how many."""
    n_chosen = 0
    for i in order:
        if (with_held_out or not held_out[i]) and (is_active[i] or number % _REST == _REST - 1):
            out_chosen[n_chosen] = i
            n_chosen += 1
    return n_chosen


@kernel
def train_passes(method, examples, state, n_passes, tolerance, with_held_out):
    """Up to so many passes over the examples of a chunk; the last is one that hardly changes anything.

    That is one where the dual variables change by less than the tolerance times their sum. Returns how many
    passes there were.
    """
    indptr, indices, values = examples.indptr, examples.indices, examples.values
    squares, weight, held_out = examples.squares, examples.weight, examples.held_out
    positive_indptr, positive = examples.positive_indptr, examples.positive
    weights, dual, order, is_active = state.weights, state.dual, state.order, state.is_active
    positive_weight = state.positive_weight
    n_columns = weights.shape[1]
    scores, change = np.empty(n_columns, np.float32), np.empty(n_columns, np.float32)
    sign = np.full(n_columns, np.float32(-1.0))
    chosen = np.empty_like(order)
    n_seen = state.n_seen[0]
    least_move = np.float32(0.0)
    for number in range(n_passes):
        shuffle(order, state.random)
        n_visits = _choose_examples(order, held_out, is_active, with_held_out, number, chosen)
        all_moved, all_total = 0.0, 0.0
        for place in range(n_visits):
            i, following = chosen[place], chosen[min(place + 1, n_visits - 1)]
            start, end = indptr[i], indptr[i + 1]
            next_start, next_end = indptr[following], indptr[following + 1]
            if method.l1 > 0.0:
                _score_shrunk(indices, values, start, end, weights, method.l1, scores)
            else:
                _score_example(indices, values, start, end, weights, scores)
            for position in range(positive_indptr[i], positive_indptr[i + 1]):
                sign[positive[position]] = 1.0
            keep = learn_example(
                method,
                n_seen + place + 1,
                weight[i],
                positive_weight,
                squares[i],
                sign,
                scores,
                dual,
                i,
                change,
            )
            for position in range(positive_indptr[i], positive_indptr[i + 1]):
                sign[positive[position]] = -1.0
            moved, total = _sum_sizes(change, scores)
            all_moved += moved
            all_total += total
            is_active[i] = moved >= least_move or len(order) < _FEW
            if moved != 0.0 or keep != 1.0:  # also NaN, which is then found in the weights
                _change_weights(
                    indices, values, start, end, next_start, next_end, change, keep, weights
                )  # fmt: skip
        n_seen += n_visits
        state.n_seen[0] = n_seen
        if all_moved <= tolerance * all_total:
            return number + 1
        least_move = np.float32(_RESTING * tolerance * all_total / n_visits)
    return n_passes
