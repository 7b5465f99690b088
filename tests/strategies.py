"""Hypothesis strategies for trees, rows and parameters that several test files draw from."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from labeltree import LabelTree
from labeltree.build.flat import build_flat
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.nodes.dense import DenseParameters
from labeltree.nodes.quantized import quantize

WIDE = 150  # labels of a flat tree: three blocks of siblings


def grow_tree(labels: list[int], sizes: list[tuple[int, int]]) -> LabelTree:
    """From the leaves up: join ``size`` neighbours from ``start`` on, until one root is left."""
    parent, label, roots = [-1] * len(labels), list(labels), list(range(len(labels)))
    for start, size in sizes:
        for node in roots[start : start + size]:
            parent[node] = len(parent)
        roots[start : start + size] = [len(parent)]
        parent.append(-1)
        label.append(-1)
    return LabelTree.from_parents(np.array(parent), np.array(label))


@st.composite
def bushy_trees(draw: st.DrawFn, n_labels: int) -> LabelTree:
    """Any shape; the labels in any order."""
    n_roots, sizes = n_labels, []
    while n_roots > 1:
        size = draw(st.integers(2, n_roots))
        sizes.append((draw(st.integers(0, n_roots - size)), size))
        n_roots -= size - 1
    return grow_tree(draw(st.permutations(range(n_labels))), sizes)


def chain_tree(n_labels: int) -> LabelTree:
    """As deep as a tree can be: every inner node has a leaf and the rest."""
    return grow_tree(list(range(n_labels)), [(0, 2)] * (n_labels - 1))


def trees_of(n_labels: int) -> st.SearchStrategy[LabelTree]:
    """Trees over a given number of labels."""
    return st.one_of(
        bushy_trees(n_labels),
        st.builds(chain_tree, st.just(n_labels)),
        st.builds(build_flat, st.just(n_labels)),
    )


def label_trees(max_labels: int = 10) -> st.SearchStrategy[LabelTree]:
    """Trees of every kind: one label, any shape, a deep chain, and a root of more children than one block."""
    return st.one_of(st.integers(1, max_labels).flatmap(trees_of), st.builds(build_flat, st.just(WIDE)))


@st.composite
def feature_dicts(draw: st.DrawFn, n_features: int, n_rows: int) -> list[dict[int, float]]:
    """Rows of features; some empty, some of more than four entries (what kernels take at once)."""
    values = st.floats(-2.0, 2.0, width=32).map(lambda value: round(value, 3))
    row = st.dictionaries(st.integers(0, n_features - 1), values, max_size=n_features)
    return draw(st.lists(row, min_size=n_rows, max_size=n_rows))


def sparse_rows(rows: list[dict[int, float]], n_features: int) -> SparseRows:
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    indices = [feature for row in rows for feature in sorted(row)]
    values = [row[feature] for row in rows for feature in sorted(row)]
    return SparseRows(indptr, np.array(indices, np.int32), np.array(values, np.float32), n_features)


def label_rows(label_sets: list[set[int]], n_labels: int) -> LabelRows:
    indptr = np.cumsum([0, *map(len, label_sets)]).astype(np.int64)
    indices = [label for labels in label_sets for label in sorted(labels)]
    return LabelRows(indptr, np.array(indices, np.int32), n_labels)


def random_parameters(
    tree: LabelTree, n_features: int, dim: int, seed: int, *, scale: float = 1.0, constants: float = 0.0
) -> DenseParameters:
    """Normal parameters; a share ``constants`` of the nodes is constant, half of these 0 and half 1."""
    random = np.random.default_rng(seed)
    embedding = random.normal(0.0, 1.0, (n_features, dim)).astype(np.float32)
    weights = random.normal(0.0, scale, (tree.n_nodes, dim)).astype(np.float32)
    bias = random.normal(0.0, scale, tree.n_nodes).astype(np.float32)
    is_constant = random.random(tree.n_nodes) < constants
    bias[is_constant] = np.where(random.random(int(is_constant.sum())) < 0.5, -np.inf, np.inf)
    weights[is_constant] = 0.0
    return rounded(DenseParameters(embedding, weights, bias))


def rounded(parameters: DenseParameters) -> DenseParameters:
    """Parameters that a model can have."""
    return quantize(parameters).floats()
