"""What nodes of a tree are called: by the labels below them that have most training rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labeltree.features.strings import StringTable
from labeltree.tree import LabelTree

TYPICAL = 3  # labels that name a node


class Names:
    """Of labels, and of nodes by labels. May be used from many threads at once."""

    def __init__(self, labels: StringTable, label_counts: NDArray[np.int64]) -> None:
        self.labels, self.counts = labels, label_counts
        self._typical: dict[tuple[int, int], tuple[tuple[str, ...], int]] = {}

    def typical(self, tree: LabelTree, node: int) -> tuple[tuple[str, ...], int]:
        """Names of the labels below a node that have most training rows, and how many labels there are."""
        key = id(tree), node  # trees live as long as the model
        if key not in self._typical:
            below = labels_below(tree, node)
            order = np.lexsort((below, -self.counts[below]))[:TYPICAL]
            names = tuple(self.labels[int(label)] for label in below[order])
            self._typical[key] = names, len(below)
        return self._typical[key]


def labels_below(tree: LabelTree, node: int) -> NDArray[np.int32]:
    """The labels of all leaves below a node, or its own."""
    parts = [labels[labels >= 0] for labels in (tree.label[level] for level in _levels(tree, node))]
    return np.concatenate(parts)


def _levels(tree: LabelTree, node: int) -> Iterator[slice]:
    """The nodes below a node, and itself, level by level: nodes are numbered by levels."""
    first, last = node, node + 1
    while first < last:
        yield slice(first, last)
        inner = first + np.flatnonzero(tree.n_children[first:last])
        if not len(inner):
            return
        first = int(tree.first_child[inner[0]])
        last = int(tree.first_child[inner[-1]] + tree.n_children[inner[-1]])
