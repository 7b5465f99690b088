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


def psndcg_at(ids: Rows, labels: Rows, k: int, label_counts: Sequence[int], n_examples: int) -> float:
    def weight(label: int) -> float:
        return 1 / propensity(0 if label == -1 else label_counts[label], n_examples)

    def discount(place: int) -> float:
        return 1 / math.log2(place + 2)

    reached = possible = 0.0
    for predicted, true in zip(ids, labels, strict=True):
        unit = sum(map(discount, range(min(k, max(1, len(true))))))
        for place, hit in enumerate(hits_of(predicted, true, k)):
            if hit:
                reached += weight(predicted[place]) * discount(place) / unit
        for place, best in enumerate(sorted(map(weight, true), reverse=True)[:k]):
            possible += best * discount(place) / unit
    return reached / possible if possible else 0.0


def set_measures(sets: Rows, labels: Rows, n_labels: int) -> dict[str, float]:
    """The measures of predicted sets, a label of -1 in which is nothing."""
    chosen = [{label for label in row if label >= 0} for row in sets]
    n = len(chosen)
    agreed = [len(row & set(true)) for row, true in zip(chosen, labels, strict=True)]
    sizes = [(len(row), len(true)) for row, true in zip(chosen, labels, strict=True)]
    n_hits, n_chosen, n_true = sum(agreed), sum(a for a, _ in sizes), sum(b for _, b in sizes)
    counts = []  # of each label: hits, rows that get it, rows that have it
    for label in range(n_labels):
        gets, has = [label in row for row in chosen], [label in true for true in labels]
        counts.append((sum(a and b for a, b in zip(gets, has, strict=True)), sum(gets), sum(has)))

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole else 0.0

    return {
        "instance-f1": mean([ratio(2 * h, a + b) for h, (a, b) in zip(agreed, sizes, strict=True)]),
        "micro-f1": ratio(2 * n_hits, n_chosen + n_true),
        "micro-precision": ratio(n_hits, n_chosen),
        "micro-recall": ratio(n_hits, n_true),
        "macro-f1": mean([ratio(2 * h, gets + has) for h, gets, has in counts]),
        "macro-precision": mean([ratio(h, gets) for h, gets, _ in counts]),
        "macro-recall": mean([ratio(h, has) for h, _, has in counts]),
        "balanced-accuracy": mean(
            [(ratio(h, has) + ratio(n - has - gets + h, n - has)) / 2 for h, gets, has in counts]
        ),
        "coverage": mean([h > 0 for h, _, _ in counts]),
        "jaccard": mean([ratio(h, a + b - h) for h, (a, b) in zip(agreed, sizes, strict=True)]),
        "hamming": (n_chosen + n_true - 2 * n_hits) / (n * n_labels),
    }


def best_threshold(pairs: Sequence[tuple[float, bool]], support: int) -> tuple[float, float]:
    """The best F1 of a label, and the largest threshold that reaches it: all probabilities are tried."""
    best, threshold = 0.0, math.nan
    for least in sorted({probability for probability, _ in pairs}, reverse=True):
        taken = [hit for probability, hit in pairs if probability >= least]
        f1 = 2 * sum(taken) / (len(taken) + support)
        if f1 > best:
            best, threshold = f1, least
    return (best, threshold) if support else (math.nan, math.nan)


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
