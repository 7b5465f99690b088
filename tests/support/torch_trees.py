"""Heads with random parameters, and labels for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.strategies import label_trees

from labeltree.tree import LabelTree

DIM = 5


@st.composite
def trees_with_labels(draw: st.DrawFn) -> tuple[LabelTree, list[list[int]], int]:
    """A tree, the labels of a few rows, some without any, and a seed."""
    tree = draw(label_trees())
    of_row = st.lists(st.integers(0, tree.n_labels - 1), unique=True, max_size=min(4, tree.n_labels))
    return tree, draw(st.lists(of_row, min_size=1, max_size=5)), draw(st.integers(0, 999))


def random_bias(tree: LabelTree, seed: int, link: str) -> NDArray[np.float64]:
    """Some infinite ones; as many labels are impossible as a softmax leaves any of their siblings."""
    random = np.random.default_rng(seed)
    bias = random.normal(size=tree.n_nodes)
    constant = random.random(tree.n_nodes) < 0.2
    bias[constant] = -np.inf if link == "hsm" else random.choice([-np.inf, np.inf], constant.sum())
    if link == "hsm":
        bias[0] = np.inf
        pair = tree.first_child[tree.n_children == 2] + 1
        bias[pair[np.isfinite(bias[pair])]] = 0.0
    return bias


def fill(head: Any, seed: int) -> None:
    """Random weights, but for the second of two siblings in a softmax; no node is less likely than 1e-7."""
    import torch

    random, tree = np.random.default_rng(seed), head.tree
    weights = 0.5 * random.normal(size=(tree.n_nodes, head.in_features))
    if head.link == "hsm":
        weights[tree.first_child[tree.n_children == 2] + 1] = 0.0
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(weights))
