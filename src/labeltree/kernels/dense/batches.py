"""Training of dense nodes: mini-batches in four phases, the same result for any number of threads.

All threads run :func:`train_batches` on the same arrays. In each phase they share out tasks that write
disjoint memory, each a fixed computation, and meet at a barrier:

1. the plan of the batch (two tasks) and h = sum of value * embedding row for each example;
2. each touched chunk of siblings: scores, gradients for its visitors, its own update;
3. each example's gradient = sum over its visits, in order;
4. each touched embedding row = sum over its examples, in order.

So every chunk and every embedding row is read and written once per batch, by one thread.
Slow twin: :func:`labeltree.reference.training.train_batch`.
"""

from __future__ import annotations

import math

import numpy as np

from labeltree.kernels.addresses import borrow
from labeltree.kernels.arithmetic import prefetch_rows, sum_rows
from labeltree.kernels.atomic import atomic_add, atomic_load, yield_thread
from labeltree.kernels.dense.parts import (
    embed_row,
    move_row,
    nothing_if_finite,
    prefetch_examples,
    score_chunk,
)
from labeltree.kernels.dense.plan import plan_features, plan_visits
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.links import count_learned

ABANDONED = 96  # where in Buffers.sync to put a 1 when a thread will not come
_SPINS = 2000  # before a waiting thread gives up its CPU
_FEATURES_PER_TASK = 8


@inlined
def _meet(sync, n_threads):
    """Wait until all threads are here; False if the work is to be abandoned (some may never come)."""
    if n_threads == 1:
        return True
    generation = atomic_load(sync, 16)
    if atomic_add(sync, 0, 1) == n_threads - 1:
        atomic_add(sync, 0, -n_threads)
        atomic_add(sync, 16, 1)
        return True
    spins = 0
    while atomic_load(sync, 16) == generation:
        if atomic_load(sync, ABANDONED) != 0:
            return False
        spins += 1
        if spins > _SPINS:
            yield_thread()
    return True


@inlined
def _next_task(sync, phase, amount, n_threads):
    """Take ``amount`` tasks of the phase; the number of the first."""
    place = 16 * (2 + phase)
    if n_threads == 1:
        task = sync[place]
        sync[place] = task + amount
        return task
    return atomic_add(sync, place, amount)


@inlined
def _reset_tasks(sync, phase):
    sync[16 * (2 + phase)] = 0


@inlined
def _scale(squares, power, smallest_squares):
    """``(squares + smallest_squares) ** -power``."""
    if power == 0.0:
        return np.float32(1.0)
    squares += np.float32(smallest_squares)
    if power == 0.5:
        return np.float32(1.0) / math.sqrt(squares)
    return np.float32(squares**-power)


@inlined
def _add_rows(coefficients, n, rows, first, out, visit):
    """``out[visit] = coefficients[:n] @ rows[first : first + n]``; the first pass writes those left over.

    As :func:`~labeltree.kernels.arithmetic.sum_rows`, for rows that follow one another: the numbers of
    siblings need not be looked up.
    """
    dim = rows.shape[1]
    c = n % 4
    if c == 0:
        for j in range(dim):
            out[visit, j] = 0.0
    elif c == 1:
        g0 = coefficients[0]
        for j in range(dim):
            out[visit, j] = g0 * rows[first, j]
    elif c == 2:
        g0, g1 = coefficients[0], coefficients[1]
        for j in range(dim):
            out[visit, j] = g0 * rows[first, j] + g1 * rows[first + 1, j]
    else:
        g0, g1, g2 = coefficients[0], coefficients[1], coefficients[2]
        for j in range(dim):
            out[visit, j] = g0 * rows[first, j] + g1 * rows[first + 1, j] + g2 * rows[first + 2, j]
    while c < n:
        g0, g1, g2, g3 = coefficients[c], coefficients[c + 1], coefficients[c + 2], coefficients[c + 3]
        n0 = first + c
        for j in range(dim):
            out[visit, j] += (
                g0 * rows[n0, j] + g1 * rows[n0 + 1, j] + g2 * rows[n0 + 2, j] + g3 * rows[n0 + 3, j]
            )
        c += 4


