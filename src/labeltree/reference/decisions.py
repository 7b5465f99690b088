"""Decisions for many rows together, with plain loops: the twin of :mod:`labeltree.kernels.decisions.ascent`.

Candidates of a row are pairs of a label and its probability; a decision is the set of labels that it gets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Candidates = Sequence[Sequence[tuple[int, float]]]


def utility(
    candidates: Candidates,
    sets: Sequence[set[int]],
    support: Sequence[float],
    measures: Mapping[str, float],
    k: int,
    inverse: Sequence[float] = (),
) -> float:
    """The mixture of measures that is expected, times the number of labels; ``measures`` are coefficients.

    ``inverse`` are what hits count for "psp": inverse propensities, relative to the most that is possible.
    """
    n, m = len(candidates), len(support)
    hits, predicted, missed = [0.0] * m, [0] * m, [1.0] * m
    for row, chosen in zip(candidates, sets, strict=True):
        for label, probability in row:
            if label in chosen:
                hits[label] += probability
                predicted[label] += 1
                missed[label] *= 1.0 - min(probability, 1.0 - 1e-7)
    labels = range(m)

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole > 0 else 0.0

    values = {
        "p": sum(hits) / max(k, 1),
        "macro-f1": sum(ratio(2 * hits[j], predicted[j] + support[j]) for j in labels),
        "macro-precision": sum(ratio(hits[j], predicted[j]) for j in labels),
        "macro-recall": sum(ratio(hits[j], support[j]) for j in labels),
        "balanced-accuracy": sum(
            0.5
            * (ratio(hits[j], support[j]) + ratio(n - support[j] - predicted[j] + hits[j], n - support[j]))
            for j in labels
        ),
        "coverage": sum(1.0 - missed[j] for j in labels),
        "psp": sum(weight * hits[j] for j, weight in enumerate(inverse)),
    }
    return math.fsum(factor * values[name] for name, factor in measures.items())


def ascend(
    candidates: Candidates,
    sets: Sequence[set[int]],
    support: Sequence[float],
    measures: Mapping[str, float],
    k: int,
    order: Sequence[int],
    inverse: Sequence[float] = (),
) -> list[set[int]]:
    """One pass: each row in ``order`` gets the k labels of the largest gains, given the other rows' sets;
    with k 0 all that gain something."""
    sets = [set(each) for each in sets]
    for row in order:
        sets[row] = set()
        base = utility(candidates, sets, support, measures, k, inverse)
        gains = []
        for place, (label, _) in enumerate(candidates[row]):
            sets[row] = {label}
            gains.append((base - utility(candidates, sets, support, measures, k, inverse), place, label))
        best = sorted(gains)[:k] if k else [each for each in gains if each[0] < 0.0]
        sets[row] = {label for _, _, label in best}
    return sets
