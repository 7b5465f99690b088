"""Kernels of `python -m benchmarks.roofline`: what the machine can do, and the parts of labeltree apart.

The parts are labeltree's own inlined helpers in loops of one thread, in the order of
:func:`labeltree.kernels.dense.batches.train_batches` and :func:`labeltree.kernels.search.exact.search_topk`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from labeltree.kernels.addresses import borrow
from labeltree.kernels.arithmetic import score_rows
from labeltree.kernels.dense.batches import _sum_visits, _train_chunk, _train_feature
from labeltree.kernels.dense.parts import embed_row, prefetch_examples
from labeltree.kernels.dense.plan import plan_features, plan_visits
from labeltree.kernels.jit import kernel
from labeltree.kernels.search.dense import nodes_at
from labeltree.kernels.search.exact import prepare_row, prepared_size, score_children, score_nodes

CHAINS = 10  # independent multiply-adds at a time: two units of a latency of four or five cycles each
_LINE = 64  # bytes


def _chains(lanes: int) -> Callable[..., Any]:
    """An intrinsic: n rounds of CHAINS multiply-adds of vectors that stay in registers.

    Vectors are named, as loops over arrays are made into 256 bits by LLVM even where 512 are possible.
    """

    @intrinsic
    def chains(typing_context: Any, n: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = ir.VectorType(ir.FloatType(), lanes)
            form = ir.FunctionType(vector, [vector] * 3)
            multiply_add = cgutils.get_or_insert_function(builder.module, form, f"llvm.fma.v{lanes}f32")
            factor, addend = (ir.Constant(vector, [value] * lanes) for value in (0.5, 1.0))
            slots = [
                cgutils.alloca_once_value(builder, ir.Constant(vector, [float(chain)] * lanes))
                for chain in range(CHAINS)
            ]
            with cgutils.for_range(builder, arguments[0]):
                for slot in slots:
                    builder.store(builder.call(multiply_add, [builder.load(slot), factor, addend]), slot)
            total = builder.load(slots[0])
            for slot in slots[1:]:
                total = builder.fadd(total, builder.load(slot))
            return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

        return types.float32(types.int64), generate

    return chains


_chains_of_8, _chains_of_16 = _chains(8), _chains(16)


@kernel
def multiply_add_256(n):
    return _chains_of_8(n)


@kernel
def multiply_add_512(n):
    return _chains_of_16(n)


@kernel
def read_all(array, n_times):
    """The sum of an array, again and again; in four streams, so that no sum waits for the one before."""
    quarter = len(array) // 4
    s0, s1, s2, s3 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for time in range(n_times):
        array[0] = np.float32(time)  # else one pass would do for all
        for i in range(quarter):
            s0 += array[i]
            s1 += array[i + quarter]
            s2 += array[i + 2 * quarter]
            s3 += array[i + 3 * quarter]
    return s0 + s1 + s2 + s3


@kernel
def read_rows(matrix, rows):
    """Bring some rows near, the way of embeddings: one number of each cache line is enough for that."""
    step = _LINE // matrix.itemsize
    total = matrix[0, 0]
    for i in range(len(rows)):
        row = rows[i]
        for j in range(0, matrix.shape[1], step):
            total += matrix[row, j]
    return total


@kernel
def move_rows(matrix, rows, factor):
    """The same for rows that are read and written, as updates do."""
    step = _LINE // matrix.itemsize
    for i in range(len(rows)):
        row = rows[i]
        for j in range(0, matrix.shape[1], step):
            matrix[row, j] *= factor


@kernel
def score_again(weights, vectors, n_times, out):
    """Scores of some nodes, of float32 as in training or of bytes as in prediction, from L1."""
    for _ in range(n_times):
        score_rows(weights, 0, weights.shape[0], vectors, 0, out)


@kernel
def count_batches(
    order, batch_size, x_indptr, x_indices, y_indptr, y_indices, parent, leaf_of_label, n_learned,
    feature_stamp, node_stamp, batch_stamp, out_touched, out_counts,
):  # fmt: skip
    """What training on ``order`` visits, and what each batch touches (into out_touched: its features).

    ``n_learned`` are the children of each node that have something to learn; stamps start at -1.
    out_counts: visited nodes, visited groups of siblings, touched features, touched nodes.
    """
    for i in range(len(order)):
        row, batch = order[i], i // batch_size
        for q in range(x_indptr[row], x_indptr[row + 1]):
            if feature_stamp[x_indices[q]] != batch:
                feature_stamp[x_indices[q]] = batch
                out_touched[out_counts[2]] = x_indices[q]
                out_counts[2] += 1
        for q in range(y_indptr[row], y_indptr[row + 1]):
            node = parent[leaf_of_label[y_indices[q]]]
            while node >= 0 and node_stamp[node] != i:
                node_stamp[node] = i
                if n_learned[node] > 0:
                    out_counts[0] += n_learned[node]
                    out_counts[1] += 1
                    if batch_stamp[node] != batch:
                        batch_stamp[node] = batch
                        out_counts[3] += n_learned[node]
                node = parent[node]


@intrinsic
def _clock(typing_context):
    """CPU time of the process by the C library; from Python, calls would take longer than some parts."""

    def generate(context, builder, signature, arguments):
        form = ir.FunctionType(ir.IntType(64), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, form, "clock"), [])

    return types.int64(), generate


@kernel
def train_phases(
    examples, chunks, parameters, plan, buffers, order, first, step, rate, embedding_rate, scratch, out_clocks
):
    """An epoch of `train_batches` on one thread; out_clocks[p] is what its p-th part took."""
    examples, chunks, parameters = borrow(examples), borrow(chunks), borrow(parameters)
    plan, buffers, scratch = borrow(plan), borrow(buffers), borrow(scratch)
    out_clocks[:] = 0
    for start in range(0, len(order), step.batch_size):
        rows = order[start : start + step.batch_size]
        began = _clock()
        plan_visits(examples, chunks, rows, first + start, plan)
        plan_features(examples, rows, plan)
        planned = _clock()
        for e in range(len(rows)):
            prefetch_examples(examples, order, start + e, parameters.embedding)
            embed_row(rows[e], examples, parameters.embedding, buffers.hidden, e)
        embedded = _clock()
        for task in range(plan.sizes[0]):
            _train_chunk(task, examples, chunks, rows, parameters, plan, buffers, step, rate, scratch)
        moved = _clock()
        for e in range(len(rows)):
            _sum_visits(e, plan, buffers)
        summed = _clock()
        for task in range(plan.sizes[2]):
            _train_feature(task, parameters, plan, buffers, step, embedding_rate, scratch.gradient)
        ended = _clock()
        out_clocks[0] += planned - began
        out_clocks[1] += embedded - planned
        out_clocks[2] += moved - embedded
        out_clocks[3] += summed - moved
        out_clocks[4] += ended - summed


@kernel
def search_parts(table, indptr, indices, values, opened_indptr, opened, with_scores, with_link, link, out):
    """A search that knows which nodes to open: queries, the scores of their children, and the link.

    out[row] has something of each, so that nothing is left out.
    """
    nodes = nodes_at(table, indices, values)
    query = np.empty((1, prepared_size(nodes)), np.float32)
    scores = np.empty(nodes.max_children, np.float32)
    for row in range(len(indptr) - 1):
        prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], query)
        out[row] = query[0, 0]
        if with_scores:
            for place in range(opened_indptr[row], opened_indptr[row + 1]):
                first, n = nodes.first_child[opened[place]], nodes.n_children[opened[place]]
                if with_link:
                    score_children(nodes, link, first, n, query, scores)
                else:
                    score_nodes(nodes, first, n, query, scores)
                out[row] += scores[0]