@inlined
def _mean_square(rows, row):
    square = np.float32(0.0)
    for j in range(rows.shape[1]):
        square += rows[row, j] * rows[row, j]
    return square / np.float32(rows.shape[1])


@inlined
def _sum_first(numbers, n):
    total = 0.0
    for i in range(n):
        total += numbers[i]
    return total


@inlined
def _visit_chunk(link, visit, first, n_children, weight, parameters, plan, buffers, scores):
    """Score the chunk for one visitor: d loss / d score into scores, and the visit's gradient and loss."""
    e, begin, end = plan.visit_example[visit], plan.visit_positive[visit, 0], plan.visit_positive[visit, 1]
    weights, bias, hidden = parameters.weights, parameters.bias, buffers.hidden
    n_learned = count_learned(link, n_children)
    buffers.visit_loss[visit] = weight * score_chunk(
        link, first, n_children, weights, bias, hidden, e, plan.positive, begin, end, scores
    )
    for c in range(n_learned):
        scores[c] *= weight
    _add_rows(scores, n_learned, weights, first, buffers.visit_gradient, visit)


@inlined
def _update_chunk(first, n_children, n_visits, parameters, hidden, step, rate, scratch):
    """Move the chunk's weights and biases along the gradients of its visitors."""
    weights, bias = parameters.weights, parameters.bias
    weight_squares, bias_squares = parameters.weight_squares, parameters.bias_squares
    gradients, visitors, gradient = scratch.gradients, scratch.visitors, scratch.gradient
    power, smallest = step.node_power, step.smallest_squares
    shrink = max(np.float32(1.0 - rate * step.l2 * n_visits), np.float32(0.0))
    alone = _mean_square(hidden, visitors[0]) if n_visits == 1 else np.float32(0.0)
    for c in range(n_children):
        n = first + c
        if math.isinf(bias[n]):
            continue
        start = c * len(visitors)
        if n_visits == 1:  # the gradient is a multiple of h: no need to write it down
            g = gradients[start]
            weight_squares[n] += g * g * alone
            row_rate = np.float32(rate * _scale(weight_squares[n], power, smallest))
            move_row(weights, n, shrink, row_rate * g, hidden, visitors[0])
        else:
            sum_rows(gradients, start, visitors, 0, n_visits, hidden, gradient, 0)
            weight_squares[n] += _mean_square(gradient, 0)
            row_rate = np.float32(rate * _scale(weight_squares[n], power, smallest))
            move_row(weights, n, shrink, row_rate, gradient, 0)
        total = np.float32(0.0)
        for i in range(n_visits):
            total += gradients[start + i]
        bias_squares[n] += total * total
        bias[n] -= rate * _scale(bias_squares[n], power, smallest) * total


@inlined
def _train_chunk(task, examples, chunks, rows, parameters, plan, buffers, step, rate, scratch):
    """Phase 2 for one chunk: gradients for its visitors, then its own update."""
    gradients, visitors, scores = scratch.gradients, scratch.visitors, scratch.scores
    if task + 1 < plan.sizes[0]:
        after = plan.chunk[task + 1]
        prefetch_rows(parameters.weights, chunks.start[after], chunks.start[after + 1] - chunks.start[after])
    first = chunks.start[plan.chunk[task]]
    n_children = chunks.start[plan.chunk[task] + 1] - first
    n_learned = count_learned(chunks.link, n_children)
    start = plan.chunk_visit[task]
    n_visits = plan.chunk_visit[task + 1] - start
    for i in range(n_visits):
        visit = plan.by_chunk[start + i]
        e = plan.visit_example[visit]
        weight = examples.weight[rows[e]]
        _visit_chunk(chunks.link, visit, first, n_children, weight, parameters, plan, buffers, scores)
        visitors[i] = e
        for c in range(n_learned):
            gradients[c * len(visitors) + i] = scores[c]
    _update_chunk(first, n_learned, n_visits, parameters, buffers.hidden, step, rate, scratch)


