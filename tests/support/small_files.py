"""A small model file of every kind of tensor, for the tests of writing and of reading."""

from __future__ import annotations

import os

import numpy as np
import pytest

METADATA = {"config": {"tree": "kmeans", "arity": 2, "label_prefix": "étiquette"}, "labels": 3}
posix = pytest.mark.skipif(os.name != "posix", reason="file modes, links and pipes of POSIX")


def small_tensors() -> dict[str, np.ndarray]:
    return {
        "weights": np.arange(12, dtype=np.float32).reshape(3, 4),
        "first_child": np.array([1, -1, -1], dtype=np.int32),
        "names": np.frombuffer(b"apple" * 200, dtype=np.uint8),
        "is_leaf": np.array([False, True, True]),
    }
