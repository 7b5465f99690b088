"""Training of dense nodes: mini-batches in four phases, the same result for any number of threads.

All threads run :func:`train_batches` on the same arrays. In each phase they share out tasks that write
disjoint memory, each a fixed computation, and meet at a barrier:

1. the plan of the batch (two tasks) and h = sum of value * embedding row for each example;
2. each touched block of siblings: scores, gradients for its visitors, its own update;
3. each example's gradient = sum over its visits, in order;
4. each touched embedding row = sum over its examples, in order.

So every block and every embedding row is read and written once per batch, by one thread.
Slow twin: :func:`labeltree.reference.training.train_batch`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.atomic import atomic_add, atomic_load, bits_as_float, yield_thread
from labeltree.kernels.jit import inlined, kernel

ABANDONED = 96  # where in Buffers.sync to put a 1 when a thread will not come
SMALLEST_SQUARES = 1e-8  # a gradient that is only rounding error must not become a full step
_SPINS = 2000  # before a waiting thread gives up its CPU
_FEATURES_PER_TASK = 8


class Examples(NamedTuple):
    """Training rows and their labels (CSR), and the weight of each example."""

    x_indptr: NDArray[np.int64]
    x_indices: NDArray[np.int32]
    x_values: NDArray[np.float32]
    y_indptr: NDArray[np.int64]
    y_indices: NDArray[np.int32]
    weight: NDArray[np.float32]


class Blocks(NamedTuple):
    """The tree as training sees it: siblings in blocks. Block 0 is the root's own classifier.

    A parent of very many children has several blocks, so that they are several tasks.
    """

    parent: NDArray[np.int32]  # (n_nodes,), -1 at the root
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    start: NDArray[np.int32]  # (n_blocks + 1,) block b holds the nodes start[b] .. start[b + 1] - 1
    first: NDArray[np.int32]  # (n_nodes,) the first block of a node's children, -1 at leaves
    last: NDArray[np.int32]  # (n_nodes,) and the last one, -2 at leaves
    is_constant: NDArray[np.bool_]  # (n_blocks,) nothing to learn: every bias is infinite


class Parameters(NamedTuple):
    """What is learned, each with the sum of squared gradients per row (Adagrad; mean over the row)."""

    embedding: NDArray[np.float32]  # (n_features, dim)
    weights: NDArray[np.float32]  # (n_nodes, dim)
    bias: NDArray[np.float32]  # (n_nodes,), +-inf where a node is constant
    embedding_squares: NDArray[np.float32]  # (n_features,)
    weight_squares: NDArray[np.float32]  # (n_nodes,)
    bias_squares: NDArray[np.float32]  # (n_nodes,)


class Step(NamedTuple):
    """How far to go. A row moves by rate * gradient / squares**power; power 0 is plain SGD."""

    first_rate: float  # at the first batch of the call
    last_rate: float  # after its last batch
    embedding_rate: float  # relative to the rate of the nodes
    embedding_power: float
    node_power: float
    l2: float
    batch_size: int


class Plan(NamedTuple):
    """Scratch: who visits which block, and which example uses which feature, in one batch.

    A visit is an example at a block, all of whose nodes it trains.
    """

    positive: NDArray[np.int32]  # (capacity,) positive nodes of all examples, sorted within each
    node_stamp: NDArray[np.int64]  # (n_nodes,) last example that reached the node
    block_slot: NDArray[np.int32]  # (n_blocks,) scratch, -1 between batches
    visit_block: NDArray[np.int32]  # (capacity,) visits by example
    visit_example: NDArray[np.int32]
    visit_positive: NDArray[np.int32]  # (capacity, 2) where the visit's positive nodes start and end
    example_visit: NDArray[np.int32]  # (batch_size + 1,) example e's visits start here
    by_block: NDArray[np.int32]  # (capacity,) visits grouped by block
    block: NDArray[np.int32]  # (capacity,) touched blocks
    block_visit: NDArray[np.int32]  # (capacity + 1,) touched block t's visits start here in by_block
    feature_slot: NDArray[np.int32]  # (n_features,) scratch, -1 between batches
    feature: NDArray[np.int32]  # (max_entries,) touched features
    feature_entry: NDArray[np.int32]  # (max_entries + 1,) touched feature t's entries start here
    entry_example: NDArray[np.int32]  # (max_entries,)
    entry_value: NDArray[np.float32]  # (max_entries,)
    sizes: NDArray[np.int64]  # (3,) touched blocks, visits, touched features


class Buffers(NamedTuple):
    """Scratch: hidden vectors and gradients of one batch."""

    hidden: NDArray[np.float32]  # (batch_size, dim)
    example_gradient: NDArray[np.float32]  # (batch_size, dim)
    nothing: NDArray[np.float32]  # (batch_size,) 0, or NaN where an example's vectors are no longer finite
    visit_gradient: NDArray[np.float32]  # (capacity, dim)
    visit_loss: NDArray[np.float64]  # (capacity,)
    sync: NDArray[
        np.int64
    ]  # (112,) barrier count, generation, four task counters, abandoned; a cache line each


class Scratch(NamedTuple):
    """One thread's own memory."""

    gradients: NDArray[np.float32]  # (max_block * batch_size,), visitors of a child together
    visitors: NDArray[np.int32]  # (batch_size,)
    gradient: NDArray[np.float32]  # (dim,) of one row
    scores: NDArray[np.float32]  # (max_block,)


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
def _next_task(sync, phase, amount):
    """Take ``amount`` tasks of the phase; the number of the first."""
    return atomic_add(sync, 16 * (2 + phase), amount)


