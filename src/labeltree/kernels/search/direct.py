"""The search of :mod:`.exact` for direct nodes: a row is a vector x, a node scores w·x + b, in float32."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, Matrix
from labeltree.kernels.arithmetic import score_rows
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import (
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

_LARGEST = np.float32(1e15)  # of a row's values; weights are no larger, so that sums of products stay finite


class DirectNodes(NamedTuple):
    """A tree whose nodes score w·x + b; kernels only read it."""

    parent: NDArray[np.int32]  # (n_nodes,)
    first_child: NDArray[np.int32]  # (n_nodes,)
    n_children: NDArray[np.int32]  # (n_nodes,)
    label: NDArray[np.int32]  # (n_nodes,)
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    weights: Matrix[np.float32]  # (n_nodes, n_features)
    bias: NDArray[np.float32]  # (n_nodes,)
    max_children: int  # of a node, at least 1
    n_features: int


DIRECT_TABLE = Layout(DirectNodes)
_read = DIRECT_TABLE.reader()


@inlined
def nodes_at(table, indices, values):
    """What the table of a tree stands for, whatever the rows."""
    return _read(table, ())


@in_tree.of(DirectNodes)
def _in_tree_direct(nodes, table):
    return _read(table, ())


@prepared_size.of(DirectNodes)
def _prepared_size_direct(nodes):
    return nodes.weights.shape[1]


@prepare_row.of(DirectNodes)
def _prepare_row_direct(nodes, indices, values, start, end, out):
    """The row with its zeros, as nodes have a weight for each feature."""
    for j in range(out.shape[1]):
        out[0, j] = 0.0
    for q in range(start, end):
        out[0, indices[q]] = min(max(values[q], -_LARGEST), _LARGEST)


@score_nodes.of(DirectNodes)
def _score_nodes_direct(nodes, first, n, prepared, out):
    bias = nodes.bias
    score_rows(nodes.weights, first, n, prepared, 0, out)
    for c in range(n):
        out[c] += bias[first + c]


@scores_all_siblings.of(DirectNodes)
def _scores_all_siblings_direct(nodes):
    return False


@probability_of.of(DirectNodes)
def _probability_direct(nodes, log_probability):
    return np.float32(math.exp(log_probability))


@log_of_least.of(DirectNodes)
def _log_of_least_direct(nodes, threshold):
    return log_of_probability(threshold)


def direct_kernels(link: Any) -> Kernels:
    return make_kernels("direct", nodes_at, link)
