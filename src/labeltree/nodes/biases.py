"""The scores of nodes that only know how frequent they are: infinite where a node is constant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree


def total_weight(weight: NDArray[np.float32]) -> float:
    """Of all rows, added one after another, as kernels add: a root that is always positive has exactly it."""
    return float(np.cumsum(weight, dtype=np.float64)[-1])


def initial_bias(node_weight: NDArray[np.float64], tree: LabelTree, total: float) -> NDArray[np.float32]:
    """Log-odds of each node among the examples of its parent: infinite where a node is constant."""
    of_parent = np.where(tree.parent >= 0, node_weight[np.maximum(tree.parent, 0)], total)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.log(node_weight) - np.log(of_parent - node_weight)
    bias[node_weight == 0] = -np.inf
    return bias.astype(np.float32)


def softmax_bias(node_weight: NDArray[np.float64], tree: LabelTree) -> NDArray[np.float32]:
    """Scores whose softmax are the frequencies of siblings; the root, always reached, is the constant 1.

    Of two siblings the second has the score 0, so that both share one logistic.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.log(node_weight) - np.log(node_weight[np.maximum(tree.parent, 0)])
    bias[node_weight == 0] = -np.inf
    bias[0] = np.inf
    pair = tree.first_child[tree.n_children == 2]
    pair = pair[np.isfinite(bias[pair]) & np.isfinite(bias[pair + 1])]
    bias[pair] -= bias[pair + 1]
    bias[pair + 1] = 0.0
    return bias.astype(np.float32)
