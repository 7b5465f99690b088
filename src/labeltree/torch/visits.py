"""Which nodes a row trains: those on the paths of its labels, and their siblings (Algorithm 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, pointers
from labeltree.tree import LabelTree


class Visits(NamedTuple):
    """Pairs of a row and a node, by row and then by node."""

    row: NDArray[np.int64]
    node: NDArray[np.int64]
    share: NDArray[np.float64]  # of the row's labels those at or below the node, as a part of all

    def only(self, chosen: NDArray[np.bool_]) -> Visits:
        return Visits(self.row[chosen], self.node[chosen], self.share[chosen])


def find_visits(tree: LabelTree, labels: LabelRows) -> Visits:
    """The root, and all children of the nodes that have a label of the row below them.

    Twins: ``positive_nodes``, ``negative_nodes`` and ``share_below`` of :mod:`labeltree.reference.training`.
    In NumPy: a batch has some thousand pairs, and what is done with each of them takes far longer.
    """
    positive, n_below = _positives(tree, labels)
    row, node = np.divmod(positive, tree.n_nodes)
    inner = tree.n_children[node] > 0
    row, node = row[inner], node[inner]
    n_children = tree.n_children[node].astype(np.int64)
    first = tree.first_child[node] - (np.cumsum(n_children) - n_children)
    of_children = np.repeat(row * tree.n_nodes + first, n_children) + np.arange(n_children.sum())
    of_roots = np.arange(labels.n_rows, dtype=np.int64) * tree.n_nodes
    visited = np.sort(np.concatenate([of_roots, of_children]))
    place = np.searchsorted(positive, visited)
    found = np.append(positive, -1)[place] == visited
    n_labels = np.maximum(np.diff(labels.indptr), 1)
    row, node = np.divmod(visited, tree.n_nodes)
    return Visits(row, node, np.where(found, np.append(n_below, 0)[place], 0) / n_labels[row])


def _positives(tree: LabelTree, labels: LabelRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes on the paths of all labels as row * n_nodes + node, and how many labels are below each."""
    row = np.repeat(np.arange(labels.n_rows, dtype=np.int64), np.diff(labels.indptr))
    node = tree.leaf_of_label[labels.indices]
    passed = []
    while len(node):
        passed.append(row * tree.n_nodes + node)
        is_below = node > 0
        row, node = row[is_below], tree.parent[node[is_below]]
    return np.unique(np.concatenate([np.empty(0, np.int64), *passed]), return_counts=True)


class Pattern(NamedTuple):
    """The same pairs as a sparse matrix of rows and nodes; and as its transpose, of visited nodes only."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    row: NDArray[np.int64]  # (n_pairs,)
    node: NDArray[np.int64]  # (n_pairs,)
    visited: NDArray[np.int64]  # (n_visited,) nodes of any pair, sorted
    visited_indptr: NDArray[np.int64]  # (n_visited + 1,)
    by_node: NDArray[np.int64]  # (n_pairs,) the pairs in the order of their nodes


def pattern_of(visits: Visits, n_rows: int) -> Pattern:
    by_node = np.argsort(visits.node, kind="stable")
    visited, n_pairs = np.unique(visits.node, return_counts=True)
    indptr = pointers(np.bincount(visits.row, minlength=n_rows))
    return Pattern(indptr, visits.row, visits.node, visited, pointers(n_pairs), by_node)
