"""PPDSparse the slow way (Yen et al., KDD 2017): one node at a time, in dictionaries and float64.

A node's weights w minimise, over the examples of its parent, y = +-1::

    |w|²/2 + l1 |w without its bias| + sum over the examples of cost * loss(y w·x)
    cost = C * weight, and for positive examples * positive_weight * (1 + rare_weight / n_positives)
    loss(m) = max(0, 1 - m) (hinge, the paper's) or its square (squared-hinge, that of the authors' program)

by its dual: w = shrink(sum of dual * y * x), 0 <= dual, of the hinge also dual <= cost. An example beyond the
margin has dual 0, so it is enough to know those within. The active set begins with the positive examples and
some negatives. In turns, one pass over it moves each variable to where it is best while all others stay;
negatives whose variable is 0 leave; and of the negatives outside those come that are furthest within the
margin, at most as many as there are already.

The paper looks for these by a sample of the weights where there are many; here, as in the kernels, by all of
them: so the minimum is reached. Twin of :mod:`labeltree.kernels.sparse.active`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labeltree.config import Config
from labeltree.reference.sparse import (
    BIAS,
    NodeExample,
    Weights,
    best_dual,
    loss,
    random_numbers,
    score,
    shrink,
    shuffle,
)
from labeltree.reference.training import BITS

FIRST_PER_POSITIVE, LARGEST_PART, LEAST_ADDED = 10, 10, 100
CHILD_STEP = 0xD1B54A32D192ED03


def shrink_but_bias(total: Weights, l1: float) -> Weights:
    return shrink(total, l1) | ({BIAS: total[BIAS]} if BIAS in total else {})


def objective(kind: str, weights: Weights, examples: Sequence[NodeExample], C: float, l1: float) -> float:
    """What is minimised."""
    sizes = sum(w**2 / 2 + (l1 * abs(w) if feature != BIAS else 0.0) for feature, w in weights.items())
    margins = (example.sign * score(weights, example.features) for example in examples)
    losses = zip(examples, margins, strict=True)
    return sizes + C * sum(example.weight * loss(kind, margin) for example, margin in losses)


def violation(kind: str, dual: float, slack: float, cost: float) -> float:
    """The size of the gradient, but 0 where it points out of the bounds; ``slack`` is y w·x - 1."""
    gradient = slack + (dual / (2 * cost) if kind == "squared-hinge" else 0.0)
    is_full = kind == "hinge" and dual >= cost
    return max(0.0 if is_full else -gradient, 0.0 if dual <= 0.0 else gradient, 0.0)


class ActiveSet:
    """One node while it is trained; rows that wait do not take part yet."""

    def __init__(self, kind: str, examples: Sequence[NodeExample], C: float, l1: float) -> None:
        self.kind, self.examples, self.C, self.l1 = kind, examples, C, l1
        self.total: Weights = {}  # sum of dual * y * x, from which the L1 term takes its part
        self.dual = [0.0] * len(examples)
        self.active: list[int] = []

    @property
    def weights(self) -> Weights:
        return shrink_but_bias(self.total, self.l1)

    def begin(self, waits: Sequence[bool], random: int) -> None:
        """The first active set, or what the rows that no longer wait bring."""
        self.draw, self.waits = random_numbers(random), waits
        n, is_first = len(self.examples), not self.active
        positive = [i for i, example in enumerate(self.examples) if example.sign > 0]
        self.active += [i for i in positive if not waits[i] and i not in self.active]
        for _ in range(min(FIRST_PER_POSITIVE * len(positive), n // LARGEST_PART) if is_first else 0):
            i = self.draw(n)
            if not waits[i] and i not in self.active:
                self.active.append(i)

    def train(self, n_passes: int, tolerance: float) -> None:
        for number in range(n_passes):
            worst = self._pass()
            if number + 1 == n_passes:
                return
            self.active = [i for i in self.active if self.dual[i] > 0.0 or self.examples[i].sign > 0]
            added = self._worst_outside(tolerance)
            if not added and worst <= tolerance:
                return
            self.active += added

    def _pass(self) -> float:
        """Over the active set; the largest violation that was met."""
        worst = 0.0
        shuffle(self.active, self.draw)
        for i in self.active:
            features, sign, weight = self.examples[i]
            squares = max(sum(value**2 for value in features.values()), 1e-12)
            margin, cost, old = sign * score(self.weights, features), self.C * weight, self.dual[i]
            worst = max(worst, violation(self.kind, old, margin - 1.0, cost))
            self.dual[i] = best_dual(self.kind, old, margin, squares, cost)
            for feature, value in features.items():
                self.total[feature] = self.total.get(feature, 0.0) + sign * (self.dual[i] - old) * value
        return worst

    def _worst_outside(self, tolerance: float) -> list[int]:
        """Of equal ones the first, in the order of the rows."""
        weights, inside = self.weights, set(self.active)
        found = {
            i: float(np.float32(1.0 + score(weights, example.features)))
            for i, example in enumerate(self.examples)
            if example.sign < 0 and i not in inside and not self.waits[i]
        }
        found = {i: size for i, size in found.items() if size > tolerance}
        most = max(LEAST_ADDED, min(len(self.active), len(self.examples) // LARGEST_PART))
        return sorted(sorted(found, key=lambda i: -found[i])[:most])


def child_state(random: int, child: int) -> int:
    """Of the random numbers of a child, by those of its chunk."""
    return (random ^ (child + 1) * CHILD_STEP) & BITS


def fit_active(
    config: Config, examples: Sequence[NodeExample], C: float, random: int, waits: Sequence[bool]
) -> Weights:
    """The weights of a node; rows that wait join when the others are done."""
    solver = ActiveSet(config.loss, examples, C, config.l1)
    none = [False] * len(examples)
    for waiting in [waits, none] if any(waits) else [none]:
        solver.begin(waiting, random)
        solver.train(config.max_iterations, config.tolerance)
    return solver.weights