@inlined
def _reset_tasks(sync, phase):
    sync[16 * (2 + phase)] = 0


@inlined
def _positive_nodes(labels, blocks, stamp, node_stamp, out, start):
    """Sorted into out[start:]: all nodes on the paths of the labels, each once. Returns where they end."""
    end = start
    for label in labels:
        node = blocks.leaf_of_label[label]
        while node >= 0 and node_stamp[node] != stamp:
            node_stamp[node] = stamp
            place = end
            end += 1
            while place > start and out[place - 1] > node:
                out[place] = out[place - 1]
                place -= 1
            out[place] = node
            node = blocks.parent[node]
    return end


@kernel
def _plan_visits(examples, blocks, rows, first, plan):
    """Fill the visits of the batch (Algorithm 1: positive nodes and their siblings), grouped by block.

    ``first`` numbers the examples through the training, so that stamps of nodes never need clearing.
    """
    n_positive = 0
    n_visits = 0
    for e in range(len(rows)):
        plan.example_visit[e] = n_visits
        labels = examples.y_indices[examples.y_indptr[rows[e]] : examples.y_indptr[rows[e] + 1]]
        end = _positive_nodes(labels, blocks, first + e, plan.node_stamp, plan.positive, n_positive)
        place = n_positive
        block, last = 0, 0  # the root's own classifier; without labels the example is its negative
        while True:
            while block <= last:
                begin = place
                while place < end and plan.positive[place] < blocks.start[block + 1]:
                    place += 1
                if not blocks.is_constant[block]:
                    plan.visit_block[n_visits] = block
                    plan.visit_example[n_visits] = e
                    plan.visit_positive[n_visits, 0] = begin
                    plan.visit_positive[n_visits, 1] = place
                    n_visits += 1
                block += 1
            if place == end:
                break
            parent = blocks.parent[plan.positive[place]]
            block, last = blocks.first[parent], blocks.last[parent]
        n_positive = end
    plan.example_visit[len(rows)] = n_visits
    plan.sizes[1] = n_visits
    plan.sizes[0] = _group(plan.visit_block, n_visits, plan.block_slot, plan.block, plan.block_visit)
    for t in range(n_visits):
        slot = plan.block_slot[plan.visit_block[t]]
        plan.by_block[plan.block_visit[slot]] = t
        plan.block_visit[slot] += 1
    _end_group(plan.sizes[0], plan.block_slot, plan.block, plan.block_visit)


@kernel
def _group(keys, n_keys, slot_of_key, out_key, out_start):
    """Number the distinct keys in order of first use and find where each one's group starts."""
    n_groups = 0
    for t in range(n_keys):
        slot = slot_of_key[keys[t]]
        if slot < 0:
            slot = n_groups
            slot_of_key[keys[t]] = slot
            out_key[slot] = keys[t]
            out_start[slot + 1] = 0
            n_groups += 1
        out_start[slot + 1] += 1
    out_start[0] = 0
    for slot in range(n_groups):
        out_start[slot + 1] += out_start[slot]
    return n_groups


@kernel
def _end_group(n_groups, slot_of_key, key, start):
    """After the groups were filled, each start has moved to its end: move them back, clear the slots."""
    for slot in range(n_groups, 0, -1):
        start[slot] = start[slot - 1]
    start[0] = 0
    for slot in range(n_groups):
        slot_of_key[key[slot]] = -1


