"""What is taken from model files, checked: tensors, and choices of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import CorruptedModelError, NewerModelError, show
from labeltree.table import Table

T = TypeVar("T")


def take_tensor(
    tensors: Mapping[str, NDArray], name: str, dtype: Any, shape: tuple[int | None, ...] = (None,)
) -> NDArray:
    """A tensor of a model file, of the expected kind and shape; None is an axis of any length."""
    tensor = tensors.get(name)
    if tensor is None:
        raise CorruptedModelError(f"{name} is missing")
    is_right = len(shape) == tensor.ndim and all(
        wanted in (None, length) for wanted, length in zip(shape, tensor.shape, strict=True)
    )
    if tensor.dtype != dtype or not is_right:
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        expected = f"a list of {np.dtype(dtype)}" if shape == (None,) else f"{np.dtype(dtype)} ({lengths})"
        raise CorruptedModelError(f"{name} should be {expected}, but is {tensor.dtype} {tensor.shape}")
    return tensor


def take_kind(table: Table[T], kind: Any, what: str) -> T:
    """What a model file names by its kind."""
    if not isinstance(kind, str):
        raise CorruptedModelError(f"the kind of {what} is {show(kind)}, but must be a name")
    known = table.single()
    if kind not in known:
        raise NewerModelError(
            f"the kind of {what} {show(kind)} is unknown: this version of labeltree has {', '.join(known)}; "
            "install a newer labeltree"
        )
    return table[kind]
