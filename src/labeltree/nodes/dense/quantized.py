"""Dense parameters, and how a model keeps them: a byte per number, and a scale for each vector.

Rounding moves a probability by some tenths of a percent of itself and leaves precision as it is (`python -m
benchmarks.precision` shows both); the file is a quarter as large, and so is what a search reads from memory,
which is what most of its time goes to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LARGEST = 127  # -128 is not used: rounding is symmetric
_VALUES_AT_A_TIME = 1 << 20


class DenseParameters(NamedTuple):
    """As they are trained."""

    embedding: NDArray[np.float32]  # (n_features, dim)
    weights: NDArray[np.float32]  # (n_nodes, dim)
    bias: NDArray[np.float32]  # (n_nodes,): +inf where all training examples are positive, -inf where none is


class QuantizedParameters(NamedTuple):
    """As they are kept."""

    embedding: NDArray[np.int8]  # (n_features, dim)
    embedding_scale: NDArray[np.float32]  # (n_features,) times the bytes of a row: its vector
    weights: NDArray[np.int8]  # (n_nodes, dim)
    weight_scale: NDArray[np.float32]  # (n_nodes,)
    bias: NDArray[np.float32]  # (n_nodes,)

    def floats(self) -> DenseParameters:
        """The parameters that these stand for."""
        return DenseParameters(
            self.embedding * self.embedding_scale[:, None],
            self.weights * self.weight_scale[:, None],
            self.bias,
        )


def quantize(parameters: DenseParameters) -> QuantizedParameters:
    """The nearest parameters of one byte each; a vector's largest number is kept."""
    return QuantizedParameters(
        *_quantize_rows(parameters.embedding), *_quantize_rows(parameters.weights), parameters.bias
    )


def _quantize_rows(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    rounded, scale = np.empty(vectors.shape, np.int8), np.zeros(len(vectors), np.float32)
    n_rows = max(1, _VALUES_AT_A_TIME // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), n_rows):
        rows = slice(start, start + n_rows)
        largest = np.abs(vectors[rows]).max(axis=1, initial=0.0)
        scale[rows] = largest / np.float32(_LARGEST)
        with np.errstate(divide="ignore", over="ignore"):
            steps = np.where(scale[rows] > 0.0, np.float32(1.0) / scale[rows], np.float32(0.0))
        is_tiny = ~np.isfinite(steps)  # float32 has no inverse of so small a scale
        steps[is_tiny] = 0.0
        product = vectors[rows] * steps[:, None]
        if is_tiny.any():
            product[is_tiny] = vectors[rows][is_tiny] / scale[rows][is_tiny, None].astype(np.float64)
        np.rint(product, out=product)
        np.clip(product, -_LARGEST, _LARGEST, out=product)
        rounded[rows] = product
    return rounded, scale