@kernel
def _plan_features(examples, rows, plan):
    """Fill the touched features of the batch and their examples."""
    n_features = 0
    for e in range(len(rows)):
        for q in range(examples.x_indptr[rows[e]], examples.x_indptr[rows[e] + 1]):
            feature = examples.x_indices[q]
            slot = plan.feature_slot[feature]
            if slot < 0:
                slot = n_features
                plan.feature_slot[feature] = slot
                plan.feature[slot] = feature
                plan.feature_entry[slot + 1] = 0
                n_features += 1
            plan.feature_entry[slot + 1] += 1
    plan.feature_entry[0] = 0
    for slot in range(n_features):
        plan.feature_entry[slot + 1] += plan.feature_entry[slot]
    for e in range(len(rows)):
        for q in range(examples.x_indptr[rows[e]], examples.x_indptr[rows[e] + 1]):
            slot = plan.feature_slot[examples.x_indices[q]]
            entry = plan.feature_entry[slot]
            plan.entry_example[entry] = e
            plan.entry_value[entry] = examples.x_values[q]
            plan.feature_entry[slot] += 1
    _end_group(n_features, plan.feature_slot, plan.feature, plan.feature_entry)
    plan.sizes[2] = n_features


@inlined
def add_embeddings(indices, values, start, end, embedding, out, e):
    """``out[e] = values[start:end] @ embedding[indices[start:end]]``, four rows per pass over out[e]."""
    dim = embedding.shape[1]
    for j in range(dim):
        out[e, j] = 0.0
    q = start
    while q + 4 <= end:
        n0, n1, n2, n3 = indices[q], indices[q + 1], indices[q + 2], indices[q + 3]
        v0, v1, v2, v3 = values[q], values[q + 1], values[q + 2], values[q + 3]
        for j in range(dim):
            out[e, j] += (
                v0 * embedding[n0, j] + v1 * embedding[n1, j] + v2 * embedding[n2, j] + v3 * embedding[n3, j]
            )
        q += 4
    while q < end:
        n0, v0 = indices[q], values[q]
        for j in range(dim):
            out[e, j] += v0 * embedding[n0, j]
        q += 1


@inlined
def _scale(squares, power):
    """``(squares + SMALLEST_SQUARES) ** -power``."""
    if power == 0.0:
        return np.float32(1.0)
    squares += np.float32(SMALLEST_SQUARES)
    if power == 0.5:
        return np.float32(1.0) / math.sqrt(squares)
    return np.float32(squares**-power)


@inlined
def _score_visit(weights, bias, first, n_children, hidden, e, out):
    """``out = weights[first : first + n_children] @ hidden[e] + bias``, four siblings at a time."""
    dim = weights.shape[1]
    c = 0
    while c + 4 <= n_children:
        n = first + c
        s0, s1, s2, s3 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for j in range(dim):
            h = hidden[e, j]
            s0 += weights[n, j] * h
            s1 += weights[n + 1, j] * h
            s2 += weights[n + 2, j] * h
            s3 += weights[n + 3, j] * h
        out[c] = s0 + bias[n]
        out[c + 1] = s1 + bias[n + 1]
        out[c + 2] = s2 + bias[n + 2]
        out[c + 3] = s3 + bias[n + 3]
        c += 4
    while c < n_children:
        s0 = np.float32(0.0)
        for j in range(dim):
            s0 += weights[first + c, j] * hidden[e, j]
        out[c] = s0 + bias[first + c]
        c += 1


@inlined
def _apply_sigmoid(scores, n):
    """``scores[:n] = 1 / (1 + exp(-scores[:n]))`` to 2e-7, in plain arithmetic so that it vectorises.

    exp(x) = 2**i * exp(f) with |f| <= ln(2) / 2, and exp(f) by its Taylor polynomial of degree 7.
    """
    for c in range(n):
        x = min(max(-scores[c], np.float32(-87.0)), np.float32(87.0))
        i = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
        f = x - i * np.float32(0.693145751953125) - i * np.float32(1.42860677e-06)
        p = np.float32(1.0 / 5040.0)
        p = p * f + np.float32(1.0 / 720.0)
        p = p * f + np.float32(1.0 / 120.0)
        p = p * f + np.float32(1.0 / 24.0)
        p = p * f + np.float32(1.0 / 6.0)
        p = p * f + np.float32(0.5)
        p = p * f + np.float32(1.0)
        p = p * f + np.float32(1.0)
        power_of_two = bits_as_float((np.int32(i) + np.int32(127)) << np.int32(23))
        scores[c] = np.float32(1.0) / (np.float32(1.0) + p * power_of_two)


