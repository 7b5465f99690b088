"""The plan of one tree's tasks: all that is decided about them before any is solved."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.kernels.sparse.arrays import Rows, padded
from labeltree.nodes import LINKS
from labeltree.nodes.biases import total_weight
from labeltree.nodes.chunks import chunk_starts
from labeltree.storage.space import IN_MEMORY, Space
from labeltree.tree import LabelTree


class Plan(NamedTuple):
    """Tasks by number. One is the training of a chunk of siblings, or of all children of a node where they
    are alternatives, on the rows of their parent."""

    config: Config  # resolved
    seed: int
    picks_label: bool  # siblings are alternatives
    prune: float  # weights closer to 0 are dropped
    n_features: int
    rows: Rows
    labels: LabelRows
    tree: LabelTree
    start: NDArray[np.int32]  # (n_chunks + 1,) the first node of each chunk
    task_chunk: NDArray[np.int64]  # (n_tasks + 1,) the first chunk of each task
    cost: NDArray[np.float64]  # (n_tasks,) products of a pass; 0 where there is nothing to learn
    all_rows: NDArray[np.int32]  # those that count
    node_indptr: NDArray[np.int64]  # (n_nodes + 1,)
    node_rows: NDArray[np.int32]  # of each node those with a label below it
    shares: NDArray[np.float32]  # beside node_rows: weight of a row's labels below the node; if picks_label
    bias: NDArray[np.float32]  # (n_nodes,) of nodes that are not learned
    is_learned: NDArray[np.bool_]  # (n_nodes,)
    positive_weight: NDArray[np.float64]  # (n_nodes,) what a node's positive examples count
    space: Space = IN_MEMORY  # for what a task works on

    @property
    def n_chunks(self) -> int:
        return len(self.start) - 1

    def starts_of(self, task: int) -> NDArray[np.int32]:
        """The first node of each chunk of a task, and the one behind the last."""
        first, last = self.task_chunk[task : task + 2]
        return self.start[first : last + 1]

    def positive_rows(self, first: int, last: int) -> NDArray[np.int32]:
        """Those of the nodes from first to last, which is not among them, one node after another."""
        return self.node_rows[self.node_indptr[first] : self.node_indptr[last]]


def make_plan(
    X: SparseRows,
    Y: LabelRows,
    tree: LabelTree,
    config: Config,
    *,
    weight: NDArray[np.float32],
    held_out: NDArray[np.int64],
    seed: int,
    space: Space = IN_MEMORY,
) -> Plan:
    """``config`` is resolved; ``weight`` is that of each row, and ``held_out`` are rows that join last."""
    is_held_out = np.zeros(X.n_rows, np.bool_)
    is_held_out[held_out] = True
    link = LINKS[config.link]
    node_indptr, node_rows, node_weight = _positives(Y, tree, weight, space)
    shares = np.empty(0, np.float32)
    if link.picks_label:
        shares = _shares(Y, tree, weight, node_indptr)
        node_weight = _sums(shares, node_indptr)
    bias = link.first_bias(node_weight, tree, total_weight(weight))
    is_learned = _are_learned_of_picks(bias, tree) if link.picks_label else np.isfinite(bias)
    start = chunk_starts(tree)
    task_chunk = _chunks_of_parents(start, tree) if link.picks_label else np.arange(len(start))
    all_rows = np.flatnonzero(weight > 0).astype(np.int32)
    of_node = _entries(X, all_rows, node_indptr, node_rows)
    first = start[task_chunk]
    cost = of_node[tree.parent[first[:-1]]] * padded(np.diff(first))
    n_positive = np.maximum(1, np.diff(node_indptr))
    return Plan(
        config=config,
        seed=seed,
        picks_label=link.picks_label,
        prune=_least_weight(config, X),
        n_features=X.n_columns,
        rows=Rows(X.indptr, X.indices, X.values, weight, is_held_out),
        labels=Y,
        tree=tree,
        start=start,
        task_chunk=task_chunk,
        cost=cost * np.logical_or.reduceat(is_learned, first[:-1]),
        all_rows=all_rows,
        node_indptr=node_indptr,
        node_rows=node_rows,
        shares=shares,
        bias=bias,
        is_learned=is_learned,
        positive_weight=config.positive_weight * (1 + config.rare_weight / n_positive),
        space=space,
    )


def _positives(
    Y: LabelRows, tree: LabelTree, weight: NDArray[np.float32], space: Space
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """The positive rows of each node, and their weight."""
    from labeltree.kernels.sparse.gathering import count_positive, fill_positive

    count, node_weight = np.zeros(tree.n_nodes + 1, np.int64), np.zeros(tree.n_nodes)
    labels = (tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, weight)
    count_positive(*labels, count, node_weight)
    indptr = np.cumsum(count)
    rows = space.lasting(int(indptr[-1]), np.int32)
    fill_positive(*labels, indptr, rows)
    return indptr, rows, node_weight


def _shares(
    Y: LabelRows, tree: LabelTree, weight: NDArray[np.float32], node_indptr: NDArray[np.int64]
) -> NDArray[np.float32]:
    from labeltree.kernels.sparse.gathering import fill_shares

    shares = np.empty(node_indptr[-1], np.float32)
    fill_shares(tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, weight, node_indptr, shares)
    return shares


def _sums(shares: NDArray[np.float32], node_indptr: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_nodes,) of each node's rows."""
    n_nodes = len(node_indptr) - 1
    node_of_share = np.repeat(np.arange(n_nodes), np.diff(node_indptr))
    return np.bincount(node_of_share, shares, n_nodes).astype(np.float64)


def _are_learned_of_picks(bias: NDArray[np.float32], tree: LabelTree) -> NDArray[np.bool_]:
    """(n_nodes,) those with any example that have such siblings; of two children only the first, as a softmax
    over s and 0 is a logistic."""
    n_possible = np.zeros(tree.n_nodes, np.int64)  # children of each node with any example
    np.add.at(n_possible, tree.parent[1:], np.isfinite(bias[1:]))
    is_learned = np.isfinite(bias) & (n_possible[tree.parent] > 1)
    is_learned[tree.first_child[tree.n_children == 2] + 1] = False
    return is_learned


def _chunks_of_parents(start: NDArray[np.int32], tree: LabelTree) -> NDArray[np.int64]:
    """The first chunk of each parent's children; at first that of the root itself."""
    parent = tree.parent[start[:-1]]
    return np.append(np.flatnonzero(np.diff(parent, prepend=-2)), len(parent))


def _entries(
    X: SparseRows, all_rows: NDArray[np.int32], node_indptr: NDArray[np.int64], node_rows: NDArray[np.int32]
) -> NDArray[np.float64]:
    """(n_nodes + 1,) of the rows of each node, a bias each included; at last, and so at -1, of all rows."""
    from labeltree.kernels.sparse.gathering import sum_entries

    sums = np.empty(len(node_indptr), np.float64)
    sum_entries(X.indptr, node_indptr, node_rows, sums)
    sums[-1] = (X.indptr[all_rows + 1] - X.indptr[all_rows] + 1).sum()
    return sums


def _least_weight(config: Config, X: SparseRows) -> float:
    """``prune`` for rows of length 1; the weights of longer rows are the smaller."""
    if config.row_norm != "none":
        return config.prune
    n_filled = max(1, int(np.count_nonzero(np.diff(X.indptr))))
    squares = float(np.square(X.values, dtype=np.float64).sum())
    return config.prune / max(math.sqrt(squares / n_filled), 1e-30)
