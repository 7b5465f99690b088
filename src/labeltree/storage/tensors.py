"""Arrays at the borders: views for kernels, tensors from model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError


def read_only(array: NDArray) -> NDArray:
    """A view for kernels, which are compiled once per kind of array: they get all they only read this way."""
    view = array.view()
    view.flags.writeable = False
    return view


def take_tensor(
    tensors: Mapping[str, NDArray], name: str, dtype: Any, shape: tuple[int, ...] | None = None
) -> NDArray:
    """A tensor of a model file, of the expected kind: of this shape, or a list of any length."""
    tensor = tensors.get(name)
    if tensor is None:
        raise CorruptedModelError(f"{name} is missing")
    is_right = tensor.ndim == 1 if shape is None else tensor.shape == shape
    if tensor.dtype != dtype or not is_right:
        expected = f"a list of {np.dtype(dtype)}" if shape is None else f"{np.dtype(dtype)} {shape}"
        raise CorruptedModelError(f"{name} should be {expected}, but is {tensor.dtype} {tensor.shape}")
    return tensor