@inlined
def _add_rows(coefficients, n, rows, first, out, visit):
    """``out[visit] = coefficients[:n] @ rows[first : first + n]``."""
    dim = rows.shape[1]
    for j in range(dim):
        out[visit, j] = 0.0
    c = 0
    while c + 4 <= n:
        g0, g1, g2, g3 = coefficients[c], coefficients[c + 1], coefficients[c + 2], coefficients[c + 3]
        n0 = first + c
        for j in range(dim):
            out[visit, j] += (
                g0 * rows[n0, j] + g1 * rows[n0 + 1, j] + g2 * rows[n0 + 2, j] + g3 * rows[n0 + 3, j]
            )
        c += 4
    while c < n:
        g0 = coefficients[c]
        for j in range(dim):
            out[visit, j] += g0 * rows[first + c, j]
        c += 1


@inlined
def _sum_gradients(coefficients, c, sources, s, n, vectors, out):
    """``out = coefficients[c : c + n] @ vectors[sources[s : s + n]]``; returns the mean of its squares."""
    dim = vectors.shape[1]
    for j in range(dim):
        out[j] = 0.0
    q = 0
    while q + 4 <= n:
        v0, v1, v2, v3 = (
            coefficients[c + q],
            coefficients[c + q + 1],
            coefficients[c + q + 2],
            coefficients[c + q + 3],
        )
        e0, e1, e2, e3 = sources[s + q], sources[s + q + 1], sources[s + q + 2], sources[s + q + 3]
        for j in range(dim):
            out[j] += v0 * vectors[e0, j] + v1 * vectors[e1, j] + v2 * vectors[e2, j] + v3 * vectors[e3, j]
        q += 4
    while q < n:
        v0, e0 = coefficients[c + q], sources[s + q]
        for j in range(dim):
            out[j] += v0 * vectors[e0, j]
        q += 1
    square = np.float32(0.0)
    for j in range(dim):
        square += out[j] * out[j]
    return square / np.float32(dim)


@inlined
def _move_row(out_rows, row, shrink, rate, gradient):
    for j in range(out_rows.shape[1]):
        out_rows[row, j] = shrink * out_rows[row, j] - rate * gradient[j]


@inlined
def _visit_block(visit, first, n_children, weight, parameters, plan, buffers, scores):
    """Score the block for one visitor: d loss / d score into scores, and the visit's gradient and loss."""
    e = plan.visit_example[visit]
    _score_visit(parameters.weights, parameters.bias, first, n_children, buffers.hidden, e, scores)
    _apply_sigmoid(scores, n_children)
    for place in range(plan.visit_positive[visit, 0], plan.visit_positive[visit, 1]):
        scores[plan.positive[place] - first] -= np.float32(1.0)
    loss = 0.0
    likelihood = 1.0
    for c in range(n_children):
        likelihood *= max(1.0 - abs(scores[c]), 1e-7)
        if likelihood < 1e-200:  # one logarithm for all siblings, unless the product gets too small
            loss -= math.log(likelihood)
            likelihood = 1.0
        scores[c] *= weight
    buffers.visit_loss[visit] = weight * (loss - math.log(likelihood))
    _add_rows(scores, n_children, parameters.weights, first, buffers.visit_gradient, visit)


@inlined
def _update_block(first, n_children, n_visits, parameters, hidden, step, rate, scratch):
    """Move the block's weights and biases along the gradients of its visitors."""
    weights, bias = parameters.weights, parameters.bias
    weight_squares, bias_squares = parameters.weight_squares, parameters.bias_squares
    gradients, visitors, gradient = scratch.gradients, scratch.visitors, scratch.gradient
    power = step.node_power
    shrink = max(np.float32(1.0 - rate * step.l2 * n_visits), np.float32(0.0))
    for c in range(n_children):
        n = first + c
        if math.isinf(bias[n]):
            continue
        start = c * len(visitors)
        weight_squares[n] += _sum_gradients(gradients, start, visitors, 0, n_visits, hidden, gradient)
        _move_row(weights, n, shrink, np.float32(rate * _scale(weight_squares[n], power)), gradient)
        total = np.float32(0.0)
        for i in range(n_visits):
            total += gradients[start + i]
        bias_squares[n] += total * total
        bias[n] -= rate * _scale(bias_squares[n], power) * total


