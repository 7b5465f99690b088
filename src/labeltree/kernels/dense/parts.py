"""What both ways of training dense nodes share: what an example reads, how a block of siblings judges it."""

from __future__ import annotations

import math

import numpy as np

from labeltree.kernels.arithmetic import call_for, fast_exp, score_rows, sum_rows
from labeltree.kernels.atomic import prefetch
from labeltree.kernels.jit import inlined
from labeltree.kernels.links import SIGMOID, SOFTMAX

_LEAST_LIKELIHOOD = 1e-7  # of a node, so that one example cannot drown the sum of losses
# Beyond this score a chance is 0 or 1 for every purpose, but what it is multiplied with would be so small
# (denormal) that each operation takes a hundred times as long.
_FAR = np.float32(30.0)
_LINE = 16  # entries of four bytes in a cache line
# So many examples before its turn, a row's bounds, its contents and its embeddings are called for: examples
# come in random order, so that nearly each of these would be waited for.
_BOUNDS_AHEAD, _CONTENTS_AHEAD, _EMBEDDING_AHEAD = 12, 6, 1


@inlined
def call_for_rows(examples, order, place, embedding):
    """Have what the examples after ``order[place]`` will read brought near."""
    if place + _BOUNDS_AHEAD < len(order):
        row = order[place + _BOUNDS_AHEAD]
        prefetch(examples.x_indptr, row)
        prefetch(examples.y_indptr, row)
        prefetch(examples.weight, row)
    if place + _CONTENTS_AHEAD < len(order):
        row = order[place + _CONTENTS_AHEAD]
        prefetch(examples.y_indices, examples.y_indptr[row])
        for q in range(examples.x_indptr[row], examples.x_indptr[row + 1], _LINE):
            prefetch(examples.x_indices, q)
            prefetch(examples.x_values, q)
    if place + _EMBEDDING_AHEAD < len(order):
        row = order[place + _EMBEDDING_AHEAD]
        for q in range(examples.x_indptr[row], examples.x_indptr[row + 1]):
            call_for(embedding, examples.x_indices[q], 1)


@inlined
def embed_row(row, examples, embedding, out, e):
    """``out[e]`` = the sum of value * embedding over the row's features."""
    start = examples.x_indptr[row]
    n = examples.x_indptr[row + 1] - start
    sum_rows(examples.x_values, start, examples.x_indices, start, n, embedding, out, e)


@inlined
def nothing_if_finite(gradient, hidden, e):
    """0, or NaN if a vector of the example is no longer finite: 0 times anything else is 0."""
    total = np.float32(0.0)
    for j in range(gradient.shape[1]):
        total += abs(gradient[e, j]) + abs(hidden[e, j])
    return np.float32(0.0) * total


@inlined
def move_row(out_rows, row, shrink, rate, gradients, g):
    for j in range(out_rows.shape[1]):
        out_rows[row, j] = shrink * out_rows[row, j] - rate * gradients[g, j]


@inlined
def count_learned(n_children, link):
    """Of two children with a softmax the second's score stays 0: they share one logistic."""
    return 1 if link == SOFTMAX and n_children == 2 else n_children


@inlined
def _sigmoid(score):
    x = min(max(-score, -_FAR), _FAR)
    return np.float32(1.0) / (np.float32(1.0) + fast_exp(x))


@inlined
def apply_sigmoid(scores, n):
    """``scores[:n] = 1 / (1 + exp(-scores[:n]))``."""
    for c in range(n):
        scores[c] = _sigmoid(scores[c])


@inlined
def apply_softmax(scores, n):
    """``scores[:n] = exp(scores[:n])`` over their sum; at least one is finite, the others may be -inf."""
    largest = scores[0]
    for c in range(1, n):
        largest = max(largest, scores[c])
    total = np.float32(0.0)
    for c in range(n):
        scores[c] = fast_exp(max(scores[c] - largest, -_FAR))
    for c in range(n):
        total += scores[c]
    for c in range(n):
        scores[c] /= total


@inlined
def score_block(first, n_children, link, weights, bias, hidden, e, positive, begin, end, scores):
    """Into scores d loss / d score of the children ``first...`` for one example; returns its loss there.

    ``positive[begin:end]`` are the children that the example has.
    """
    if count_learned(n_children, link) == 1:
        score_rows(weights, first, 1, hidden, e, scores)
        gradient = _sigmoid(scores[0] + bias[first])
        if begin < end and positive[begin] == first:
            gradient -= np.float32(1.0)
        scores[0] = gradient
        return -math.log(max(1.0 - abs(gradient), _LEAST_LIKELIHOOD))
    score_rows(weights, first, n_children, hidden, e, scores)
    for c in range(n_children):
        scores[c] += bias[first + c]
    if link == SOFTMAX:
        apply_softmax(scores, n_children)
    else:
        apply_sigmoid(scores, n_children)
    for place in range(begin, end):
        scores[positive[place] - first] -= np.float32(1.0)
    loss = 0.0
    likelihood = 1.0
    for c in range(n_children):
        if link == SIGMOID or scores[c] < 0.0:
            likelihood *= max(1.0 - abs(scores[c]), _LEAST_LIKELIHOOD)
        if likelihood < 1e-200:  # one logarithm for all siblings, unless the product gets too small
            loss -= math.log(likelihood)
            likelihood = 1.0
    return loss - math.log(likelihood)
