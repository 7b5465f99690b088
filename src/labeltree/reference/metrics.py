"""The metrics, row by row with sets and plain loops: the twin of :mod:`labeltree.metrics`.

Here the true labels are one list of ids per row; -1 is a label the model does not know (each one counts).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Rows = Sequence[Sequence[int]]


def hits_of(predicted: Sequence[int], true: Sequence[int], k: int) -> list[bool]:
    """For each of the first k places, whether its label is true; missing places are misses."""
    first = [*predicted[:k]] + [-1] * (k - len(predicted[:k]))
    return [label >= 0 and label in true for label in first]


def precision_at(ids: Rows, labels: Rows, k: int) -> float:
    total = 0.0
    for predicted, true in zip(ids, labels, strict=True):
        total += sum(hits_of(predicted, true, k)) / k
    return total / len(ids)


def recall_at(ids: Rows, labels: Rows, k: int) -> float:
    total = 0.0
    for predicted, true in zip(ids, labels, strict=True):
        if true:
            total += sum(hits_of(predicted, true, k)) / len(true)
    return total / len(ids)


def ndcg_at(ids: Rows, labels: Rows, k: int) -> float:
    total = 0.0
    for predicted, true in zip(ids, labels, strict=True):
        if true:
            gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits_of(predicted, true, k)))
            best = sum(1 / math.log2(place + 2) for place in range(min(k, len(true))))
            total += gain / best
    return total / len(ids)


def propensity(count: float, n_examples: int, a: float = 0.55, b: float = 1.5) -> float:
    constant = max(0.0, math.log(n_examples) - 1) * (b + 1) ** a
    return 1 / (1 + constant * math.exp(-a * math.log(count + b)))


def psprecision_at(ids: Rows, labels: Rows, k: int, label_counts: Sequence[int], n_examples: int) -> float:
    def weight(label: int) -> float:
        return 1 / propensity(0 if label == -1 else label_counts[label], n_examples)

    reached = possible = 0.0
    for predicted, true in zip(ids, labels, strict=True):
        for place, hit in enumerate(hits_of(predicted, true, k)):
            if hit:
                reached += weight(predicted[place]) / k
        possible += sum(sorted((weight(label) for label in true), reverse=True)[:k]) / k
    return reached / possible if possible else 0.0


def per_label(
    ids: Rows, probs: Sequence[Sequence[float]], labels: Rows, label: int, k: int
) -> tuple[int, int, int, float]:
    """Support, times predicted, hits, and the sum of the predicted probabilities of one label."""
    support = predicted = hits = 0
    total = 0.0
    for row, true in enumerate(labels):
        support += label in true
        for place, guess in enumerate(ids[row][:k]):
            if guess == label:
                predicted += 1
                hits += label in true
                total += probs[row][place]
    return support, predicted, hits, total


def calibration_error(
    ids: Rows, probs: Sequence[Sequence[float]], labels: Rows, k: int, bins: int = 15
) -> float:
    pairs = [
        (prob, guess in true)
        for predicted, probabilities, true in zip(ids, probs, labels, strict=True)
        for guess, prob in list(zip(predicted, probabilities, strict=True))[:k]
        if guess >= 0
    ]
    pairs.sort(key=lambda pair: pair[0])
    error, start = 0.0, 0
    for number in range(bins):  # the first bins are one larger where the pairs do not divide evenly
        stop = start + len(pairs) // bins + (number < len(pairs) % bins)
        error += abs(sum(prob - hit for prob, hit in pairs[start:stop]))
        start = stop
    return error / len(pairs) if pairs else 0.0
