"""What training would need: memory and the size of the model.

When training starts this is a rough guess from averages: a tree's shape is only known once it is built, and
which weights are pruned once they are trained. For ``--dry-run`` the trees are built and sparse nodes trained
in part (:mod:`labeltree.nodes.sparse.sample`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from labeltree.config import Config, node_kinds
from labeltree.kernels.sparse.arrays import padded
from labeltree.nodes import LINKS
from labeltree.nodes.blocks import BLOCK_CHILDREN, MAX_BLOCKS
from labeltree.nodes.defaults import resolve
from labeltree.nodes.sparse.sample import sampled_bytes
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.parallel import Pool
from labeltree.training.data import TrainingData
from labeltree.tree import LabelTree
from labeltree.trees import build_tree

_PROCESS_BYTES = 150_000_000  # Python, NumPy, Numba and its kernels
# Of sparse nodes, seen on real data with the default settings: weights that are kept, per feature of a row
# and label of that row, and bytes per weight with its share of features and buckets.
_WEIGHTS_KEPT = 0.7
_BYTES_PER_WEIGHT = 6
_PRODUCTS_PER_SECOND = 5e8


class Estimate(NamedTuple):
    """What training would need (`--dry-run`)."""

    n_rows: int
    n_features: int
    n_labels: int
    data_bytes: int
    parameter_bytes: int
    model_bytes: int
    peak_bytes: int
    cpu_seconds: float  # of sparse nodes, on one core; NaN where nothing is known
    times_of_kmeans: float = 1.0  # how much longer a flat tree takes


class _Shape(NamedTuple):
    """A guess at the tree: of all nodes, and of those that one label's path meets."""

    n_inner: int
    n_children: int  # of an inner node, at most
    depth: int


def estimate_needs(config: Config, data: TrainingData, pool: Pool | None = None) -> Estimate:
    """A rough guess; with a pool, which builds a tree of each kind, a close one."""
    n_labels = len(data.labels)
    data_bytes = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
    parameter_bytes, working_bytes, tree_bytes = 0, 0, 0
    for kind in node_kinds(config):
        own = resolve(config, kind, n_labels, data.Y.examples_per_label)
        tree = None if pool is None else build_tree(own, data.X, data.Y, data.labels.strings(), pool)
        shape = _guess_shape(own, n_labels) if tree is None else _shape_of(tree)
        kept, working = (
            _dense_needs(own, data, shape) if kind == "dense" else _sparse_needs(own, data, shape, tree)
        )
        parameter_bytes += config.trees * kept
        working_bytes = max(working_bytes, working)
        tree_bytes += config.trees * 20 * (n_labels + shape.n_inner)
    names = sum(array.nbytes for array in data.labels.tensors())
    vocabulary = sum(array.nbytes for array in data.features.tensors().values())
    peak_bytes = _PROCESS_BYTES + data_bytes + parameter_bytes + working_bytes
    if config.tree == "kmeans":
        profile_entries = int(np.diff(data.X.indptr).mean() * len(data.Y.indices))
        peak_bytes += 2 * 8 * min(profile_entries, n_labels * data.X.n_columns)
    return Estimate(
        data.X.n_rows, data.X.n_columns, n_labels, data_bytes, parameter_bytes,
        parameter_bytes + names + vocabulary + tree_bytes, peak_bytes,
        *_cpu_times(dataclasses.replace(own, nodes=config.nodes), data, shape),
    )  # fmt: skip


def _cpu_times(config: Config, data: TrainingData, shape: _Shape) -> tuple[float, float]:
    """Seconds of sparse nodes, and how many times those of a k-means tree they are."""
    if config.nodes != "sparse":
        return math.nan, 1.0
    seconds = _cpu_seconds(config, data, shape)
    if config.tree != "flat":
        return seconds, 1.0
    tree = dataclasses.replace(config, tree="kmeans")
    of_kmeans = _cpu_seconds(tree, data, _guess_shape(tree, len(data.labels)))
    return seconds, seconds / of_kmeans if of_kmeans else 1.0  # 0 where no row has a feature


