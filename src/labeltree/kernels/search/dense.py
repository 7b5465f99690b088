"""The search of :mod:`.search` for dense nodes: a row is a vector h, a node scores w·h + b."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import address_table, frozen, matrix_at, vector_at
from labeltree.kernels.arithmetic import call_for, score_rows, sum_rows
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.search.beam import search_beam
from labeltree.kernels.search.exact import (
    Kernels,
    finish_scores,
    log_of_least,
    log_of_probability,
    prepare_query,
    probability_of,
    query_size,
    score_labels,
    score_nodes,
    scores_whole_blocks,
    search_above,
    search_prepared,
    search_row,
    search_topk,
)
from labeltree.kernels.text.short import row_at, transform_text

_LARGEST = np.float32(1e15)  # of a hidden vector's entries: scores from them stay finite


class DenseNodes(NamedTuple):
    """A tree whose nodes score w·h + b, vectors in bytes with a scale; kernels only read it."""

    parent: NDArray[np.int32]  # (n_nodes,)
    first_child: NDArray[np.int32]  # (n_nodes,)
    n_children: NDArray[np.int32]  # (n_nodes,)
    label: NDArray[np.int32]  # (n_nodes,)
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    embedding: NDArray[np.int8]  # (n_features, dim)
    embedding_scale: NDArray[np.float32]  # (n_features,)
    weights: NDArray[np.int8]  # (n_nodes, dim)
    weight_scale: NDArray[np.float32]  # (n_nodes,)
    bias: NDArray[np.float32]  # (n_nodes,)
    max_children: int  # of a node, at least 1


# Of the fields of DenseNodes, in their order, the last one as the length of an array of nothing.
_TYPES = (np.int32,) * 5 + (np.int8, np.float32, np.int8, np.float32, np.float32, np.int8)


def dense_table(arrays: Sequence[NDArray[Any]], max_children: int) -> NDArray[np.int64]:
    """What the kernels below take as ``table``: of the arrays of DenseNodes, which must outlive it."""
    return address_table([*arrays, np.empty((max_children, 0), np.int8)], _TYPES)


@inlined
def _nodes_at(table):
    return DenseNodes(
        vector_at(table, 0, np.int32),
        vector_at(table, 1, np.int32),
        vector_at(table, 2, np.int32),
        vector_at(table, 3, np.int32),
        vector_at(table, 4, np.int32),
        matrix_at(table, 5, np.int8),
        vector_at(table, 6, np.float32),
        matrix_at(table, 7, np.int8),
        vector_at(table, 8, np.float32),
        vector_at(table, 9, np.float32),
        table[10, 1],
    )


@query_size.of(DenseNodes)
def _query_size_dense(nodes):
    return nodes.embedding.shape[1]


@prepare_query.of(DenseNodes)
def _prepare_query_dense(nodes, indices, values, start, end, out):
    embedding, scale = nodes.embedding, nodes.embedding_scale
    coefficients = np.empty(end - start, np.float32)
    for q in range(start, end):  # rows far apart: all are called for at once
        call_for(embedding, indices[q], 1)
    for q in range(end - start):
        coefficients[q] = values[start + q] * scale[indices[start + q]]
    sum_rows(coefficients, 0, indices, start, end - start, embedding, out, 0)
    total = np.float32(0.0)
    for j in range(out.shape[1]):
        total += abs(out[0, j])
    if not total < _LARGEST:  # sums of huge values: cut, so that no score is infinite or NaN
        for j in range(out.shape[1]):
            h = out[0, j] if out[0, j] == out[0, j] else np.float32(0.0)
            out[0, j] = min(max(h, -_LARGEST), _LARGEST)


@score_nodes.of(DenseNodes)
def _score_nodes_dense(nodes, first, n, query, out):
    scale, bias = nodes.weight_scale, nodes.bias
    score_rows(nodes.weights, first, n, query, 0, out)
    finish_scores(scale, bias, first, n, out)


@scores_whole_blocks.of(DenseNodes)
def _scores_whole_blocks_dense(nodes):
    return False


@probability_of.of(DenseNodes)
def _probability_dense(nodes, log_probability):
    return np.float32(math.exp(log_probability))


@log_of_least.of(DenseNodes)
def _log_of_least_dense(nodes, threshold):
    return log_of_probability(threshold)


@kernel
def dense_topk(table, indptr, indices, values, k, threshold, link, out_ids, out_probabilities):
    """:func:`.search.search_topk`."""
    nodes = _nodes_at(table)
    search_topk(nodes, indptr, indices, values, k, threshold, link, out_ids, out_probabilities)


@kernel
def dense_topk_row(table, indices, values, n, norm, k, threshold, link, out_ids, out_probabilities):
    """:func:`.search.search_row`."""
    nodes = _nodes_at(table)
    n_features = nodes.embedding.shape[0]
    return search_row(
        nodes, n_features, indices, values, n, norm, k, threshold, link, out_ids, out_probabilities
    )


@kernel
def dense_topk_text(table, text_table, buffer, k, threshold, link, out_ids, out_probabilities):
    """:func:`.search.search_prepared` of a short text."""
    n = transform_text(text_table, frozen(buffer))
    indices, values = row_at(text_table)
    nodes = _nodes_at(table)
    return search_prepared(nodes, indices, values, n, k, threshold, link, out_ids, out_probabilities)


@kernel
def dense_beam(table, indptr, indices, values, k, beam, threshold, link, out_ids, out_probabilities):
    """:func:`.search_beam.search_beam`."""
    nodes = _nodes_at(table)
    search_beam(nodes, indptr, indices, values, k, beam, threshold, link, out_ids, out_probabilities)


@kernel
def dense_above(table, indptr, indices, values, row, threshold, link, out_indptr, out_ids, out_probabilities):
    """:func:`.search.search_above`."""
    nodes = _nodes_at(table)
    return search_above(
        nodes, indptr, indices, values, row, threshold, link, out_indptr, out_ids, out_probabilities
    )


@kernel
def dense_labels(table, indptr, indices, values, label_indptr, labels, link, out_probabilities):
    """:func:`.search.score_labels`."""
    nodes = _nodes_at(table)
    score_labels(nodes, indptr, indices, values, label_indptr, labels, link, out_probabilities)


KERNELS = Kernels(dense_topk, dense_topk_row, dense_topk_text, dense_beam, dense_above, dense_labels)
