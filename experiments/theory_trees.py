"""Label trees for the theory's checks: random ones, all binary ones, and what each of them costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np

from experiments.theory_exact import Array, Distribution, node_indicator
from labeltree.data.rows import LabelRows, pointers
from labeltree.tree import LabelTree
from labeltree.trees.shapes import build_complete, build_flat, build_huffman

Nested = int | tuple["Nested", ...]  # a label, or the parts of an inner node


def label_tree(nested: Nested) -> LabelTree:
    """The tree that these brackets describe."""
    parents: list[int] = []
    labels: list[int] = []

    def add(part: Nested, parent: int) -> None:
        node = len(parents)
        parents.append(parent)
        labels.append(part if isinstance(part, int) else -1)
        for inner in () if isinstance(part, int) else part:
            add(inner, node)

    add(nested, -1)
    return LabelTree.from_parents(np.array(parents), np.array(labels))


def random_tree(random: np.random.Generator, n_labels: int) -> LabelTree:
    """Any shape, two to four children each, labels in any order."""

    def split(labels: list[int]) -> Nested:
        if len(labels) == 1:
            return labels[0]
        n_parts = int(random.integers(2, min(4, len(labels)) + 1))
        cuts = np.sort(random.choice(np.arange(1, len(labels)), n_parts - 1, replace=False)).tolist()
        ends = [0, *cuts, len(labels)]
        return tuple(split(labels[start:end]) for start, end in pairwise(ends))

    return label_tree(split(random.permutation(n_labels).tolist()))


def some_trees(random: np.random.Generator, counts: Array) -> dict[str, LabelTree]:
    """The package's trees for labels that occur in these proportions, and a random one."""
    whole = np.rint(1000 * counts).astype(np.int64)
    return {
        "complete, arity 2": build_complete(whole, 2),
        "complete, arity 3": build_complete(whole, 3),
        "huffman, arity 2": build_huffman(whole, 2),
        "huffman, arity 3": build_huffman(whole, 3),
        "flat": build_flat(len(counts)),
        "random": random_tree(random, len(counts)),
    }


def _grown(tree: Nested, label: int) -> Iterator[Nested]:
    """The binary trees that have one leaf more: it may join the root or any node below."""
    yield (tree, label)
    if not isinstance(tree, int):
        left, right = tree
        yield from ((grown, right) for grown in _grown(left, label))
        yield from ((left, grown) for grown in _grown(right, label))


@cache
def all_binary_trees(n_labels: int) -> tuple[LabelTree, ...]:
    """Every binary tree over the labels, the order of siblings aside."""
    nested: list[Nested] = [0]
    for label in range(1, n_labels):
        nested = [grown for tree in nested for grown in _grown(tree, label)]
    return tuple(label_tree(tree) for tree in nested)


def n_binary_trees(n_labels: int) -> int:
    """1 x 3 x 5 x ... x (2 n_labels - 3), the known number of them."""
    return math.prod(range(1, 2 * n_labels - 2, 2))


def rows_of(labels: np.ndarray, counts: np.ndarray) -> LabelRows:
    """Each label set as often as its count says."""
    repeated = np.repeat(labels, counts, axis=0)
    return LabelRows(
        pointers(repeated.sum(axis=1)), np.nonzero(repeated)[1].astype(np.int32), labels.shape[1]
    )


def defined_cost(tree: LabelTree, distribution: Distribution) -> float:
    """1 for the root, and for each inner node P(a label below it) times its number of children."""
    node_probability = distribution.probability @ node_indicator(tree, distribution.labels)
    return 1.0 + float(node_probability @ tree.n_children)


def printed_cost(tree: LabelTree, distribution: Distribution) -> float:
    """The formula as Appendix C prints it: each label adds up the inner nodes on its path once more."""
    node_probability = distribution.probability @ node_indicator(tree, distribution.labels)
    n_leaves = (tree.n_children == 0).astype(np.int64)
    for node in range(tree.n_nodes - 1, 0, -1):
        n_leaves[tree.parent[node]] += n_leaves[node]
    return float((node_probability * n_leaves)[tree.n_children > 0].sum())
