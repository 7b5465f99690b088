"""Parameters in bytes: as near to the trained ones as a byte allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from labeltree.nodes.dense import quantized
from labeltree.nodes.dense.quantized import DenseParameters, QuantizedParameters, quantize

vectors = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.integers(1, 5)),
    elements=st.floats(-(2.0**100), 2.0**100, width=32) | st.sampled_from([0.0, 1e-45, -1e-40, 1e-30]),
)


def of_weights(weights: NDArray[np.float32]) -> QuantizedParameters:
    return quantize(DenseParameters(np.ones((2, 3), np.float32), weights, np.zeros(len(weights), np.float32)))


@given(vectors)
def test_every_number_is_within_half_a_step(weights: NDArray[np.float32]) -> None:
    kept = of_weights(weights)
    largest = np.abs(weights).max(axis=1, keepdims=True).astype(np.float64)
    error = np.abs(kept.floats().weights.astype(np.float64) - weights)
    assert np.all(error <= largest / 127 * 0.501 + 1e-37)  # below, float32 has no digits left
    assert np.isfinite(kept.weight_scale).all()


def test_the_largest_number_of_a_vector_is_kept() -> None:
    kept = of_weights(np.array([[0.5, -2.0, 0.1], [3e-5, 1e-5, 0.0], [0.0, 0.0, 0.0]], np.float32))
    assert kept.weights.tolist() == [[32, -127, 6], [127, 42, 0], [0, 0, 0]]
    np.testing.assert_allclose(kept.floats().weights[[0, 1], [1, 0]], [-2.0, 3e-5], rtol=1e-6)
    assert kept.weight_scale[2] == 0.0


def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    whole = of_weights(weights)
    monkeypatch.setattr(quantized, "_VALUES_AT_A_TIME", 20)
    assert all(map(np.array_equal, whole, of_weights(weights)))


def test_biases_stay_as_they_are() -> None:
    bias = np.array([0.123456789, np.inf, -np.inf], np.float32)
    parameters = DenseParameters(np.zeros((0, 4), np.float32), np.zeros((3, 4), np.float32), bias)
    assert quantize(parameters).bias is bias
