"""From a head to what serves without torch: the search, a model and its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.labels import check_names
from labeltree.data.rows import SparseRows
from labeltree.errors import DataError
from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.combination import equal_weights
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.tree_expert import TreeExpert
from labeltree.features.strings import StringTable
from labeltree.features.vectors import VectorFeatures
from labeltree.model import Model
from labeltree.nodes.direct.tensors import LARGEST_WEIGHT, DirectParameters, are_usable
from labeltree.query import check_columns, make_query
from labeltree.trees import FROM_FILE

if TYPE_CHECKING:
    from labeltree.torch.heads import TreeHead

_KIND = "direct"


def make_expert(head: TreeHead, *, copy: bool) -> TreeExpert:
    """The head's tree with its weights; without a copy they may be those that training goes on to change."""
    weights, bias = head.arrays()
    if not are_usable(weights) or np.any(np.isnan(bias)):
        raise DataError(
            f"the head has weights that are no numbers, or beyond ±{LARGEST_WEIGHT:g}: training has diverged"
        )
    parameters = DirectParameters(weights.copy() if copy else weights, bias)
    return TreeExpert(head.tree, _KIND, parameters, head.in_features, head.link)


def best_labels(
    head: TreeHead, h: NDArray[np.float32], k: int, threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best labels, at most all, and their probabilities, both (n_rows, k)."""
    query = make_query(min(check_columns(k), head.tree.n_labels), search="exact")
    if not np.all(np.isfinite(h)):
        raise DataError("h has values that are no finite numbers")
    ensemble = Ensemble([make_expert(head, copy=False)], equal_weights(1))
    ids, probabilities, _ = best_of_rows(ensemble, _as_rows(h), query, threads)
    return ids, probabilities


def _as_rows(h: NDArray[np.float32]) -> SparseRows:
    """With entries for all columns, also those that are 0."""
    n_rows, n_columns = h.shape
    indices = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
    indptr = np.arange(n_rows + 1, dtype=np.int64) * n_columns
    return SparseRows(indptr, indices, np.ascontiguousarray(h).ravel(), n_columns)


def make_model(head: TreeHead, label_names: Sequence[str] | None, card: Mapping[str, str] | None) -> Model:
    """A model of one tree for rows that are taken as they are; labels are named by their ids by default."""
    n_labels = head.tree.n_labels
    names = [str(label) for label in range(n_labels)] if label_names is None else check_names(label_names)
    if len(names) != n_labels:
        raise DataError(f"label_names are {len(names)}, but the tree has {n_labels} labels")
    config = Config(
        nodes=_KIND, tree=FROM_FILE, link=head.link, row_norm="none", idf=False, calibrate=False, neighbours=0
    ).validate()
    expert = make_expert(head, copy=True)
    features, labels = VectorFeatures(config, head.in_features), StringTable.from_strings(names)
    return Model(
        config=config, features=features, labels=labels,
        label_counts=head.label_counts.copy(), n_examples=head.n_examples, experts=[expert], card=card,
    )  # fmt: skip
