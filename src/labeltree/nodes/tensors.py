"""What the tensors of all kinds of nodes have in common, from a model file, checked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError
from labeltree.nodes import LINKS
from labeltree.storage.tensors import take_tensor

Tensors = Mapping[str, NDArray]


def take_finite(tensors: Tensors, name: str, n: int) -> NDArray[np.float32]:
    """A list of n numbers."""
    array = take_tensor(tensors, name, np.float32, (n,))
    if not np.all(np.isfinite(array)):
        raise CorruptedModelError(f"{name} has values that are not finite")
    return array


def take_bias(tensors: Tensors, prefix: str, n_nodes: int, link: str) -> NDArray[np.float32]:
    """Biases may be infinite, of constant nodes; among alternatives the root is the only certain one."""
    array = take_tensor(tensors, f"{prefix}.bias", np.float32, (n_nodes,))
    if np.any(np.isnan(array)):
        raise CorruptedModelError(f"{prefix}.bias has values that are not finite")
    if LINKS[link].picks_label and (array[0] != np.inf or np.any(array[1:] == np.inf)):
        raise CorruptedModelError(
            f"{prefix}.bias is not +infinity at the root alone, as it is with link {link}"
        )
    return array
