"""What kinds of nodes whose vectors are rows of a matrix tell about them alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_AT_A_TIME = 1 << 22  # numbers


def nodes_of(first: NDArray[np.int32], count: NDArray[np.int32]) -> NDArray[np.int64]:
    """The nodes of ranges, one after another."""
    ends = np.cumsum(count)
    return np.repeat(first - (ends - count), count) + np.arange(ends[-1] if len(ends) else 0)


def cosines(vectors: NDArray[Any], first: int, n: int, row: int) -> NDArray[np.float64]:
    """(n,) of rows of a matrix, from ``first`` on, with another row; their scales do not matter."""
    own = vectors[row].astype(np.float64)
    found = np.zeros(n)
    for start in range(0, n, max(1, _AT_A_TIME // max(1, len(own)))):
        end = min(n, start + max(1, _AT_A_TIME // max(1, len(own))))
        part = vectors[first + start : first + end].astype(np.float64)
        lengths = np.sqrt(np.square(part).sum(axis=1) * np.square(own).sum())
        found[start:end] = (part * own).sum(axis=1) / np.where(lengths > 0.0, lengths, 1.0)
    return found
