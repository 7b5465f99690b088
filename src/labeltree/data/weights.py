"""Weights of rows, given in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import DataError


def row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float32]:
    """One finite number of at least 0 per row, not all of them 0; without weights every row has 1."""
    if sample_weight is None:
        return np.ones(n_rows, np.float32)
    try:
        with np.errstate(over="ignore"):  # what overflows is found by the check of finite values
            weights = np.ascontiguousarray(sample_weight, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"sample_weight must have numbers only, that a float can hold ({error})") from error
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},), one per row, but has {weights.shape}")
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(wrong):
        raise DataError(
            f"sample_weight, row {wrong[0]}: must be finite and at least 0, but is {weights[wrong[0]]}"
        )
    if not weights.any():
        raise DataError("sample_weight is zero for every row; at least one weight must be positive")
    return weights
