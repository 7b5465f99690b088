"""Links: how the scores of siblings become probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.links import Logistic, NormalizedLogistic, Softmax
from labeltree.tree import LabelTree

FirstBias = Callable[[NDArray[np.float64], LabelTree, float], NDArray[np.float32]]


class Link(NamedTuple):
    """What training and search have to know of a link."""

    name: str
    # Of a row's labels one is picked, and siblings are alternatives: trained together, one of them certain.
    # Rows without labels are then no examples.
    picks_label: bool
    # For kernels, which are compiled for its type (kernels/links.py); and the one of probabilities of
    # siblings that sum to at least 1, for who asks for these.
    kernel: Any
    normalized: Any
    # Scores by which nodes have their frequencies: of the weight of each node's examples, the tree, and the
    # weight of all examples. Infinite where a node is constant.
    first_bias: FirstBias


def initial_bias(node_weight: NDArray[np.float64], tree: LabelTree, total: float) -> NDArray[np.float32]:
    """Log-odds of each node among the examples of its parent: infinite where a node is constant."""
    of_parent = np.where(tree.parent >= 0, node_weight[np.maximum(tree.parent, 0)], total)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.log(node_weight) - np.log(of_parent - node_weight)
    bias[node_weight == 0] = -np.inf
    return bias.astype(np.float32)


def softmax_bias(
    node_weight: NDArray[np.float64], tree: LabelTree, total: float = 0.0
) -> NDArray[np.float32]:
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


# A logistic for each node; a softmax over siblings, which is normalised as it is.
PLT = Link("plt", False, Logistic(), NormalizedLogistic(), initial_bias)
HSM = Link("hsm", True, Softmax(), Softmax(), softmax_bias)
