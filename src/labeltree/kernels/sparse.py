"""Training of sparse nodes: all children of a chunk at once, example by example.

The weights of a chunk are feature-major, so that one example's scores for all children, and its change of all
their weights, are a few vector operations per feature. Each child is solved as if it were alone: the vector
unit only does them side by side. How a child's variable changes is resolved by the type of ``method`` when
compiled. Slow twin: :mod:`labeltree.reference.sparse`.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from labeltree.kernels.arithmetic import fast_exp
from labeltree.kernels.jit import INLINED, holds, inlined, kernel
from labeltree.kernels.random import shuffle
from labeltree.kernels.sparse_arrays import LANES, LogLoss, OnlineLogLoss, SquaredHinge

_NEWTON_STEPS = 2
_RESTING = 0.1  # an example that moves less than this part of the tolerance rests ...
_REST = 4  # ... until every so-many-th pass
_FEW = 16  # but not among so few: one may come twice in a row, and so not move, before all are done


@kernel
def count_positive(parent, leaf_of_label, label_indptr, labels, weight, out_count, out_weight):
    """For each node, how many rows have a label below it, and their weight; rows of weight 0 do not count.

    ``out_count`` is (n_nodes + 1,), counts one place late so that a running sum makes pointers of them.
    """
    stamp = np.full(len(parent), np.int64(-1))
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        for q in range(label_indptr[row], label_indptr[row + 1]):
            node = leaf_of_label[labels[q]]
            while node >= 0 and stamp[node] != row:
                stamp[node] = row
                out_count[node + 1] += 1
                out_weight[node] += weight[row]
                node = parent[node]


@kernel
def fill_positive(parent, leaf_of_label, label_indptr, labels, weight, indptr, out_rows):
    """For each node its positive rows in order, at ``indptr[node]`` and following."""
    stamp = np.full(len(parent), np.int64(-1))
    free = indptr.copy()
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        for q in range(label_indptr[row], label_indptr[row + 1]):
            node = leaf_of_label[labels[q]]
            while node >= 0 and stamp[node] != row:
                stamp[node] = row
                out_rows[free[node]] = row
                free[node] += 1
                node = parent[node]


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
        out.indptr[i] = filled
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            feature, value = rows.indices[position], rows.values[position]
            if local_of_feature[feature] < 0:
                local_of_feature[feature] = n_features
                out_features[n_features] = feature
                n_features += 1
            out.indices[filled] = local_of_feature[feature]
            out.values[filled] = value
            squares += value * value
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
        for first in range(0, n_columns, LANES):
            for lane in range(LANES):
                out[first + lane] += value * shrink(weights[f, first + lane], l1)


@inlined
def _change_weights(indices, values, start, end, change, keep, weights):
    """weights = keep * weights + value * change, in the rows of an example's features."""
    n_columns = weights.shape[1]
    for position in range(start, end):
        f, value = indices[position], values[position]
        for first in range(0, n_columns, LANES):
            for lane in range(LANES):
                old = weights[f, first + lane]
                weights[f, first + lane] = keep * old + value * change[first + lane]


def change_dual(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """Fill what an example adds to each child's weights, times its values, given its scores; and its duals.

    ``sign`` is +-1 for each child; what its positive examples count besides their weight is in
    ``positive_weight``. Returns the sizes of the changes and of the duals, summed, and what the weights are
    multiplied with.
    """
    raise NotImplementedError


@overload(change_dual, jit_options=INLINED)
def _change_hinge(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """Coordinate descent (Hsieh et al. 2008): the variable that is best while all others stay."""
    if not holds(method, SquaredHinge):
        return None

    def change(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
        negative = np.float32(0.5) / (method.cost * weight)
        moved, total = np.float32(0.0), np.float32(0.0)
        for c in range(len(scores)):
            y = sign[c]
            softness = negative / positive_weight[c] if y > 0.0 else negative
            old = dual[i, c]
            gradient = y * scores[c] - np.float32(1.0) + old * softness
            new = max(np.float32(0.0), old - gradient / (squares + softness))
            dual[i, c] = new
            out_change[c] = y * (new - old)
            moved += abs(new - old)
            total += new
        return moved, total, np.float32(1.0)

    return change


@overload(change_dual, jit_options=INLINED)
def _change_log(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """As for the hinge; a variable, between 0 and the cost, is kept as its logit t.

    The best one solves squares * (cost * sigmoid(t) - old) + y * score + t = 0. The left side is steeper than
    1 and bends at t = 0 only, so Newton's steps from 0's side of the root never leave it.
    """
    if not holds(method, LogLoss):
        return None

    def change(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
        negative = method.cost * weight
        one, limit = np.float32(1.0), np.float32(87.0)
        moved, total = np.float32(0.0), np.float32(0.0)
        for c in range(len(scores)):
            y = sign[c]
            cost = negative * positive_weight[c] if y > 0.0 else negative
            margin = y * scores[c]
            t = dual[i, c]
            old = cost / (one + fast_exp(-t))
            at_zero = squares * (np.float32(0.5) * cost - old) + margin
            low = -limit if at_zero > 0.0 else np.float32(0.0)
            high = np.float32(0.0) if at_zero > 0.0 else limit
            t = min(max(t, low), high)
            new = cost / (one + fast_exp(-t))
            for _ in range(_NEWTON_STEPS):
                slope = one + squares * new * (one - new / cost)
                t -= (squares * (new - old) + margin + t) / slope
                t = min(max(t, low), high)
                new = cost / (one + fast_exp(-t))
            dual[i, c] = t
            out_change[c] = y * (new - old)
            moved += abs(new - old)
            total += new
        return moved, total, one

    return change


@overload(change_dual, jit_options=INLINED)
def _change_online(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    if not holds(method, OnlineLogLoss):
        return None

    def change(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
        one, limit = np.float32(1.0), np.float32(87.0)
        rate = method.eta * np.float32(step) ** -method.power
        negative = rate * weight
        moved = np.float32(0.0)
        for c in range(len(scores)):
            y = sign[c]
            margin = min(max(y * scores[c], -limit), limit)
            size = (negative * positive_weight[c] if y > 0.0 else negative) / (one + fast_exp(margin))
            out_change[c] = y * size
            moved += size
        return moved, moved, max(np.float32(0.0), one - rate * method.l2)

    return change


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
            moved, total, keep = change_dual(
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
            all_moved += moved
            all_total += total
            is_active[i] = moved >= least_move or len(order) < _FEW
            if moved > 0.0:
                _change_weights(indices, values, start, end, change, keep, weights)
        n_seen += n_visits
        state.n_seen[0] = n_seen
        if all_moved <= tolerance * all_total:
            return number + 1
        least_move = np.float32(_RESTING * tolerance * all_total / n_visits)
    return n_passes
