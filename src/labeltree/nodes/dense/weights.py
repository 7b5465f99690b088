"""What dense nodes weigh single features by, the products of both vectors: for explanations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.nodes.cosines import nodes_of

_ROWS_AT_A_TIME = 1 << 14


def gathered(
    fields: Mapping[str, Any], first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
) -> NDArray[np.float64]:
    """As :meth:`labeltree.nodes.kind.NodeKind.weights`."""
    nodes = nodes_of(first, count)
    weights = fields["weights"][nodes].astype(np.float64) * fields["weight_scale"][nodes, None]
    vectors = fields["embedding"][columns].astype(np.float64) * fields["embedding_scale"][columns, None]
    return weights @ vectors.T


def combined(fields: Mapping[str, Any], first: int, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """As :meth:`labeltree.nodes.kind.NodeKind.combined_weights`."""
    nodes = slice(first, first + len(coefficients))
    vector = (coefficients * fields["weight_scale"][nodes]) @ fields["weights"][nodes].astype(np.float64)
    embedding = fields["embedding"]
    parts = [
        embedding[start : start + _ROWS_AT_A_TIME].astype(np.float64) @ vector
        for start in range(0, len(embedding), _ROWS_AT_A_TIME)
    ]
    return np.concatenate([np.empty(0), *parts]) * fields["embedding_scale"]
