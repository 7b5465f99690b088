"""Direct parameters, as they are trained, kept and searched; and from a model file, checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError
from labeltree.nodes.kind import SavedNodes
from labeltree.nodes.tensors import take_bias
from labeltree.storage.tensors import take_tensor

LARGEST_WEIGHT = 1e15  # times the largest value that a search takes, scores stay finite


class DirectParameters(NamedTuple):
    """Nothing is rounded: probabilities are those of whoever trained the weights."""

    weights: NDArray[np.float32]  # (n_nodes, n_features)
    bias: NDArray[np.float32]  # (n_nodes,) infinite where a node is constant


def are_usable(weights: NDArray[np.float32]) -> bool:
    """Whether scores of these weights are numbers. By their extremes, which need no memory; NaN is none."""
    return not weights.size or bool(weights.max() <= LARGEST_WEIGHT and weights.min() >= -LARGEST_WEIGHT)


def take(saved: SavedNodes) -> DirectParameters:
    """Those of a tree's nodes: kernels take them on trust."""
    name, n_nodes = f"{saved.prefix}.weights", saved.tree.n_nodes
    weights = take_tensor(saved.tensors, name, np.float32, (n_nodes, saved.n_features))
    if not are_usable(weights):
        raise CorruptedModelError(f"{name} has values beyond ±{LARGEST_WEIGHT:g}, or that are no numbers")
    return DirectParameters(weights, take_bias(saved.tensors, saved.prefix, n_nodes, saved.link))
