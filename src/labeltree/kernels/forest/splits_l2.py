"""A linear split by dual coordinate descent: squared hinge loss with |w|²/2 (Hsieh et al. 2008).

As the nodes of label trees are trained (:mod:`labeltree.kernels.sparse.methods`), one output at a time.
Twin: :func:`labeltree.reference.forest.l2_objective`, which no other weights make smaller.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.random import shuffle


@inlined
def score_row(indptr, indices, values, row, weights, bias):
    """w.x of a row, with the bias."""
    score = weights[len(weights) - 1] * bias
    for e in range(indptr[row], indptr[row + 1]):
        score += weights[indices[e]] * values[e]
    return score


@inlined
def _move(indptr, indices, values, row, change, bias, weights):
    for e in range(indptr[row], indptr[row + 1]):
        weights[indices[e]] += change * values[e]
    weights[len(weights) - 1] += change * bias


@inlined
def _square_of(indptr, values, row):
    total = np.float32(0.0)
    for e in range(indptr[row], indptr[row + 1]):
        total += values[e] * values[e]
    return total


@inlined
def _size(numbers, n):
    total = 0.0
    for k in range(n):
        total += abs(numbers[k])
    return total


@helper
def fit_l2(method, examples, members, begin, end, n_first, scratch):
    """Fill ``scratch.weights`` for the sides of the rows; columns that do not occur are left alone."""
    indptr, indices, values = examples.indptr, examples.indices, examples.values
    side, dual, weights, n = scratch.side, scratch.dual, scratch.weights, end - begin
    bias, half = np.float32(method.bias), np.float32(0.5)
    of_first, of_second = np.float32(method.cost * n / n_first), np.float32(method.cost * n / (n - n_first))
    order, squares, change = np.arange(n), np.empty(n, np.float32), np.empty(n, np.float32)
    for k in range(n):
        squares[k] = _square_of(indptr, values, members[begin + k]) + bias * bias
        dual[k] = 0.0
    for _ in range(method.most_passes):
        shuffle(order, scratch.random)
        for place in range(n):
            k = order[place]
            row, sign = members[begin + k], np.float32(side[k])
            softness = half / ((of_first if sign > 0.0 else of_second) * examples.weight[row])
            old = dual[k]
            gradient = sign * score_row(indptr, indices, values, row, weights, bias)
            gradient += old * softness - np.float32(1.0)
            dual[k] = max(np.float32(0.0), old - gradient / (squares[k] + softness))
            change[k] = dual[k] - old
            if change[k] != 0.0:
                _move(indptr, indices, values, row, sign * change[k], bias, weights)
        if _size(change, n) <= method.tolerance * _size(dual, n):
            return
