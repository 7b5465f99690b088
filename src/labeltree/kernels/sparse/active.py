"""PPDSparse's algorithm for one child: its dual on an active set of examples, joined by the worst others.

Slow twin: :mod:`labeltree.reference.active`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import generic, inlined, kernel
from labeltree.kernels.random import next_random, shuffle
from labeltree.kernels.sorting import select_largest
from labeltree.kernels.sparse.arrays import Hinge, SquaredHinge
from labeltree.kernels.sparse.passes import shrink

FIRST_PER_POSITIVE = 10  # negative examples that begin, drawn at random ...
LARGEST_PART = 10  # ... but no more than one in so many of all; nor do more come at a time ...
LEAST_ADDED = 100  # ... except so many


@kernel
def turn_examples(indptr, indices, values, out_indptr, out_rows, out_values):
    """The examples by feature; what is beyond the last feature, the bias, is left out."""
    n_features = len(out_indptr) - 1
    out_indptr[:] = 0
    for f in indices:
        if f < n_features:
            out_indptr[f + 1] += 1
    for f in range(n_features):
        out_indptr[f + 1] += out_indptr[f]
    free = out_indptr.copy()
    for i in range(len(indptr) - 1):
        for position in range(indptr[i], indptr[i + 1]):
            f = indices[position]
            if f < n_features:
                out_rows[free[f]], out_values[free[f]] = i, values[position]
                free[f] += 1


@generic
def find_dual(method, old, slack, squares, cost):
    """(new, violation) of one variable while all others stay, ``slack`` being y w·x - 1 at the old one.

    The violation is the size of the gradient, but 0 where it points out of the bounds.
    """


@find_dual.of(SquaredHinge)
def _find_of_squares(method, old, slack, squares, cost):
    softness = 0.5 / cost
    gradient = slack + old * softness
    new = max(0.0, old - gradient / (squares + softness))
    return new, abs(gradient) if old > 0.0 else max(0.0, -gradient)


@find_dual.of(Hinge)
def _find_of_hinge(method, old, slack, squares, cost):
    new = min(max(0.0, old - slack / squares), cost)
    upwards = 0.0 if old >= cost else max(0.0, -slack)
    downwards = 0.0 if old <= 0.0 else max(0.0, slack)
    return new, max(upwards, downwards)


@inlined
def _score_example(indices, values, start, end, total, n_features, l1):
    """w·x; the bias, which stands last, is not shrunk."""
    score = 0.0
    if end > start and indices[end - 1] == n_features:
        end -= 1
        score = np.float64(values[end]) * total[n_features]
    for position in range(start, end):
        score += values[position] * shrink(total[indices[position]], l1)
    return score


@inlined
def _add_example(indices, values, start, end, change, work, n_touched):
    """Returns how many features have been touched."""
    for position in range(start, end):
        f = indices[position]
        if not work.is_touched[f]:
            work.is_touched[f] = True
            work.touched[n_touched] = f
            n_touched += 1
        work.total[f] += change * values[position]
    return n_touched


@inlined
def _begin(examples, positive, begun, begun_dual, with_held_out, work):
    """The first active set: what was active before, or negatives by chance; and all positives.

    Returns its size and how many features were touched.
    """
    n_active, n_touched, n = 0, 0, len(examples.weight)
    for i in positive:
        work.sign[i] = 1.0
    for place in range(len(begun)):
        i = begun[place]
        work.is_active[i] = True
        work.active[n_active] = i
        n_active += 1
        work.dual[i] = begun_dual[place]
        start, end = examples.indptr[i], examples.indptr[i + 1]
        change = work.sign[i] * begun_dual[place]
        n_touched = _add_example(examples.indices, examples.values, start, end, change, work, n_touched)
    for i in positive:
        if (with_held_out or not examples.held_out[i]) and not work.is_active[i]:
            work.is_active[i] = True
            work.active[n_active] = i
            n_active += 1
    if len(begun) == 0:
        for _ in range(min(FIRST_PER_POSITIVE * len(positive), n // LARGEST_PART)):
            i = next_random(work.random, n)
            if (with_held_out or not examples.held_out[i]) and not work.is_active[i]:
                work.is_active[i] = True
                work.active[n_active] = i
                n_active += 1
    return n_active, n_touched


@inlined
def _drop_idle(work, n_active):
    """Negative examples without a part leave the active set; returns its size."""
    n_kept = 0
    for place in range(n_active):
        i = work.active[place]
        if work.dual[i] > 0.0 or work.sign[i] > 0.0:
            work.active[n_kept] = i
            n_kept += 1
        else:
            work.is_active[i] = False
    return n_kept


@inlined
def _score_all(columns, bias, l1, work, n_touched):
    """w·x of all examples, by the few features that have a weight."""
    n_features = len(columns.indptr) - 1
    rows, values, score, total = columns.rows, columns.values, work.score, work.total
    of_bias = bias * total[n_features]
    for i in range(len(score)):
        score[i] = of_bias
    for place in range(n_touched):
        f = work.touched[place]
        weight = shrink(total[f], l1)
        if f < n_features and weight != 0.0:
            for position in range(columns.indptr[f], columns.indptr[f + 1]):
                score[rows[position]] += weight * values[position]


@inlined
def _add_worst(held_out, with_held_out, tolerance, work, n_active):
    """Negative examples that are within the margin by more than the tolerance come in, the worst of many.

    Returns the new size of the active set.
    """
    n_found, n = 0, len(work.score)
    for i in range(n):
        violation = np.float32(1.0 + work.score[i])
        is_outside = not work.is_active[i] and work.sign[i] < 0.0 and (with_held_out or not held_out[i])
        if is_outside and violation > tolerance:
            work.found[n_found], work.violation[n_found] = i, violation
            n_found += 1
    most = max(LEAST_ADDED, min(n_active, n // LARGEST_PART))
    limit, n_equal = np.int32(0), 0
    if n_found > most:
        limit, n_equal = select_largest(work.violation_bits[:n_found], most)
    for place in range(n_found):
        bits = work.violation_bits[place]
        if bits < limit or (bits == limit and n_equal == 0):
            continue
        if bits == limit:
            n_equal -= 1
        i = work.found[place]
        work.is_active[i] = True
        work.active[n_active] = i
        n_active += 1
    return n_active


@kernel
def solve_child(
    method,
    examples,
    columns,
    positive,
    positive_weight,
    begun,
    begun_dual,
    n_passes,
    tolerance,
    with_held_out,
    work,
):
    """Up to so many passes over the active set, from blank work and the begun variables.

    The last is one in which no example met a gradient larger than the tolerance. Returns the size of
    the active set and how many features were touched, all of which the work has.
    """
    indptr, indices, values = examples.indptr, examples.indices, examples.values
    n_features, l1 = len(columns.indptr) - 1, method.l1
    has_bias = len(indices) > 0 and indices[len(indices) - 1] == n_features
    bias = np.float64(values[len(values) - 1]) if has_bias else 0.0
    n_active, n_touched = _begin(examples, positive, begun, begun_dual, with_held_out, work)
    dual, sign = work.dual, work.sign
    for number in range(n_passes):
        shuffle(work.active[:n_active], work.random)
        worst = 0.0
        for place in range(n_active):
            i = work.active[place]
            start, end, y = indptr[i], indptr[i + 1], np.float64(sign[i])
            cost = np.float64(method.cost * examples.weight[i] * (positive_weight if y > 0.0 else 1.0))
            score = _score_example(indices, values, start, end, work.total, n_features, l1)
            new, violation = find_dual(method, dual[i], y * score - 1.0, examples.squares[i], cost)
            worst = max(worst, violation)
            if new != dual[i]:
                change = y * (new - dual[i])
                n_touched = _add_example(indices, values, start, end, change, work, n_touched)
                dual[i] = new
        if number + 1 == n_passes:
            break
        n_active = _drop_idle(work, n_active)
        _score_all(columns, bias, l1, work, n_touched)
        n_before = n_active
        n_active = _add_worst(examples.held_out, with_held_out, tolerance, work, n_active)
        if n_active == n_before and worst <= tolerance:
            break
    return n_active, n_touched
