"""The kind ``dense``: learned vectors of features and nodes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.nodes import LINKS
from labeltree.nodes.chunks import CHUNK_CHILDREN, MAX_CHUNKS
from labeltree.nodes.cosines import cosines
from labeltree.nodes.dense.quantized import DenseParameters, QuantizedParameters, quantize
from labeltree.nodes.kind import (
    MAX_LEAVES,
    Facts,
    Fit,
    FitInput,
    FitProgress,
    Needs,
    NodeKind,
    SavedNodes,
    Search,
    tree_fields,
)
from labeltree.tree import LabelTree, Shape

ARITY = 16


class _Dense(NodeKind):
    name = "dense"
    scores_alike = False  # siblings are summed in fours, a node alone is not
    methods = (
        {"dim": 4, "epochs": 1},
        {"dim": 4, "epochs": 1, "optimizer": "sgd", "batch_size": 1},
    )

    def resolve(self, config: Config, facts: Facts) -> Config:
        return dataclasses.replace(
            config,
            nodes=self.name,
            arity=config.arity or ARITY,
            max_leaves=config.max_leaves or MAX_LEAVES,
        )

    def fit(self, given: FitInput) -> Fit:
        from labeltree.nodes.dense.fitting import fit_dense

        if not len(given.held_out):
            return Fit(quantize(fit_dense(given)))
        first, second = _halves(given)
        return Fit(without_held_out=quantize(fit_dense(first)), parameters=quantize(fit_dense(second)))

    def needs(self, rows: TrainingRows, shape: Shape, config: Config, tree: LabelTree | None) -> Needs:
        """The buffers of a mini-batch are two vectors per example, and one per chunk of siblings that it
        visits: those below the root, and below one node per level and label."""
        X, Y, _ = rows
        n_vectors = X.n_columns + Y.n_labels + shape.n_inner
        are_together = LINKS[config.link].picks_label  # then all siblings are one chunk
        n_chunks = 1 if are_together else min(math.ceil(shape.n_children / CHUNK_CHILDREN), MAX_CHUNKS)
        n_visits = 1 + n_chunks * (1 + len(Y.indices) / X.n_rows * (shape.depth - 1))
        batch_size = min(config.batch_size, X.n_rows)
        batch_bytes = int(batch_size * (2 + n_visits) * config.dim * 4)
        batch_bytes += 4 * batch_size * shape.n_children * are_together
        # A byte per number and a scale for each vector; 32 bits in training.
        return Needs(n_vectors * (config.dim + 4), 4 * n_vectors * config.dim + batch_bytes, math.nan)

    def take(self, saved: SavedNodes) -> QuantizedParameters:
        from labeltree.nodes.dense.tensors import take

        return take(*saved)

    def blank(
        self, tree: LabelTree, n_features: int, bias: NDArray[np.float32], config: Config
    ) -> QuantizedParameters:
        vectors = np.zeros((max(n_features, tree.n_nodes), config.dim), np.float32)
        return quantize(DenseParameters(vectors[:n_features], vectors[: tree.n_nodes], bias))

    def search(self, tree: LabelTree, parameters: QuantizedParameters, n_features: int) -> Search:
        from labeltree.kernels.search.dense import DENSE_TABLE, dense_kernels

        fields = tree_fields(tree, n_features) | parameters._asdict()
        return Search(dense_kernels, DENSE_TABLE, DENSE_TABLE.table(**fields), fields)

    def weights(
        self, search: Search, first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        from labeltree.nodes.dense.weights import gathered

        return gathered(search.fields, first, count, columns)

    def combined_weights(
        self, search: Search, first: int, coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        from labeltree.nodes.dense.weights import combined

        return combined(search.fields, first, coefficients)

    def likeness(self, search: Search, first: int, n: int, node: int) -> NDArray[np.float64]:
        return cosines(search.fields["weights"], first, n, node)


def _halves(given: FitInput) -> tuple[FitInput, FitInput]:
    """Two fits, each half of the progress: without the held-out rows, then with all.

    A single fit that the held-out rows join late would have seen them less often than the others.
    """
    weight = given.rows.weight.copy()
    weight[given.held_out] = 0.0

    def first(done: FitProgress) -> None:
        given.report(done._replace(fraction=done.fraction / 2))

    def second(done: FitProgress) -> None:
        given.report(done._replace(fraction=(1 + done.fraction) / 2))

    rows = given.rows._replace(weight=weight)
    return given._replace(rows=rows, report=first), given._replace(report=second)


DENSE = _Dense()
