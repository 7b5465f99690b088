"""A sparse linear split: logistic loss with |w| (newGLMNET; Yuan, Ho and Lin 2012).

Outer steps are Newton's on a quadratic model of the loss, which is minimised column by column; columns whose
weight is 0 and stays so are set aside. A halving line search keeps the objective falling.
Twin: :func:`labeltree.reference.forest.l1_objective`, which no other weights make smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.random import next_random

_LEAST_CURVATURE = 1e-12
_LEAST_STEP = 1e-12
_MOST_STEP = 10.0
_MOST_HALVINGS = 20
_MOST_PASSES = 100  # over the columns of a quadratic model
_ENOUGH = 0.01  # of the decrease that the model promises


class Problem(NamedTuple):
    """A node's rows by columns, the last of which is the bias, and where the solver stands."""

    start: NDArray[np.int64]  # (n_columns + 1,)
    row: NDArray[np.int32]  # among the node's
    value: NDArray[np.float32]
    weight: NDArray[np.float64]  # (n_columns,) that the quadratic model is made at ...
    trial: NDArray[np.float64]  # ... and those that are tried
    gradient: NDArray[np.float64]  # (n_columns,) of the loss
    curvature: NDArray[np.float64]
    violation: NDArray[np.float64]  # how far each column was from its optimum when it was looked at
    order: NDArray[np.int64]  # active columns first
    side: NDArray[np.float64]  # (n_rows,)
    cost: NDArray[np.float64]
    score: NDArray[np.float64]
    slope: NDArray[np.float64]  # of a row's loss
    bend: NDArray[np.float64]
    change: NDArray[np.float64]  # of a row's score, for the weights that are tried


@inlined
def _count_columns(examples, members, begin, end, scratch):
    """(columns, entries): each column's place, from 1 on, is left in scratch."""
    indptr, indices, place, columns = examples.indptr, examples.indices, scratch.place, scratch.columns
    n_columns, n_entries = 0, 0
    for k in range(begin, end):
        row = members[k]
        n_entries += indptr[row + 1] - indptr[row]
        for e in range(indptr[row], indptr[row + 1]):
            if place[indices[e]] == 0:
                columns[n_columns] = indices[e]
                n_columns += 1
                place[indices[e]] = n_columns
    return n_columns, n_entries


@inlined
def _fill_columns(examples, members, begin, end, bias, place, start, out_row, out_value):
    """The entries of each column; the bias is the last one."""
    indptr, indices, values = examples.indptr, examples.indices, examples.values
    n_columns = len(start) - 1
    for k in range(begin, end):
        for e in range(indptr[members[k]], indptr[members[k] + 1]):
            start[place[indices[e]]] += 1
    start[n_columns] = end - begin
    for c in range(n_columns):
        start[c + 1] += start[c]
    filled = start[:-1].copy()
    for k in range(begin, end):
        for e in range(indptr[members[k]], indptr[members[k] + 1]):
            c = place[indices[e]] - 1
            out_row[filled[c]], out_value[filled[c]] = k - begin, values[e]
            filled[c] += 1
        c = n_columns - 1
        out_row[filled[c]], out_value[filled[c]] = k - begin, bias
        filled[c] += 1


@helper
def _make_problem(method, examples, members, begin, end, n_first, scratch):
    n = end - begin
    n_columns, n_entries = _count_columns(examples, members, begin, end, scratch)
    n_columns, n_entries = n_columns + 1, n_entries + n
    start = np.zeros(n_columns + 1, np.int64)
    row, value = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    bias = np.float32(method.bias)
    _fill_columns(examples, members, begin, end, bias, scratch.place, start, row, value)
    side, cost = np.empty(n), np.empty(n)
    for k in range(n):
        side[k] = scratch.side[k]
        n_of_side = n_first if scratch.side[k] > 0 else n - n_first
        cost[k] = method.cost * n / n_of_side * examples.weight[members[begin + k]]
    return Problem(
        start, row, value, np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns),
        np.zeros(n_columns), np.arange(n_columns), side, cost, np.zeros(n), np.empty(n), np.empty(n),
        np.zeros(n),
    )  # fmt: skip


@inlined
def _model_loss(problem):
    """First and second derivatives of each row's loss."""
    side, cost, score, slope, bend = (
        problem.side, problem.cost, problem.score, problem.slope, problem.bend,
    )  # fmt: skip
    for k in range(len(side)):
        wrong = 1.0 / (1.0 + math.exp(side[k] * score[k]))
        slope[k] = -side[k] * cost[k] * wrong
        bend[k] = cost[k] * wrong * (1.0 - wrong)


@inlined
def _violation(weight, gradient):
    """How far a column is from its optimum, where the subgradient has 0."""
    if weight > 0.0:
        return abs(gradient + 1.0)
    if weight < 0.0:
        return abs(gradient - 1.0)
    return max(abs(gradient) - 1.0, 0.0)


@inlined
def _set_aside(order, place, n_active):
    order[place], order[n_active - 1] = order[n_active - 1], order[place]
    return n_active - 1


@inlined
def _derive(problem, c):
    """The gradient and curvature of a column."""
    row, value, slope, bend = problem.row, problem.value, problem.slope, problem.bend
    gradient, curvature = 0.0, _LEAST_CURVATURE
    for e in range(problem.start[c], problem.start[c + 1]):
        gradient += value[e] * slope[row[e]]
        curvature += value[e] * value[e] * bend[row[e]]
    return gradient, curvature


