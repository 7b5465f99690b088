"""Sizes of memory as people write them, and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labeltree.errors import ParameterError
from labeltree.memory_size import LEAST_MEMORY, check_memory


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [
        (None, 0),
        ("2GB", 2 * 10**9),
        ("2g", 2 * 10**9),
        (" 500 MB ", 500 * 10**6),
        ("1.5GiB", 3 << 29),
        ("300000kB", 300_000_000),
        ("1TiB", 1 << 40),
        ("256000000", LEAST_MEMORY),
        ("256000000B", LEAST_MEMORY),
        (1 << 30, 1 << 30),
        (np.int64(1 << 30), 1 << 30),
    ],
)
def test_sizes(size: Any, n_bytes: int) -> None:
    assert check_memory(size) == n_bytes


@pytest.mark.parametrize(
    "size", ["", "GB", "2 gigabytes", "-2GB", "1e9", "2,5GB", "٢GB x", "nan", 2.5, [], b"2GB", float("inf")]
)
def test_no_sizes(size: Any) -> None:
    with pytest.raises(ParameterError, match="max_memory must be a size like 2GB or 500MB, but is"):
        check_memory(size)


@pytest.mark.parametrize("size", ["100MB", 0, "0", -5, True, "255.9MB"])
def test_too_little(size: Any) -> None:
    with pytest.raises(ParameterError, match=r"max_memory must be at least 256MB, .* but is"):
        check_memory(size)
