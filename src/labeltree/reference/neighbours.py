"""Neighbours in plain NumPy: an index that is no index, but the training rows with their rounded values.

``columns`` and ``levels`` of a training row are those of its entries that are in the index, by kind: first
those of listed columns, then those of frequent ones. Similarities are whole numbers, 1 << 15 for 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_POSTINGS = 1 << 15
ONE = 1 << 15


class Entries(NamedTuple):
    """What an index holds."""

    listed: Mapping[int, Mapping[int, int]]  # column -> row -> level
    frequent: Mapping[int, Mapping[int, int]]  # the same
    values: Sequence[int]  # of the levels
    n_candidates: int


def decode_list(data: bytes, n: int, n_ids: int) -> tuple[dict[int, int], int]:
    """The n ids below ``n_ids`` of a list, each with its level; and how many bytes the list takes."""
    low = max(1, n_ids // n).bit_length() - 1
    n_lower, n_upper = -(-n * (low + 4) // 8), -(-((n_ids - 1 >> low) + n) // 8)
    lower = int.from_bytes(data[:n_lower], "little")
    upper = int.from_bytes(data[n_lower : n_lower + n_upper], "little")
    entries = {}
    for i, place in enumerate(place for place in range(8 * n_upper) if upper >> place & 1):
        field = lower >> i * (low + 4)
        entries[place - i << low | field >> 4 & (1 << low) - 1] = field & 15
    return entries, n_lower + n_upper


def entry_levels(
    rows: Sequence[Mapping[int, float]], weight: NDArray[np.float32]
) -> tuple[list[dict[int, int]], NDArray[np.float32]]:
    """Of each row the levels of its entries that are kept, and the values of all 16 levels."""
    lengths = [np.sqrt(sum(float(value) ** 2 for value in row.values())) for row in rows]
    values = [
        {column: np.float32(value / length) for column, value in row.items()} if counts > 0 else {}
        for row, length, counts in zip(rows, lengths, weight, strict=True)
    ]
    largest = max((value for row in values for value in row.values() if value > 0), default=1.0)
    levels = np.float32(largest) * np.geomspace(0.01, 1.0, 16).astype(np.float32)
    bounds = np.sqrt(levels[1:] * levels[:-1])
    kept = [
        {
            column: int(np.searchsorted(bounds, value, side="right"))
            for column, value in row.items()
            if value >= levels[0] / 2
        }
        for row in values
    ]
    return kept, levels


class Neighbour(NamedTuple):
    row: int
    similarity: int


def find(
    entries: Entries, columns: NDArray[np.int32], values: NDArray[np.float32],
    weight: NDArray[np.float32], n: int,
) -> list[Neighbour]:  # fmt: skip
    """The n most similar rows of a row, most similar first, ties to the lower row."""
    weights = _weights(columns, values)
    sums: dict[int, int] = {}  # by the row that was first found first
    for column in _lists_to_read(entries, weights):
        for row, level in sorted(entries.listed[column].items()):
            sums[row] = sums.get(row, 0) + max(1, weights[column] * entries.values[level] >> 16)
    candidates = sorted(sums, key=lambda row: -sums[row])[: max(n, entries.n_candidates)]
    for row in candidates:
        for column in weights.keys() & entries.frequent.keys():
            if row in entries.frequent[column]:
                sums[row] += weights[column] * entries.values[entries.frequent[column][row]] >> 16
    found = [Neighbour(row, sums[row]) for row in candidates if weight[row] > 0]
    return sorted(found, key=lambda each: (-each.similarity, each.row))[:n]


def shared(
    entries: Entries, columns: NDArray[np.int32], values: NDArray[np.float32], rows: Sequence[int]
) -> NDArray[np.int64]:
    """(n_rows, n_entries) what each entry of a row adds to its similarity with these training rows."""
    weights, out = _weights(columns, values), np.zeros((len(rows), len(columns)), np.int64)
    listed = _lists_to_read(entries, weights)
    for entry, column in enumerate(columns.tolist()):
        of_rows = entries.listed.get(column, {}) if column in listed else entries.frequent.get(column, {})
        for place, row in enumerate(rows):
            if row in of_rows and column in weights:
                amount = weights[column] * entries.values[of_rows[row]] >> 16
                out[place, entry] = max(amount, int(column in listed))
    return out


def _weights(columns: NDArray[np.int32], values: NDArray[np.float32]) -> dict[int, int]:
    """Of the columns of a row that count, in whole numbers."""
    scale = (1 << 16) / max(float(np.sqrt(np.square(values, dtype=np.float64).sum())), 1e-300)
    weights = {int(c): int(float(v) * scale) for c, v in zip(columns, values, strict=True) if v > 0}
    return {column: own for column, own in weights.items() if own > 0}


def _lists_to_read(entries: Entries, weights: Mapping[int, int]) -> list[int]:
    """All listed columns of a row; where that are too many rows together, the strongest that fit."""
    columns = sorted(weights.keys() & entries.listed.keys())
    if sum(len(entries.listed[column]) for column in columns) <= MOST_POSTINGS:
        return columns
    read, n_postings = [], 0
    for column in sorted(columns, key=lambda column: (-weights[column], column)):
        if n_postings + len(entries.listed[column]) <= MOST_POSTINGS:
            n_postings += len(entries.listed[column])
            read.append(column)
    return read


def vote(
    neighbours: Sequence[Neighbour], labels: Sequence[Sequence[int]], weight: NDArray[np.float32], power: int
) -> dict[int, float]:
    """The share of each label among neighbours, which count by a power of their similarity."""
    shares = [(each.similarity / ONE) ** power * float(weight[each.row]) for each in neighbours]
    votes: dict[int, float] = {}
    for each, share in zip(neighbours, shares, strict=True):
        for label in labels[each.row]:
            votes[label] = votes.get(label, 0.0) + share
    return {label: own / sum(shares) for label, own in sorted(votes.items())}


def share_votes(
    shared: NDArray[np.int64], has_label: NDArray[np.bool_], weight: NDArray[np.float32], power: int,
    frequency: float,
) -> tuple[float, NDArray[np.float64]]:  # fmt: skip
    """The probability of a label and the share of each entry in it; ``shared`` (n_rows, n_entries)."""
    sums = shared.sum(axis=1)
    votes = (sums / ONE) ** power * weight
    votes /= votes.sum()
    parts = shared / sums[:, None]
    return float(votes[has_label].sum()), (
        votes * (has_label - frequency)
    ) @ parts + frequency / shared.shape[1]
