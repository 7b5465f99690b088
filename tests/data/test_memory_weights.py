"""Weights of rows: one check for training and for the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labeltree.data.memory import row_weights
from labeltree.errors import DataError


@pytest.mark.parametrize("weight", [[1, 2, 0], np.array([1.0, 2.0, 0.0]), (np.int8(1), 2.0, False)])
def test_weights_are_float32(weight: Any) -> None:
    found = row_weights(weight, 3)
    assert found.dtype == np.float32
    assert found.tolist() == [1, 2, 0]
    assert row_weights(None, 2).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        ([1, 2], r"shape \(3,\), one per row, but has \(2,\)"),
        (1.0, r"shape \(3,\)"),
        ([[1], [1], [1]], r"has \(3, 1\)"),
        (["a", "b", "c"], "numbers only"),
        ([1, None, {}], "numbers only"),
        ([1, -1, 1], "row 1: must be finite and at least 0, but is -1"),
        ([1, 1, np.nan], "row 2: .* nan"),
        ([1e39, 1, 1], "row 0: .* inf"),
        ([0, 0, 0], "zero for every row"),
        ([1e-60, 0, 0], "zero for every row"),
    ],
)
def test_bad_weights_are_named(weight: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        row_weights(weight, 3)
