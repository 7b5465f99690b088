"""Training of sparse nodes: all children of a chunk at once, example by example.

The weights of a chunk are feature-major, so that one example's scores for all children, and its change of all
their weights, are a few vector operations per feature. What an example changes is resolved by the type of
``method`` when compiled (:mod:`.methods`). Slow twin: :mod:`labeltree.reference.sparse`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.random import random_at, shuffle
from labeltree.kernels.sparse.arrays import FEW_LANES, LANES
from labeltree.kernels.sparse.methods import change_dual
from labeltree.kernels.trees.paths import mark_path

_RESTING = 0.1  # an example that moves less than this part of the tolerance rests ...
_REST = 4  # ... until every so-many-th pass
_FEW = 16  # but not among so few: one may come twice in a row, and so not move, before all are done


@kernel
def count_positive(parent, leaf_of_label, label_indptr, labels, weight, out_count, out_weight):
    """For each node, how many rows have a label below it, and their weight; rows of weight 0 do not count.

    ``out_count`` is (n_nodes + 1,), counts one place late so that a running sum makes pointers of them.
    """
    last_row, path = np.full(len(parent), np.int64(-1)), np.empty(len(parent), np.int32)
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        for q in range(label_indptr[row], label_indptr[row + 1]):
            for place in range(mark_path(parent, leaf_of_label[labels[q]], last_row, row, path, 0)):
                out_count[path[place] + 1] += 1
                out_weight[path[place]] += weight[row]


@kernel
def fill_positive(parent, leaf_of_label, label_indptr, labels, weight, indptr, out_rows):
    """For each node its positive rows in order, at ``indptr[node]`` and following."""
    last_row, path = np.full(len(parent), np.int64(-1)), np.empty(len(parent), np.int32)
    free = indptr.copy()
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        for q in range(label_indptr[row], label_indptr[row + 1]):
            for place in range(mark_path(parent, leaf_of_label[labels[q]], last_row, row, path, 0)):
                out_rows[free[path[place]]] = row
                free[path[place]] += 1


@kernel
def fill_shares(parent, leaf_of_label, label_indptr, labels, weight, indptr, out_shares):
    """As :func:`fill_positive`, but of each row its weight times the part of its labels below the node.

    So each label counts at all nodes above it, also those that another one has reached.
    """
    last_row = np.full(len(parent), np.int64(-1))
    free = indptr.copy()
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        start, end = label_indptr[row], label_indptr[row + 1]
        share = weight[row] / np.float32(end - start)
        for q in range(start, end):
            node = leaf_of_label[labels[q]]
            while node >= 0:
                if last_row[node] != row:
                    last_row[node] = row
                    out_shares[free[node]] = 0.0
                    free[node] += 1
                out_shares[free[node] - 1] += share
                node = parent[node]


@kernel
def mark_picked(
    parent,
    leaf_of_label,
    label_indptr,
    labels,
    seed,
    number,
    node_indptr,
    node_rows,
    first,
    last,
    out_is_picked,
):
    """Whether the label that pass ``number`` picks of a row is below the node, for all rows of these nodes.

    Every task picks the same label of a row.
    """
    n_rows = len(label_indptr) - 1
    for node in range(first, last):
        for position in range(node_indptr[node], node_indptr[node + 1]):
            row = node_rows[position]
            start, end = label_indptr[row], label_indptr[row + 1]
            above = leaf_of_label[labels[start + random_at(seed, number * n_rows + row, end - start)]]
            while above > node:  # parents stand before their children
                above = parent[above]
            out_is_picked[position - node_indptr[first]] = above == node


@kernel
def gather_examples(rows, chosen, bias, local_of_feature, out, out_features):
    """Fill the rows of a :class:`Gathered`; returns the number of features without the bias.

    ``local_of_feature`` is -1 everywhere, before and after.
    """
    n_features = 0
    filled = 0
    for i in range(len(chosen)):
        row = chosen[i]
        squares = np.float32(bias * bias)
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            squares += rows.values[position] * rows.values[position]
        out.indptr[i] = filled
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            feature, value = rows.indices[position], rows.values[position]
            if local_of_feature[feature] < 0:
                local_of_feature[feature] = n_features
                out_features[n_features] = feature
                n_features += 1
            out.indices[filled] = local_of_feature[feature]
            out.values[filled] = value
            filled += 1
        if bias != 0.0:
            out.values[filled] = bias
            filled += 1
        out.squares[i] = max(squares, np.float32(1e-12))
        out.weight[i] = rows.weight[row]
        out.held_out[i] = rows.held_out[row]
    out.indptr[len(chosen)] = filled
    if bias != 0.0:
        for i in range(len(chosen)):
            out.indices[out.indptr[i + 1] - 1] = n_features
    for feature in out_features[:n_features]:
        local_of_feature[feature] = -1
    return n_features


@kernel
def gather_positive(
    node_indptr, node_rows, first, n_children, chosen, place_of_row, out_indptr, out_positive
):
    """For each chosen row the children that it is positive for; ``place_of_row`` may hold anything."""
    for i in range(len(chosen)):
        place_of_row[chosen[i]] = i
        out_indptr[i] = 0
    out_indptr[len(chosen)] = 0
    start, stop = node_indptr[first], node_indptr[first + n_children]
    for position in range(start, stop):
        out_indptr[place_of_row[node_rows[position]] + 1] += 1
    for i in range(len(chosen)):
        out_indptr[i + 1] += out_indptr[i]
    free = out_indptr.copy()
    for c in range(n_children):
        for position in range(node_indptr[first + c], node_indptr[first + c + 1]):
            i = place_of_row[node_rows[position]]
            out_positive[free[i]] = c
            free[i] += 1


@inlined
def _score_example(indices, values, start, end, weights, out):
    n_columns = weights.shape[1]
    for c in range(n_columns):
        out[c] = 0.0
    for position in range(start, end):
        f, value = indices[position], values[position]
        if n_columns == FEW_LANES:
            for lane in range(FEW_LANES):
                out[lane] += value * weights[f, lane]
            continue
        for first in range(0, n_columns, LANES):
            for lane in range(LANES):
                out[first + lane] += value * weights[f, first + lane]


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
def _change_weights(indices, values, start, end, change, keep, weights):
    """weights = keep * weights + value * change, in the rows of an example's features."""
    n_columns = weights.shape[1]
    for position in range(start, end):
        f, value = indices[position], values[position]
        if n_columns == FEW_LANES:
            for lane in range(FEW_LANES):
                weights[f, lane] = keep * weights[f, lane] + value * change[lane]
            continue
        for first in range(0, n_columns, LANES):
            for lane in range(LANES):
                old = weights[f, first + lane]
                weights[f, first + lane] = keep * old + value * change[first + lane]


