"""Shares of a path's logistics by the kernel are those of the plain functions."""

from __future__ import annotations

import math

import numpy as np

from labeltree.data.rows import read_only
from labeltree.kernels.explain.paths import share_logistics
from labeltree.nodes.shares import Ranges, share_logistic


def test_they_are_those_of_the_plain_functions() -> None:
    rng = np.random.default_rng(1)
    weights, values = rng.normal(size=(6, 9)).astype(np.float32), rng.random(9).astype(np.float32)
    weights[3], weights[4, :] = 0.0, 1e-9
    bias = np.array([9.0, 0.5, -math.inf, -30.0, 2.0, math.inf, -1.0], np.float32)
    nodes = np.array([1, 2, 3, 4, 5, 6], np.int32)
    logs, shares = np.empty((2, 6)), np.empty((6, 9))
    share_logistics(*map(read_only, (weights, values, bias, nodes)), logs, shares)
    products, first = weights.astype(np.float64) * values, bias[nodes].astype(np.float64)
    expected = share_logistic((first + products.sum(axis=1)).tolist(), first.tolist(), Ranges([], []))
    np.testing.assert_allclose(logs, [expected.log_probability, expected.at_empty], rtol=1e-12)
    np.testing.assert_allclose(shares, products * np.array(expected.coefficients)[:, None], rtol=1e-6)
