"""Explanations in plain Python: shares of words, and a label's probability without some of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.reference.search import combined


def share_words(
    columns: Sequence[int], shares: Sequence[float], places: Sequence[tuple[int, int, int]], n_words: int
) -> tuple[list[float], float]:
    """Shares of words, and of no word; a place is a column, its first word and how many words it is in."""
    of_words, beside = [0.0] * n_words, 0.0
    for column, share in zip(columns, shares, strict=True):
        found = [(first, n) for other, first, n in places if other == column and n > 0]
        beside += share if not found else 0.0
        for first, n in found:
            for word in range(first, first + n):
                of_words[word] += share / len(found) / n
    return of_words, beside


def row_without(columns: Any, places: Any, gone: Collection[int]) -> NDArray[np.float64]:
    """The values of a text's columns without some words; the arguments are those of the kernel."""
    counts = np.zeros(len(columns.idf))
    for column, first, n in zip(places.column, places.first_word, places.n_words, strict=True):
        is_gone = [name in gone for name in places.name[first : first + abs(n)].tolist()]
        counts[column] += (
            not any(is_gone) if n > 0 else not (is_gone[0] or is_gone[-1]) and all(is_gone[1:-1])
        )
    tf = {0: counts, 1: 1.0 + np.log(np.maximum(counts, 1.0)), 2: np.ones(len(counts))}[columns.tf]
    values = np.where(counts > 0, tf * columns.idf, 0.0)
    first = 0
    for end, weight, most in zip(columns.block_end, columns.block_weight, columns.block_most, strict=True):
        block = values[first:end]
        if most:
            order = np.lexsort((np.arange(len(block)), -block.astype(np.float32)))
            block[order[most:]] = 0.0
        block *= weight / (_length(block, columns.norm) or 1.0)
        first = end
    return values / (_length(values, columns.norm) or 1.0) if len(columns.block_end) > 1 else values


def _length(values: NDArray[np.float64], norm: int) -> float:
    return (1.0, float(np.sqrt(np.square(values).sum())), float(np.abs(values).sum()))[norm]


def probability_without(text: Any, said: Any, map: NDArray[np.float64], gone: Collection[int]) -> float:
    """Of a label, by the paths and voters of the kernel."""
    (columns, places), (paths, voters) = text, said
    values, average, start = row_without(columns, places, gone), 0.0, 0
    for end, (a, b, c), part in zip(paths.end, paths.map, paths.part, strict=True):
        scores = paths.bias[start:end] + paths.weights[start:end] @ values
        log, start = -float(np.logaddexp(0.0, -scores).sum()), end
        average += part / (1.0 + math.exp(-(a * log - b * math.log(-math.expm1(log)) + c)))
    similar = (values[: len(voters.shared)] > 0) @ voters.shared.astype(np.float64)
    if len(similar) and similar.max() > 0:
        limit = max(np.sort(similar)[::-1][: voters.n_voters][-1], 1e-300)
        votes = np.where(similar >= limit, similar, 0.0) ** voters.power * voters.weight
        average += voters.part * float(votes[voters.has_label].sum() / votes.sum())
    return float(combined([np.array([average])], [1.0], map.tolist())[0])


def delete_words(
    text: Any, said: Any, map: NDArray[np.float64], tried: Sequence[int], n: int
) -> list[tuple[int, float]]:
    """Up to n of the words that are tried, each that without which the probability is lowest, and that."""
    gone, found = set[int](), list[tuple[int, float]]()
    lowest = probability_without(text, said, map, gone)
    while len(found) < n:
        without = {
            word: probability_without(text, said, map, gone | {word}) for word in tried if word not in gone
        }
        best = min(without, key=without.__getitem__, default=-1)
        if best < 0 or without[best] >= lowest:
            break
        lowest = without[best]
        gone.add(best)
        found.append((best, lowest))
    return found