@inlined
def _sum_sizes(change, variables):
    """How far an example moves its variables, and how large they are, both summed over the children."""
    moved, total = np.float32(0.0), np.float32(0.0)
    if len(change) == FEW_LANES:
        for lane in range(FEW_LANES):
            moved += abs(change[lane])
            total += abs(variables[lane])
        return moved, total
    for first in range(0, len(change), LANES):
        for lane in range(LANES):
            moved += abs(change[first + lane])
            total += abs(variables[first + lane])
    return moved, total


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
    n_seen = state.n_seen[0]
    least_move = np.float32(0.0)
    for number in range(n_passes):
        shuffle(order, state.random)
        all_moved, all_total, n_visits = 0.0, 0.0, 0
        for place in range(len(order)):
            i = order[place]
            if held_out[i] and not with_held_out:
                continue
            if not is_active[i] and number % _REST != _REST - 1:
                continue
            n_visits += 1
            start, end = indptr[i], indptr[i + 1]
            if method.l1 > 0.0:
                _score_shrunk(indices, values, start, end, weights, method.l1, scores)
            else:
                _score_example(indices, values, start, end, weights, scores)
            for position in range(positive_indptr[i], positive_indptr[i + 1]):
                sign[positive[position]] = 1.0
            keep = change_dual(
                method,
                n_seen + n_visits,
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
                _change_weights(indices, values, start, end, change, keep, weights)
        n_seen += n_visits
        state.n_seen[0] = n_seen
        if all_moved <= tolerance * all_total:
            return number + 1
        least_move = np.float32(_RESTING * tolerance * all_total / n_visits)
    return n_passes