@inlined
def _train_block(task, examples, blocks, rows, parameters, plan, buffers, step, rate, scratch):
    """Phase 2 for one block: gradients for its visitors, then its own update."""
    gradients, visitors, scores = scratch.gradients, scratch.visitors, scratch.scores
    first = blocks.start[plan.block[task]]
    n_children = blocks.start[plan.block[task] + 1] - first
    start = plan.block_visit[task]
    n_visits = plan.block_visit[task + 1] - start
    for i in range(n_visits):
        visit = plan.by_block[start + i]
        e = plan.visit_example[visit]
        _visit_block(visit, first, n_children, examples.weight[rows[e]], parameters, plan, buffers, scores)
        visitors[i] = e
        for c in range(n_children):
            gradients[c * len(visitors) + i] = scores[c]
    _update_block(first, n_children, n_visits, parameters, buffers.hidden, step, rate, scratch)


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
    total = np.float32(0.0)
    for j in range(dim):
        total += abs(gradient[e, j]) + abs(hidden[e, j])
    buffers.nothing[e] = np.float32(0.0) * total


@inlined
def _train_feature(task, parameters, plan, buffers, step, rate, gradient):
    """Phase 4 for one embedding row."""
    squares = parameters.embedding_squares
    feature, start = plan.feature[task], plan.feature_entry[task]
    n = plan.feature_entry[task + 1] - start
    squares[feature] += _sum_gradients(
        plan.entry_value, start, plan.entry_example, start, n, buffers.example_gradient, gradient
    )
    shrink = max(np.float32(1.0 - rate * step.l2 * n), np.float32(0.0))
    row_rate = np.float32(rate * _scale(squares[feature], step.embedding_power))
    _move_row(parameters.embedding, feature, shrink, row_rate, gradient)


@inlined
def _embed_example(e, examples, rows, parameters, buffers):
    """Phase 1 for one example: its hidden vector."""
    hidden = buffers.hidden
    start, end = examples.x_indptr[rows[e]], examples.x_indptr[rows[e] + 1]
    add_embeddings(examples.x_indices, examples.x_values, start, end, parameters.embedding, hidden, e)


@kernel
def train_batches(
    examples, blocks, parameters, plan, buffers, order, first, step, n_threads, thread, scratch, out_loss
):
    """Train on the examples ``order``, batch after batch; every thread calls this with its number.

    ``first`` is the number of examples seen before; ``out_loss[0]`` grows by the loss of these.
    """
    sync = buffers.sync
    for start in range(0, len(order), step.batch_size):
        rows = order[start : start + step.batch_size]
        rate = np.float32(step.first_rate + (step.last_rate - step.first_rate) * start / len(order))
        task = _next_task(sync, 0, 1)
        while task < 2 + len(rows):
            if task == 0:
                _plan_visits(examples, blocks, rows, first + start, plan)
            elif task == 1:
                _plan_features(examples, rows, plan)
            else:
                _embed_example(task - 2, examples, rows, parameters, buffers)
            task = _next_task(sync, 0, 1)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 3)
        task = _next_task(sync, 1, 1)
        while task < plan.sizes[0]:
            _train_block(task, examples, blocks, rows, parameters, plan, buffers, step, rate, scratch)
            task = _next_task(sync, 1, 1)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 0)
            for visit in range(plan.sizes[1]):
                out_loss[0] += buffers.visit_loss[visit]
        task = _next_task(sync, 2, 1)
        while task < len(rows):
            _sum_visits(task, plan, buffers)
            task = _next_task(sync, 2, 1)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 1)
            for e in range(len(rows)):
                out_loss[0] += buffers.nothing[e]
        embedding_rate = np.float32(rate * step.embedding_rate)
        task = _next_task(sync, 3, _FEATURES_PER_TASK)
        while task < plan.sizes[2]:
            for feature in range(task, min(task + _FEATURES_PER_TASK, plan.sizes[2])):
                _train_feature(feature, parameters, plan, buffers, step, embedding_rate, scratch.gradient)
            task = _next_task(sync, 3, _FEATURES_PER_TASK)
        if not _meet(sync, n_threads):
            return
        if thread == 0:
            _reset_tasks(sync, 2)


@kernel
def count_visits(examples, blocks, out_visits, out_positives, out_node_weight):
    """Per example the number of blocks and of positive nodes; per node the weight of its positives."""
    n_nodes = len(blocks.parent)
    node_stamp = np.full(n_nodes, -1, np.int64)
    positive = np.empty(n_nodes, np.int32)
    for row in range(len(examples.weight)):
        labels = examples.y_indices[examples.y_indptr[row] : examples.y_indptr[row + 1]]
        end = _positive_nodes(labels, blocks, row, node_stamp, positive, 0)
        visits = 1
        for place in range(end):
            node = positive[place]
            visits += blocks.last[node] - blocks.first[node] + 1
            out_node_weight[node] += examples.weight[row]
        out_visits[row] = visits
        out_positives[row] = end
