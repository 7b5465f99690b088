"""What both ways of training dense nodes share: what an example reads, how a chunk of siblings judges it."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.arithmetic import prefetch_rows, score_rows, sum_rows
from labeltree.kernels.atomic import prefetch
from labeltree.kernels.jit import inlined
from labeltree.kernels.links import count_learned, judge_siblings

_LINE = 16  # entries of four bytes in a cache line
# So many examples before its turn, a row's bounds, its contents and its embeddings are prefetched: examples
# come in random order, so that nearly each of these would be waited for.
_BOUNDS_AHEAD, _CONTENTS_AHEAD, _EMBEDDING_AHEAD = 12, 6, 1


@inlined
def prefetch_examples(examples, order, place, embedding):
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
            prefetch_rows(embedding, examples.x_indices[q], 1)


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
def score_chunk(link, first, n_children, weights, bias, hidden, e, positive, begin, end, scores):
    """Into scores d loss / d score of the children ``first...`` for one example; returns its loss there.

    ``positive[begin:end]`` are the children that the example has.
    """
    n_learned = count_learned(link, n_children)
    score_rows(weights, first, n_learned, hidden, e, scores)
    for c in range(n_learned):
        scores[c] += bias[first + c]
    return judge_siblings(link, scores, first, n_learned, positive, begin, end)
