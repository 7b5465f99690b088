"""Decisions for many rows together, with plain loops: the twin of :mod:`labeltree.kernels.decisions.ascent`.

Candidates of a row are pairs of a label and its probability; a decision is the set of labels that it gets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

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
    blocks: Sequence[Sequence[int]],
    inverse: Sequence[float] = (),
) -> list[set[int]]:
    """One pass: the rows of a block propose the k labels of the largest gains, given all rows' sets; then
    one row after another exchanges labels for what it proposed, as long as the utility rises by it."""
    sets = [set(each) for each in sets]

    def gains(row: int, labels: Iterable[int]) -> list[tuple[float, int]]:
        """What the utility gains by each label alone, the other rows' sets being what they are."""
        own, found = sets[row], []
        sets[row] = set()
        base = utility(candidates, sets, support, measures, k, inverse)
        for label in labels:
            sets[row] = {label}
            found.append((utility(candidates, sets, support, measures, k, inverse) - base, label))
        sets[row] = own
        return sorted(found, reverse=True)

    for block in blocks:
        proposed = {row: {j for _, j in gains(row, [j for j, _ in candidates[row]])[:k]} for row in block}
        for row in block:
            given, got = gains(row, sets[row] - proposed[row]), gains(row, proposed[row] - sets[row])
            for (lost, old), (won, new) in zip(reversed(given), got, strict=True):
                if won > lost + 1e-9:
                    sets[row] = sets[row] - {old} | {new}
    return sets
