"""The weights of sparse nodes, read back from their chunks: for explanations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import read_only
from labeltree.kernels.search.weights import gather_weights

_NO_VALUES: NDArray[np.float32] = read_only(np.empty(0, np.float32))


def gathered(
    table: NDArray[np.int64], first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
) -> NDArray[np.float32]:
    """As :meth:`labeltree.nodes.kind.NodeKind.weights`."""
    out = np.empty((sum(count.tolist()), len(columns)), np.float32)
    gather_weights(table, read_only(columns), _NO_VALUES, read_only(first), read_only(count), out)
    return out


class Entries(NamedTuple):
    """The weights of some siblings, one chunk."""

    feature: NDArray[np.int32]
    node: NDArray[np.int64]
    weight: NDArray[np.float32]


def combined(fields: Mapping[str, Any], first: int, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """As :meth:`labeltree.nodes.kind.NodeKind.combined_weights`."""
    total = np.zeros(fields["n_features"])
    for chunk in _chunks(fields, first, len(coefficients)):
        products = chunk.weight * coefficients[chunk.node - first]
        total += np.bincount(chunk.feature, products, len(total))
    return total


def cosines(fields: Mapping[str, Any], first: int, n: int, node: int) -> NDArray[np.float64]:
    """As :meth:`labeltree.nodes.kind.NodeKind.likeness`."""
    own = combined(fields, node, np.ones(1))
    products, squares = np.zeros(n), np.zeros(n)
    for chunk in _chunks(fields, first, n):
        place = chunk.node - first
        products += np.bincount(place, chunk.weight * own[chunk.feature], n)
        squares += np.bincount(place, np.square(chunk.weight, dtype=np.float64), n)
    lengths = np.sqrt(squares * np.square(own).sum())
    return products / np.where(lengths > 0.0, lengths, 1.0)


def _chunks(fields: Mapping[str, Any], first: int, n: int) -> Iterator[Entries]:
    """The weights of the nodes ``first .. first + n - 1``, by chunks."""
    chunk_of, start, parameters = fields["chunk"], fields["chunk_node"], fields["parameters"]
    for chunk in range(int(chunk_of[first]), int(chunk_of[first + n - 1]) + 1):
        rows = slice(*parameters.chunk_row[chunk : chunk + 2].tolist())
        entry = parameters.entry[slice(*parameters.chunk_entry[chunk : chunk + 2].tolist())]
        node = (entry >> 8).astype(np.int64) + int(start[chunk])
        feature = np.repeat(parameters.feature[rows], parameters.length[rows])
        weight = ((entry & 255).astype(np.float32) - np.float32(128)) * parameters.scale[node]
        keep = (node >= first) & (node < first + n)
        yield Entries(feature[keep], node[keep], weight[keep])


def calibrated(map: Sequence[float], log_probability: float) -> float:
    """The probability of a label whose path has this one, by the fitted map a log p - b log(1 - p) + c."""
    if log_probability in (0.0, -math.inf):
        return math.exp(log_probability)
    log_against = math.log(-math.expm1(log_probability))
    log_odds = map[0] * log_probability - map[1] * log_against + map[2]
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else math.exp(log_odds)