def _cpu_seconds(config: Config, data: TrainingData, shape: _Shape) -> float:
    """From the products of a feature's value and a child's weight that a pass over all rows takes."""
    labels_per_row = len(data.Y.indices) / data.X.n_rows
    width = min(config.arity, shape.n_children) if shape.depth > 1 else shape.n_children
    n_children = width * (1 + labels_per_row * (shape.depth - 1))
    n_products = float(len(data.X.indices)) * n_children
    return config.trees * n_products * solver_of(config).usual_passes(config) / _PRODUCTS_PER_SECOND


def _shape_of(tree: LabelTree) -> _Shape:
    n_children = tree.n_children
    return _Shape(
        int(np.count_nonzero(n_children)), int(n_children.max()), max(1, int(tree.depth_of_leaves.max()))
    )


def _guess_shape(config: Config, n_labels: int) -> _Shape:
    if config.tree == "flat":
        return _Shape(1, n_labels, 1)
    if config.tree != "kmeans":
        n_inner = math.ceil(n_labels / max(1, min(config.arity, n_labels) - 1))
        depth = math.ceil(math.log(n_labels) / math.log(config.arity))
        return _Shape(n_inner, min(config.arity, n_labels), max(1, depth))
    # All groups are split until none is too large.
    n_groups = math.ceil(n_labels / config.max_leaves)
    n_levels = math.ceil(math.log(n_groups) / math.log(config.arity))
    n_inner = min(sum(config.arity**level for level in range(n_levels + 1)), n_labels)
    return _Shape(n_inner, min(max(config.arity, config.max_leaves), n_labels), n_levels + 1)


def _dense_needs(config: Config, data: TrainingData, shape: _Shape) -> tuple[int, int]:
    """Bytes that one tree's parameters keep, and those that are needed besides while it is trained.

    The buffers of a mini-batch are two vectors per example, and one per block of siblings that it visits:
    those below the root, and below one node per level and label.
    """
    n_vectors = data.X.n_columns + len(data.labels) + shape.n_inner
    is_picked = config.link == "hsm"  # then all siblings are one block
    n_blocks = 1 if is_picked else min(math.ceil(shape.n_children / BLOCK_CHILDREN), MAX_BLOCKS)
    labels_per_row = len(data.Y.indices) / data.X.n_rows
    n_visits = 1 + n_blocks * (1 + labels_per_row * (shape.depth - 1))
    batch_size = min(config.batch_size, data.X.n_rows)
    batch_bytes = int(batch_size * (2 + n_visits) * config.dim * 4)
    batch_bytes += 4 * batch_size * shape.n_children * is_picked
    # A byte per number and a scale for each vector; 32 bits in training.
    return n_vectors * (config.dim + 4), 4 * n_vectors * config.dim + batch_bytes


def _sparse_needs(
    config: Config, data: TrainingData, shape: _Shape, tree: LabelTree | None
) -> tuple[int, int]:
    """The largest task is the root's: weights and duals of up to a block of its children, on all rows.

    With a softmax they are those of all children, on a row for each of its labels at most.
    """
    n_entries = len(data.X.indices)
    if tree is None:
        n_weights = _WEIGHTS_KEPT * n_entries * len(data.Y.indices) / data.X.n_rows
        weight_bytes = int(_BYTES_PER_WEIGHT * min(n_weights, 2.0 * len(data.labels) * data.X.n_columns))
    else:
        weight_bytes = sampled_bytes(data.X, data.Y, tree, config, config.seed)
    kept = weight_bytes + 8 * (len(data.labels) + shape.n_inner)
    is_picked = LINKS[config.link].picks_label
    n_columns = int(padded(shape.n_children if is_picked else min(shape.n_children, BLOCK_CHILDREN)))
    n_examples = len(data.Y.indices) if is_picked else data.X.n_rows
    n_duals = solver_of(config).n_duals(n_examples)
    task_bytes = 4 * n_columns * (data.X.n_columns + n_duals) + 8 * n_entries
    positive_bytes = 4 * len(data.Y.indices) * (shape.depth + 1)
    return kept, kept + task_bytes + positive_bytes  # kept twice: also without the held-out rows
