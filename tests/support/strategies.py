"""Hypothesis strategies for trees, rows and parameters that several test files draw from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from labeltree import LabelTree
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes.chunks import chunk_starts
from labeltree.nodes.dense.quantized import DenseParameters, quantize
from labeltree.nodes.direct.tensors import DirectParameters
from labeltree.nodes.kind import Parameters
from labeltree.trees.shapes import build_flat

AnyParameters = DenseParameters | DirectParameters | SparseParameters
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


def random_direct(
    tree: LabelTree, n_features: int, seed: int, *, scale: float = 1.0, constants: float = 0.0
) -> DirectParameters:
    """As :func:`random_parameters`, whose nodes see the features themselves."""
    dense = random_parameters(tree, 1, n_features, seed, scale=scale, constants=constants)
    return DirectParameters(dense.weights, dense.bias)


def kept(parameters: AnyParameters) -> tuple[str, Parameters]:
    """The kind of nodes, and parameters as a model keeps them."""
    if isinstance(parameters, DenseParameters):
        return "dense", quantize(parameters)
    return ("direct" if isinstance(parameters, DirectParameters) else "sparse"), parameters


def with_link(parameters: AnyParameters, link: str) -> AnyParameters:
    """Parameters that a model of this link can have: a softmax has no certain nodes but the root."""
    if link == "plt":
        return parameters
    bias = np.where(parameters.bias == np.inf, -np.inf, parameters.bias).astype(np.float32)
    bias[0] = np.inf
    return parameters._replace(bias=bias)


def random_sparse(
    tree: LabelTree,
    n_features: int,
    seed: int,
    *,
    scale: float = 1.0,
    constants: float = 0.0,
    calibration: tuple[float, float, float] = (1.0, 1.0, 0.0),
    rows_per_bucket: int = 3,
) -> SparseParameters:
    """Sparse parameters of any bytes; half of the features have no weight in a node."""
    random = np.random.default_rng(seed)
    bias = random.normal(0.0, scale, tree.n_nodes).astype(np.float32)
    is_constant = random.random(tree.n_nodes) < constants
    bias[is_constant] = np.where(random.random(int(is_constant.sum())) < 0.5, -np.inf, np.inf)
    steps = (random.random(tree.n_nodes) * scale / 60).astype(np.float32)
    weights: list[dict[int, int]] = []
    for constant in is_constant:
        used = [] if constant else np.flatnonzero(random.random(n_features) < 0.5).tolist()
        weights.append({feature: int(random.integers(1, 128) * random.choice([-1, 1])) for feature in used})
    return pack_chunks(tree, weights, steps, bias, calibration, rows_per_bucket)


def pack_chunks(
    tree: LabelTree,
    weights: Sequence[dict[int, int]],
    scale: NDArray[np.float32],
    bias: NDArray[np.float32],
    calibration: Sequence[float] = (1.0, 1.0, 0.0),
    rows_per_bucket: int = 3,
) -> SparseParameters:
    """Each node's weights (in steps of its scale) as the model file has them (docs/model-file.md)."""
    starts = chunk_starts(tree).tolist()
    bucket: list[tuple[int, int]] = []
    feature: list[int] = []
    length: list[int] = []
    entry: list[int] = []
    ends = [(0, 0, 0)]
    for first, last in itertools.pairwise(starts):
        rows: dict[int, list[int]] = {}
        for node in range(first, last):
            for column, steps in weights[node].items():
                rows.setdefault(column, []).append((node - first) << 8 | (steps + 128))
        n_buckets = max(1, len(rows) // rows_per_bucket) if rows else 0
        places = [(column * 2654435769 % 2**32) * n_buckets >> 32 for column in rows]
        for number in range(n_buckets):
            bucket.append((len(feature) - ends[-1][1], len(entry) - ends[-1][2]))
            for column, place in zip(rows, places, strict=True):
                if place == number:
                    feature.append(column)
                    length.append(len(rows[column]))
                    entry += rows[column]
        if n_buckets:
            bucket.append((len(feature) - ends[-1][1], len(entry) - ends[-1][2]))
        ends.append((len(bucket), len(feature), len(entry)))
    chunk_bucket, chunk_row, chunk_entry = np.array(ends, np.int64).T.copy()
    return SparseParameters(
        chunk_bucket,
        np.array(bucket, np.int32).reshape(-1, 2),
        chunk_row,
        np.array(feature, np.int32),
        np.array(length, np.uint8),
        chunk_entry,
        np.array(entry, np.uint16),
        scale.astype(np.float32),
        bias.astype(np.float32),
        np.array(calibration, np.float32),
    )
