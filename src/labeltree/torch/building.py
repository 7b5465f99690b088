"""Trees and first biases for heads, from the labels that they will be trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config, make_config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, pointers
from labeltree.errors import DataError
from labeltree.features import FEATURES, input_in_memory
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.kind import Facts
from labeltree.parallel import Pool
from labeltree.tree import LabelTree
from labeltree.trees import BUILDERS
from labeltree.trees.builder import TreeInput, build_tree

_KIND = "dense"  # of nodes, whose trees suit hidden vectors


def build_tree_of(
    labels: LabelRows, X: Any, link: str, parameters: dict[str, Any], threads: int
) -> LabelTree:
    """The tree that the parameters ask for, as training would build it."""
    if not len(labels.indices):
        raise DataError("Y has no labels, so there is nothing to build a tree of")
    asked = {"nodes": _KIND, "link": link} | parameters
    if X is None and asked.get("tree", Config.tree) in BUILDERS.users_of("profiles"):
        asked = {"profiles": "labels"} | asked
    config = make_config(asked)
    rows = _no_features(labels.n_rows) if X is None else _features(X, config, labels.n_rows)
    facts = Facts(labels.n_labels, labels.examples_per_label, len(rows.indices))
    config = KINDS[_KIND].resolve(config, facts)
    weight = np.ones(labels.n_rows, np.float32)
    names = [str(label) for label in range(labels.n_labels)]
    with Pool(threads) as pool:
        return build_tree(TreeInput(TrainingRows(rows, labels, weight), names, config, pool), config.seed)


def _no_features(n_rows: int) -> SparseRows:
    return SparseRows(pointers(np.zeros(n_rows)), np.empty(0, np.int32), np.empty(0, np.float32), 1)


def _features(X: Any, config: Config, n_rows: int) -> SparseRows:
    kind = FEATURES[input_in_memory(X)]
    rows = kind.fit(kind.content(X), config).rows
    if rows.n_rows != n_rows:
        raise DataError(f"X has {rows.n_rows} rows, but Y has {n_rows}; give each row of X its labels")
    return rows


def first_bias_of(tree: LabelTree, labels: LabelRows, link: str) -> NDArray[np.float32]:
    """(n_nodes,) scores by which nodes have the frequencies of these rows; infinite where they are constant.

    Twins: ``initial_bias`` and ``softmax_bias`` of :mod:`labeltree.reference.training`.
    """
    from labeltree.kernels.trees.shapes import count_rows_below

    below = np.zeros(tree.n_nodes, np.int64)
    if LINKS[link].picks_label:
        return LINKS[link].first_bias(_shares(tree, labels), tree, float(labels.n_rows))
    count_rows_below(labels.indptr, labels.indices, tree.parent, tree.leaf_of_label, below)
    return LINKS[link].first_bias(below.astype(np.float64), tree, float(labels.n_rows))


def _shares(tree: LabelTree, labels: LabelRows) -> NDArray[np.float64]:
    """(n_nodes,) how often a label below each node is picked, one of each row in equal parts."""
    n_labels = np.diff(labels.indptr)
    part = np.repeat(1.0 / np.maximum(n_labels, 1), n_labels)
    shares, node = np.zeros(tree.n_nodes), tree.leaf_of_label[labels.indices]
    while len(node):
        shares += np.bincount(node, part, tree.n_nodes)
        is_below = node > 0
        node, part = tree.parent[node[is_below]], part[is_below]
    return shares
