"""The search of :mod:`.exact` for dense nodes: a row is a vector h, a node scores w·h + b."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, Matrix
from labeltree.kernels.arithmetic import prefetch_rows, score_rows, sum_rows
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import (
    finish_scores,
    in_tree,
    log_of_least,
    log_of_probability,
    prepare_row,
    prepared_size,
    probability_of,
    score_nodes,
    scores_all_siblings,
)
from labeltree.kernels.search.factory import Kernels, make_kernels

_LARGEST = np.float32(1e15)  # of a hidden vector's entries: scores from them stay finite


class DenseNodes(NamedTuple):
    """A tree whose nodes score w·h + b, vectors in bytes with a scale; kernels only read it."""

    parent: NDArray[np.int32]  # (n_nodes,)
    first_child: NDArray[np.int32]  # (n_nodes,)
    n_children: NDArray[np.int32]  # (n_nodes,)
    label: NDArray[np.int32]  # (n_nodes,)
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    embedding: Matrix[np.int8]  # (n_features, dim)
    embedding_scale: NDArray[np.float32]  # (n_features,)
    weights: Matrix[np.int8]  # (n_nodes, dim)
    weight_scale: NDArray[np.float32]  # (n_nodes,)
    bias: NDArray[np.float32]  # (n_nodes,)
    max_children: int  # of a node, at least 1
    n_features: int


DENSE_TABLE = Layout(DenseNodes)
_read = DENSE_TABLE.reader()


@inlined
def nodes_at(table, indices, values):
    """What the table of a tree stands for, whatever the rows."""
    return _read(table, ())


@in_tree.of(DenseNodes)
def _in_tree_dense(nodes, table):
    return _read(table, ())


@prepared_size.of(DenseNodes)
def _prepared_size_dense(nodes):
    return nodes.embedding.shape[1]


@prepare_row.of(DenseNodes)
def _prepare_row_dense(nodes, indices, values, start, end, out):
    embedding, scale = nodes.embedding, nodes.embedding_scale
    coefficients = np.empty(end - start, np.float32)
    for q in range(start, end):  # rows far apart: all are prefetched at once
        prefetch_rows(embedding, indices[q], 1)
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
def _score_nodes_dense(nodes, first, n, prepared, out):
    scale, bias = nodes.weight_scale, nodes.bias
    score_rows(nodes.weights, first, n, prepared, 0, out)
    finish_scores(scale, bias, first, n, out)


@scores_all_siblings.of(DenseNodes)
def _scores_all_siblings_dense(nodes):
    return False


@probability_of.of(DenseNodes)
def _probability_dense(nodes, log_probability):
    return np.float32(math.exp(log_probability))


@log_of_least.of(DenseNodes)
def _log_of_least_dense(nodes, threshold):
    return log_of_probability(threshold)


def dense_kernels(link: Any) -> Kernels:
    return make_kernels("dense", nodes_at, link)
