"""Links: how the scores of siblings become probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.links import Logistic, NormalizedLogistic, Softmax
from labeltree.nodes.biases import initial_bias, softmax_bias
from labeltree.nodes.shares import Shared, share_logistic, share_softmax
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
    # The loss of so many sparse siblings, where the config names this one; None: sparse nodes cannot have it.
    sparse_loss: Callable[[str, int], str] | None = None
    # How a change of scores is shared out (nodes/shares.py), and whether that takes the scores of all
    # siblings; None: predictions cannot be explained.
    share: Callable[..., Shared] | None = None
    needs_siblings: bool = False


def _bias_of_siblings(node_weight: NDArray[np.float64], tree: LabelTree, total: float) -> NDArray[np.float32]:
    return softmax_bias(node_weight, tree)  # the root is certain, whatever the total


def _loss_of_nodes(loss: str, n_children: int) -> str:
    return loss


def _loss_of_siblings(loss: str, n_children: int) -> str:
    return "log" if n_children <= 2 else "softmax"  # two alternatives share one logistic


# A logistic for each node; a softmax over siblings, which is normalised as it is.
PLT = Link("plt", False, Logistic(), NormalizedLogistic(), initial_bias, _loss_of_nodes, share_logistic)
HSM = Link(
    "hsm",
    True,
    Softmax(),
    Softmax(),
    _bias_of_siblings,
    _loss_of_siblings,
    share_softmax,
    needs_siblings=True,
)
