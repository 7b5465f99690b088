"""What training would need: memory and the size of the model.

When training starts this is a rough guess from averages: a tree's shape is only known once it is built, and
which weights are pruned once they are trained. For ``--dry-run`` the trees are built and sparse nodes trained
in part (:mod:`labeltree.nodes.sparse.sample`).
"""

from __future__ import annotations

from typing import NamedTuple

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.experts.tree_training import resolve
from labeltree.nodes import KINDS
from labeltree.parallel import Pool
from labeltree.training.data import TrainingData
from labeltree.trees.builder import TreeInput, build_tree, builder_of

_PROCESS_BYTES = 150_000_000  # Python, NumPy, Numba and its kernels


class Estimate(NamedTuple):
    """What training would need (`--dry-run`)."""

    n_rows: int
    n_features: int
    n_labels: int
    data_bytes: int
    parameter_bytes: int
    model_bytes: int
    peak_bytes: int
    cpu_seconds: float  # on one core; NaN where nothing is known
    times_of_default: float = 1.0  # how many times as long as with the default tree


def estimate_needs(
    config: Config, data: TrainingData, rows: TrainingRows, pool: Pool | None = None
) -> Estimate:
    """A rough guess; with a pool, which builds a tree of each kind, a close one."""
    n_labels = len(data.labels)
    data_bytes = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
    parameter_bytes, working_bytes, tree_bytes, cpu_seconds = 0, 0, 0, 0.0
    builder = builder_of(config.tree)
    for kind, own in resolve(config, n_labels, data.Y.examples_per_label).items():
        tree = None
        if pool is not None:
            tree = build_tree(TreeInput(rows, data.labels.strings(), own, pool), own.seed)
        shape = builder.guess_shape(own, n_labels) if tree is None else tree.shape()
        needs = KINDS[kind].needs(rows, shape, own, tree)
        parameter_bytes += config.trees * needs.kept_bytes
        # what a tree is built in is given back before its nodes are trained
        working_bytes = max(working_bytes, needs.training_bytes, builder.working_bytes(rows, own))
        tree_bytes += config.trees * 20 * (n_labels + shape.n_inner)
        cpu_seconds += config.trees * needs.cpu_seconds
    names = sum(array.nbytes for array in data.labels.tensors())
    vocabulary = sum(array.nbytes for array in data.features.tensors().values())
    peak_bytes = _PROCESS_BYTES + data_bytes + parameter_bytes + working_bytes
    return Estimate(
        data.X.n_rows, data.X.n_columns, n_labels, data_bytes, parameter_bytes,
        parameter_bytes + names + vocabulary + tree_bytes, peak_bytes, cpu_seconds,
        _times_of_default(cpu_seconds, config, rows),
    )  # fmt: skip


def _times_of_default(cpu_seconds: float, config: Config, rows: TrainingRows) -> float:
    builder, n_labels = builder_of(Config.tree), rows.Y.n_labels
    of_default = 0.0
    for kind, own in resolve(config, n_labels, rows.Y.examples_per_label).items():
        of_default += KINDS[kind].needs(rows, builder.guess_shape(own, n_labels), own, None).cpu_seconds
    of_default *= config.trees
    return cpu_seconds / of_default if of_default > 0.0 else 1.0  # also where nothing is known
