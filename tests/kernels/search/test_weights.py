"""The weights of sparse nodes, gathered for the features of a row, are those that the bytes stand for."""

from __future__ import annotations

import numpy as np
import pytest
from support.strategies import chain_tree, random_sparse

from labeltree.experts.tree_expert import TreeExpert
from labeltree.nodes import KINDS
from labeltree.reference.sparse import decode
from labeltree.tree import LabelTree
from labeltree.trees.shapes import build_flat

N_FEATURES = 40


@pytest.mark.parametrize("tree", [build_flat(130), chain_tree(9)], ids=["flat", "chain"])
def test_they_are_those_of_the_reference(tree: LabelTree) -> None:
    parameters = random_sparse(tree, N_FEATURES, 1)
    expert, nodes = TreeExpert(tree, "sparse", parameters, N_FEATURES), decode(tree, parameters)
    dense = np.zeros((tree.n_nodes, N_FEATURES))
    for number, node in enumerate(nodes):
        dense[number, list(node.weights)] = list(node.weights.values())
    columns = np.array([0, 3, 17, 39], np.int32)
    first, count = np.array([0, 1, 2], np.int32), np.array([1, int(tree.n_children[0]), 1], np.int32)
    found = KINDS["sparse"].weights(expert.search, first, count, columns)
    ranges = [dense[start : start + n] for start, n in zip(first, count, strict=True)]
    np.testing.assert_allclose(found, np.concatenate(ranges)[:, columns], rtol=1e-6)
    coefficients = np.random.default_rng(1).normal(size=int(tree.n_children[0]))
    combined = KINDS["sparse"].combined_weights(expert.search, 1, coefficients)
    np.testing.assert_allclose(combined, coefficients @ dense[1 : 1 + len(coefficients)], atol=1e-5)
    likeness = KINDS["sparse"].likeness(expert.search, 1, len(coefficients), 1)
    lengths = np.linalg.norm(dense[1 : 1 + len(coefficients)], axis=1) * np.linalg.norm(dense[1])
    expected = dense[1 : 1 + len(coefficients)] @ dense[1] / np.where(lengths > 0, lengths, 1.0)
    np.testing.assert_allclose(likeness, expected, atol=1e-6)
