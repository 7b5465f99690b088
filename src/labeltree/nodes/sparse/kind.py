"""The kind ``sparse``: a pruned linear model for each node."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.pairs import guess_pairs
from labeltree.data.rows import TrainingRows
from labeltree.kernels.sparse.arrays import SparseParameters, padded
from labeltree.nodes import LINKS
from labeltree.nodes.chunks import CHUNK_CHILDREN, chunk_starts
from labeltree.nodes.kind import Facts, Fit, FitInput, Needs, NodeKind, SavedNodes, Search, tree_fields
from labeltree.nodes.links import Link
from labeltree.tree import LabelTree, Shape

# Bytes that are kept for each pair of a label and a feature of its rows, seen on real data with the default
# settings: where all labels are below the root, and where inner nodes have weights too.
_BYTES_PER_PAIR_FLAT = 1.8
_BYTES_PER_PAIR = 3.8
_PRODUCTS_PER_SECOND = 5e8


class _Sparse(NodeKind):
    name = "sparse"
    scores_alike = keeps_map = has_parts = True
    methods = (
        {},
        {"loss": "log"},
        {"solver": "active", "loss": "squared-hinge"},
        {"solver": "active", "loss": "hinge"},
        {"solver": "sgd"},
    )

    def takes(self, link: Link) -> bool:
        return link.sparse_loss is not None

    def resolve(self, config: Config, facts: Facts) -> Config:
        from labeltree.nodes.sparse.defaults import choose_arity, choose_cost, choose_max_leaves

        config = dataclasses.replace(
            config, nodes=self.name, max_leaves=config.max_leaves or choose_max_leaves(config, facts)
        )
        return dataclasses.replace(
            config,
            arity=config.arity or choose_arity(config, facts.n_labels, facts.examples_per_label),
            C=config.C or choose_cost(config, facts),
        )

    def fit(self, given: FitInput) -> Fit:
        from labeltree.nodes.sparse.fitting import fit_sparse

        return fit_sparse(given)

    def parts(self, given: FitInput) -> tuple[int, Callable[[int], None]]:
        from labeltree.nodes.sparse.fitting import bundles_of_fit

        return bundles_of_fit(given)

    def calibrated(self, parameters: SparseParameters, map: NDArray[np.float32]) -> SparseParameters:
        return parameters._replace(calibration=map)

    def assumes_odds(self, config: Config) -> bool:
        from labeltree.nodes.sparse.solver import AS_THEY_ARE
        from labeltree.nodes.sparse.solvers import solver_of

        return solver_of(config).log_odds != AS_THEY_ARE

    def with_group_odds(
        self, parameters: SparseParameters, tree: LabelTree, summand: float
    ) -> SparseParameters:
        is_group = (tree.n_children > 0) & (tree.parent >= 0)
        added = np.where(is_group, np.float32(summand), np.float32(0.0))
        return parameters._replace(bias=parameters.bias + added)

    def is_calibrated(self, parameters: SparseParameters) -> bool:
        return parameters.calibration.tolist() != [1.0, 1.0, 0.0]

    def needs(self, rows: TrainingRows, shape: Shape, config: Config, tree: LabelTree | None) -> Needs:
        """The largest task is the root's: weights and duals of up to a chunk of its children, on all rows.

        With a link that picks a label they are those of all children, on a row for each label at most.
        """
        from labeltree.nodes.sparse.sample import sampled_bytes
        from labeltree.nodes.sparse.solvers import solver_of

        X, Y, _ = rows
        n_entries = len(X.indices)
        if tree is None:
            of_pair = _BYTES_PER_PAIR if shape.depth > 1 else _BYTES_PER_PAIR_FLAT
            weight_bytes = int(of_pair * guess_pairs(X, Y))
        else:
            weight_bytes = sampled_bytes(X, Y, tree, config, config.seed)
        kept = weight_bytes + 8 * (Y.n_labels + shape.n_inner)
        are_together = LINKS[config.link].picks_label
        n_columns = int(padded(shape.n_children if are_together else min(shape.n_children, CHUNK_CHILDREN)))
        n_examples = len(Y.indices) if are_together else X.n_rows
        working = solver_of(config).working_bytes(n_columns, X.n_columns, n_examples, n_entries)
        task_bytes = working + 8 * n_entries
        positive_bytes = 4 * len(Y.indices) * (shape.depth + 1)
        training_bytes = kept + task_bytes + positive_bytes  # kept twice: also without the held-out rows
        return Needs(kept, training_bytes, _cpu_seconds(rows, shape, config))

    def take(self, saved: SavedNodes) -> SparseParameters:
        from labeltree.nodes.sparse.tensors import take

        return take(*saved)

    def blank(
        self, tree: LabelTree, n_features: int, bias: NDArray[np.float32], config: Config
    ) -> SparseParameters:
        from labeltree.nodes.sparse.packing import join_chunks

        starts = chunk_starts(tree)
        nothing = [None] * (len(starts) - 1)
        return join_chunks(nothing, starts, np.zeros(tree.n_nodes, np.bool_), bias, (1.0, 0.0))

    def search(self, tree: LabelTree, parameters: SparseParameters, n_features: int) -> Search:
        from labeltree.kernels.search.sparse import SPARSE_TABLE, sparse_kernels

        starts = chunk_starts(tree)
        chunk = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        fields = tree_fields(tree, n_features)
        fields |= {"chunk": chunk, "chunk_node": starts, "parameters": parameters}
        return Search(sparse_kernels, SPARSE_TABLE, SPARSE_TABLE.table(**fields), fields)

    def label_probability(self, parameters: SparseParameters, log_probability: float) -> float:
        from labeltree.nodes.sparse.weights import calibrated

        return calibrated(parameters.calibration.tolist(), log_probability)

    def map_of_labels(self, parameters: SparseParameters) -> NDArray[np.float64]:
        return parameters.calibration.astype(np.float64)

    def weights(
        self, search: Search, first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        from labeltree.nodes.sparse.weights import gathered

        return gathered(search.table, first, count, columns)

    def combined_weights(
        self, search: Search, first: int, coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        from labeltree.nodes.sparse.weights import combined

        return combined(search.fields, first, coefficients)

    def likeness(self, search: Search, first: int, n: int, node: int) -> NDArray[np.float64]:
        from labeltree.nodes.sparse.weights import cosines

        return cosines(search.fields, first, n, node)


def _cpu_seconds(rows: TrainingRows, shape: Shape, config: Config) -> float:
    """From the products of a feature's value and a child's weight that a pass over all rows takes."""
    from labeltree.nodes.sparse.solvers import solver_of

    X, Y, _ = rows
    width = min(config.arity, shape.n_children) if shape.depth > 1 else shape.n_children
    n_children = width * (1 + len(Y.indices) / X.n_rows * (shape.depth - 1))
    n_products = float(len(X.indices)) * n_children
    return n_products * solver_of(config).usual_passes(config) / _PRODUCTS_PER_SECOND


SPARSE = _Sparse()
