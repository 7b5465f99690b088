"""Dense parameters from a model file, checked: kernels take them on trust."""

from __future__ import annotations

import numpy as np

from labeltree.errors import CorruptedModelError
from labeltree.nodes.dense.quantized import QuantizedParameters
from labeltree.nodes.tensors import Tensors, take_bias, take_finite
from labeltree.storage.tensors import take_tensor
from labeltree.tree import LabelTree


def take(tensors: Tensors, prefix: str, tree: LabelTree, n_features: int, link: str) -> QuantizedParameters:
    """Those of a tree's nodes. How long vectors are is what the weights say: all must agree."""
    weights = take_tensor(tensors, f"{prefix}.weights", np.int8, (tree.n_nodes, None))
    dim = weights.shape[1]
    if dim == 0:
        raise CorruptedModelError(f"{prefix}.weights has vectors of length 0")
    return QuantizedParameters(
        take_tensor(tensors, f"{prefix}.embedding", np.int8, (n_features, dim)),
        take_finite(tensors, f"{prefix}.embedding_scale", n_features),
        weights,
        take_finite(tensors, f"{prefix}.weight_scale", tree.n_nodes),
        take_bias(tensors, prefix, tree.n_nodes, link),
    )