@inlined
def _sum_violations(problem, n):
    """(largest, sum) of the first n columns."""
    order, violation = problem.order, problem.violation
    largest, total = 0.0, 0.0
    for place in range(n):
        largest = max(largest, violation[order[place]])
        total += violation[order[place]]
    return largest, total


@inlined
def _derive_columns(problem, limit):
    """(active, largest violation, their sum); columns that are 0 and far from moving are not active."""
    order = problem.order
    n_active, place = len(order), 0
    while place < n_active:
        c = order[place]
        gradient, curvature = _derive(problem, c)
        problem.gradient[c], problem.curvature[c] = gradient, curvature
        if problem.weight[c] == 0.0 and abs(gradient) < 1.0 - limit:
            n_active = _set_aside(order, place, n_active)
            continue
        problem.violation[c] = _violation(problem.weight[c], gradient)
        place += 1
    largest, total = _sum_violations(problem, n_active)
    return n_active, largest, total


@inlined
def _gradient_of_model(problem, c):
    row, value, bend, change = problem.row, problem.value, problem.bend, problem.change
    gradient = problem.gradient[c] + (problem.trial[c] - problem.weight[c]) * _LEAST_CURVATURE
    for e in range(problem.start[c], problem.start[c + 1]):
        gradient += value[e] * bend[row[e]] * change[row[e]]
    return gradient


@inlined
def _move_column(problem, c, gradient):
    """To the best weight of the model, while all others stay."""
    weight, curvature = problem.trial[c], problem.curvature[c]
    if gradient + 1.0 < curvature * weight:
        step = -(gradient + 1.0) / curvature
    elif gradient - 1.0 > curvature * weight:
        step = -(gradient - 1.0) / curvature
    else:
        step = -weight
    if abs(step) < _LEAST_STEP:
        return
    step = min(max(step, -_MOST_STEP), _MOST_STEP)
    problem.trial[c] = weight + step
    row, value, change = problem.row, problem.value, problem.change
    for e in range(problem.start[c], problem.start[c + 1]):
        change[row[e]] += value[e] * step


@helper
def _minimise_model(problem, n_active, enough, random):
    """Passes over the active columns until violations sum up to less than enough; how many."""
    order, n_rows = problem.order, len(problem.side)
    n_open, limit = n_active, np.inf
    for k in range(n_rows):
        problem.change[k] = 0.0
    for n_passes in range(_MOST_PASSES):
        for place in range(n_open - 1, 0, -1):
            other = next_random(random, place + 1)
            order[place], order[other] = order[other], order[place]
        place = 0
        while place < n_open:
            c = order[place]
            gradient = _gradient_of_model(problem, c)
            if problem.trial[c] == 0.0 and abs(gradient) < 1.0 - limit:
                n_open = _set_aside(order, place, n_open)
                continue
            problem.violation[c] = _violation(problem.trial[c], gradient)
            _move_column(problem, c, gradient)
            place += 1
        largest, total = _sum_violations(problem, n_open)
        if total <= enough:
            if n_open == n_active:
                return n_passes + 1
            n_open, limit = n_active, np.inf  # those that were set aside are looked at again
        else:
            limit = largest / n_rows
    return _MOST_PASSES


@inlined
def _loss(problem, step):
    """Of all rows, with this part of the change of their scores."""
    side, cost, score, change = problem.side, problem.cost, problem.score, problem.change
    total = 0.0
    for k in range(len(side)):
        margin = side[k] * (score[k] + step * change[k])
        total += cost[k] * (math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0))
    return total


@inlined
def _size(weights):
    total = 0.0
    for c in range(len(weights)):
        total += abs(weights[c])
    return total


@inlined
def _promise(problem):
    """By how much the first-order model says that the objective falls."""
    total = 0.0
    for c in range(len(problem.weight)):
        total += problem.gradient[c] * (problem.trial[c] - problem.weight[c])
    return total


@helper
def _search_line(problem):
    """Go as far towards the weights that were tried as the objective falls enough."""
    weight, trial = problem.weight, problem.trial
    size, loss = _size(weight), _loss(problem, 0.0)
    new_size = _size(trial)
    promised, step = _promise(problem) + new_size - size, 1.0
    for _ in range(_MOST_HALVINGS):
        if new_size - size + _loss(problem, step) - loss <= _ENOUGH * step * promised:
            break
        step *= 0.5
        for c in range(len(weight)):
            trial[c] = 0.5 * (weight[c] + trial[c])
        new_size = _size(trial)
    for k in range(len(problem.score)):
        problem.score[k] += step * problem.change[k]
    for c in range(len(weight)):
        weight[c] = trial[c]


@helper
def fit_l1(method, examples, members, begin, end, n_first, scratch):
    """Fill ``scratch.weights`` for the sides of the rows; columns that do not occur are left alone."""
    problem = _make_problem(method, examples, members, begin, end, n_first, scratch)
    first_total, limit, inner = 0.0, np.inf, 1.0
    for step in range(method.most_steps):
        _model_loss(problem)
        n_active, largest, total = _derive_columns(problem, limit)
        if step == 0:
            first_total = total
        if total <= method.tolerance * first_total:
            break
        if _minimise_model(problem, n_active, inner * first_total, scratch.random) == 1:
            inner *= 0.25
        _search_line(problem)
        limit = largest / (end - begin)
    n_columns = len(problem.weight)
    for c in range(n_columns - 1):
        scratch.weights[scratch.columns[c]] = problem.weight[c]
        scratch.place[scratch.columns[c]] = 0
    scratch.weights[len(scratch.weights) - 1] = problem.weight[n_columns - 1]
