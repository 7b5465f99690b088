"""The kind ``direct``: each node has a weight for every number of the given vectors, and keeps all."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.nodes import KINDS
from labeltree.nodes.cosines import cosines, nodes_of
from labeltree.nodes.direct.tensors import DirectParameters, take
from labeltree.nodes.kind import Facts, Fit, FitInput, Needs, NodeKind, SavedNodes, Search, tree_fields
from labeltree.nodes.links import Link
from labeltree.tree import LabelTree, Shape


class _Direct(NodeKind):
    """Trained as sparse nodes are, so that what suits those suits these."""

    name = "direct"
    scores_alike = False  # siblings are summed in fours, a node alone is not

    def takes(self, link: Link) -> bool:
        return KINDS["sparse"].takes(link)

    def resolve(self, config: Config, facts: Facts) -> Config:
        return dataclasses.replace(KINDS["sparse"].resolve(config, facts), nodes=self.name)

    def fit(self, given: FitInput) -> Fit:
        from labeltree.nodes.direct.fitting import fit_direct

        return fit_direct(given)

    def needs(self, rows: TrainingRows, shape: Shape, config: Config, tree: LabelTree | None) -> Needs:
        """As of sparse nodes, but that every weight is kept, and while they are joined is there twice."""
        from labeltree.nodes.direct.fitting import check_size

        check_size(rows.Y.n_labels + shape.n_inner, rows.X.n_columns)
        of_sparse = KINDS["sparse"].needs(rows, shape, config, None)
        kept = 4 * (rows.Y.n_labels + shape.n_inner) * (rows.X.n_columns + 1)
        working = max(0, of_sparse.training_bytes - of_sparse.kept_bytes)
        return Needs(kept, working + 2 * kept, of_sparse.cpu_seconds)

    def take(self, saved: SavedNodes) -> DirectParameters:
        return take(saved)

    def blank(
        self, tree: LabelTree, n_features: int, bias: NDArray[np.float32], config: Config
    ) -> DirectParameters:
        return DirectParameters(np.zeros((tree.n_nodes, n_features), np.float32), bias)

    def search(self, tree: LabelTree, parameters: DirectParameters, n_features: int) -> Search:
        from labeltree.kernels.search.direct import DIRECT_TABLE, direct_kernels

        fields = tree_fields(tree, n_features) | parameters._asdict()
        return Search(direct_kernels, DIRECT_TABLE, DIRECT_TABLE.table(**fields), fields)

    def weights(
        self, search: Search, first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        nodes = nodes_of(first, count)
        return search.fields["weights"][nodes[:, None], columns].astype(np.float64)

    def combined_weights(
        self, search: Search, first: int, coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return coefficients @ search.fields["weights"][first : first + len(coefficients)]

    def likeness(self, search: Search, first: int, n: int, node: int) -> NDArray[np.float64]:
        return cosines(search.fields["weights"], first, n, node)


DIRECT = _Direct()
