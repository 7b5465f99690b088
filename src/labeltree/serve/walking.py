"""A walk through the trees of a model, a node at a time: 10^5 labels at once would be too many for anyone."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from labeltree.explain.names import Names
from labeltree.model import Model
from labeltree.parameter import MOST_IDS
from labeltree.serve.problems import Problem
from labeltree.serve.schemas import ModelName, Number
from labeltree.tree import LabelTree

MOST_PARTS = 40
Place = Annotated[int, Meta(ge=0, le=MOST_IDS)]


class TreeQuery(Struct):
    """Which node: by its number, or as what has a label below it. Of its children, those after `offset`."""

    tree: Place = 0
    node: Place = 0
    label: str | None = None
    offset: Place = 0
    limit: Number = 200


class TreeNode(Struct):
    """A node: a few labels that are typical for it, and what is below it."""

    node: int
    labels: list[str]
    n_labels: int
    rows: int  # of all labels below it, summed
    n_children: int
    parts: list[int] = []  # the same of its children, as far as they are told, the largest first


class TreeAnswer(Struct):
    """The way from the root to a node, and its children, those of most training rows first."""

    path: list[TreeNode]
    children: list[TreeNode]
    n_children: int
    tree: int
    model: ModelName


class TreeWalk:
    """The trees of a model, to be looked at node by node."""

    def __init__(self, model: Model) -> None:
        self.trees, self.counts = model.label_trees, model.label_counts
        self._names = Names(model.labels, model.label_counts)
        self._sums: dict[int, NDArray[np.int64]] = {}

    def look(self, asked: TreeQuery, labels: NDArray[np.int32], name: ModelName) -> TreeAnswer:
        """At a node, or at the one whose child a label is."""
        if asked.tree >= len(self.trees):
            raise Problem(422, f"there is no tree {asked.tree}; the model has {len(self.trees)}")
        tree, node = self.trees[asked.tree], asked.node
        if len(labels):
            node = max(0, int(tree.parent[tree.leaf_of_label[labels[0]]]))
        if node >= tree.n_nodes:
            raise Problem(422, f"there is no node {node}; the tree has {tree.n_nodes:,}")
        rows = self._rows_below(asked.tree)
        children = tree.first_child[node] + np.arange(tree.n_children[node])
        shown = children[np.lexsort((children, -rows[children]))][asked.offset :][: asked.limit]
        path = [node]
        while tree.parent[path[0]] >= 0:
            path.insert(0, int(tree.parent[path[0]]))
        return TreeAnswer(
            [self._node(tree, rows, each) for each in path],
            [self._node(tree, rows, each, MOST_PARTS) for each in shown.tolist()],
            len(children), asked.tree, name,
        )  # fmt: skip

    def _node(self, tree: LabelTree, rows: NDArray[np.int64], node: int, n_parts: int = 0) -> TreeNode:
        labels, n_labels = self._names.typical(tree, node)
        below = slice(tree.first_child[node], tree.first_child[node] + tree.n_children[node])
        parts = np.sort(rows[below] if n_parts else rows[:0])[::-1][:n_parts].tolist()
        return TreeNode(node, list(labels), n_labels, int(rows[node]), int(tree.n_children[node]), parts)

    def _rows_below(self, number: int) -> NDArray[np.int64]:
        """(n_nodes,) training rows of the labels below each node; kept, for a walk has many steps."""
        if number not in self._sums:
            tree = self.trees[number]
            rows = np.zeros(tree.n_nodes, np.int64)
            rows[tree.leaf_of_label] = self.counts
            ends = np.cumsum(np.bincount(tree.depth())).tolist()  # nodes are numbered level by level
            for start, end in reversed(list(pairwise(ends))):
                np.add.at(rows, tree.parent[start:end], rows[start:end])
            self._sums[number] = rows
        return self._sums[number]
