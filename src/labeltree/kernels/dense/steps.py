"""Training of dense nodes with a step per example: the paper's Algorithm 1 as it is printed.

Nothing is summed over a batch, so a chunk of siblings moves as soon as it has judged the example, and a
feature's embedding at the end. Slow twin: :func:`labeltree.reference.training.train_batch`, one example each.
"""

from __future__ import annotations

import math

import numpy as np

from labeltree.kernels.addresses import borrow
from labeltree.kernels.dense.parts import (
    embed_row,
    move_row,
    nothing_if_finite,
    prefetch_examples,
    score_chunk,
)
from labeltree.kernels.dense.plan import find_visits
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.links import count_learned


@inlined
def _train_chunk(first, n_learned, rate, shrink, weights, bias, hidden, derivatives, out_gradient):
    """Add the chunk's part to the example's gradient, and move its weights, four rows at a time."""
    dim = weights.shape[1]
    for c in range(n_learned):
        if math.isinf(bias[first + c]):
            derivatives[c] = 0.0
        bias[first + c] -= rate * derivatives[c]
    c = 0
    while c + 4 <= n_learned:
        n = first + c
        d0, d1, d2, d3 = derivatives[c], derivatives[c + 1], derivatives[c + 2], derivatives[c + 3]
        s0, s1, s2, s3 = rate * d0, rate * d1, rate * d2, rate * d3
        for j in range(dim):
            h = hidden[0, j]
            w0, w1, w2, w3 = weights[n, j], weights[n + 1, j], weights[n + 2, j], weights[n + 3, j]
            out_gradient[0, j] += d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
            weights[n, j] = shrink * w0 - s0 * h
            weights[n + 1, j] = shrink * w1 - s1 * h
            weights[n + 2, j] = shrink * w2 - s2 * h
            weights[n + 3, j] = shrink * w3 - s3 * h
        c += 4
    while c < n_learned:
        d0 = derivatives[c]
        s0 = rate * d0
        for j in range(dim):
            w0 = weights[first + c, j]
            out_gradient[0, j] += d0 * w0
            weights[first + c, j] = shrink * w0 - s0 * hidden[0, j]
        c += 1


@kernel
def train_steps(examples, chunks, parameters, plan, buffers, order, first, step, scratch, out_loss):
    """Train on the examples ``order``, one after another; arguments as of ``train_batches``."""
    examples, chunks, parameters = borrow(examples), borrow(chunks), borrow(parameters)
    plan, buffers, scratch = borrow(plan), borrow(buffers), borrow(scratch)
    embedding, weights, bias = parameters.embedding, parameters.weights, parameters.bias
    hidden, gradient, scores = buffers.hidden, buffers.example_gradient, scratch.scores
    x_indptr, x_indices, x_values = examples.x_indptr, examples.x_indices, examples.x_values
    dim = hidden.shape[1]
    for i in range(len(order)):
        row = order[i]
        rate = np.float32(step.first_rate + (step.last_rate - step.first_rate) * i / len(order))
        embedding_rate = np.float32(rate * step.embedding_rate)
        shrink = max(np.float32(1.0 - rate * step.l2), np.float32(0.0))
        weight = examples.weight[row]
        prefetch_examples(examples, order, i, embedding)
        embed_row(row, examples, embedding, hidden, 0)
        for j in range(dim):
            gradient[0, j] = 0.0
        loss = 0.0
        n_visits, _ = find_visits(examples, chunks, row, first + i, 0, 0, 0, plan)
        for visit in range(n_visits):
            node = chunks.start[plan.visit_chunk[visit]]
            n_children = chunks.start[plan.visit_chunk[visit] + 1] - node
            begin, end = plan.visit_positive[visit, 0], plan.visit_positive[visit, 1]
            loss += score_chunk(
                chunks.link, node, n_children, weights, bias, hidden, 0, plan.positive, begin, end, scores
            )
            n_learned = count_learned(chunks.link, n_children)
            _train_chunk(node, n_learned, rate * weight, shrink, weights, bias, hidden, scores, gradient)
        out_loss[0] += weight * loss + nothing_if_finite(gradient, hidden, 0)
        shrink = max(np.float32(1.0 - embedding_rate * step.l2), np.float32(0.0))
        for q in range(x_indptr[row], x_indptr[row + 1]):
            move_row(embedding, x_indices[q], shrink, embedding_rate * weight * x_values[q], gradient, 0)