@inlined
def _sum_visits(e, plan, buffers):
    """Phase 3 for one example: its gradient is the sum over its visits."""
    visit_gradient, gradient, hidden = buffers.visit_gradient, buffers.example_gradient, buffers.hidden
    dim = gradient.shape[1]
    for j in range(dim):
        gradient[e, j] = 0.0
    for visit in range(plan.example_visit[e], plan.example_visit[e + 1]):
        for j in range(dim):
            gradient[e, j] += visit_gradient[visit, j]
    buffers.nothing[e] = nothing_if_finite(gradient, hidden, e)


@inlined
def _train_feature(task, parameters, plan, buffers, step, rate, gradient):
    """Phase 4 for one embedding row."""
    squares = parameters.embedding_squares
    feature, start = plan.feature[task], plan.feature_entry[task]
    n = plan.feature_entry[task + 1] - start
    shrink = max(np.float32(1.0 - rate * step.l2 * n), np.float32(0.0))
    sum_rows(plan.entry_value, start, plan.entry_example, start, n, buffers.example_gradient, gradient, 0)
    squares[feature] += _mean_square(gradient, 0)
    row_rate = np.float32(rate * _scale(squares[feature], step.embedding_power, step.smallest_squares))
    move_row(parameters.embedding, feature, shrink, row_rate, gradient, 0)


@kernel
def train_batches(
    examples, chunks, parameters, plan, buffers, order, first, step, n_threads, thread, scratch, out_loss
):
    """Train on the examples ``order``, batch after batch; every thread calls this with its number.

    ``first`` is the number of examples seen before; ``out_loss[0]`` grows by the loss of these.
    """
    examples, chunks, parameters = borrow(examples), borrow(chunks), borrow(parameters)
    plan, buffers, scratch = borrow(plan), borrow(buffers), borrow(scratch)
    sync = buffers.sync
    for start in range(0, len(order), step.batch_size):
        rows = order[start : start + step.batch_size]
        rate = np.float32(step.first_rate + (step.last_rate - step.first_rate) * start / len(order))
        task = _next_task(sync, 0, 1, n_threads)
        while task < 2 + len(rows):
            if task == 0:
                plan_visits(examples, chunks, rows, first + start, plan)
            elif task == 1:
                plan_features(examples, rows, plan)
            else:
                prefetch_examples(examples, order, start + task - 2, parameters.embedding)
                embed_row(rows[task - 2], examples, parameters.embedding, buffers.hidden, task - 2)
            task = _next_task(sync, 0, 1, n_threads)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 3)
        task = _next_task(sync, 1, 1, n_threads)
        while task < plan.sizes[0]:
            _train_chunk(task, examples, chunks, rows, parameters, plan, buffers, step, rate, scratch)
            task = _next_task(sync, 1, 1, n_threads)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 0)
            out_loss[0] += _sum_first(buffers.visit_loss, plan.sizes[1])
        task = _next_task(sync, 2, 1, n_threads)
        while task < len(rows):
            _sum_visits(task, plan, buffers)
            task = _next_task(sync, 2, 1, n_threads)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 1)
            out_loss[0] += _sum_first(buffers.nothing, len(rows))
        embedding_rate = np.float32(rate * step.embedding_rate)
        task = _next_task(sync, 3, _FEATURES_PER_TASK, n_threads)
        while task < plan.sizes[2]:
            for feature in range(task, min(task + _FEATURES_PER_TASK, plan.sizes[2])):
                _train_feature(feature, parameters, plan, buffers, step, embedding_rate, scratch.gradient)
            task = _next_task(sync, 3, _FEATURES_PER_TASK, n_threads)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 2)
