"""Splits minimise what the reference says they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.forests import dense_rows, make_scratch, random_problem

from labeltree.experts.forest_training import make_examples
from labeltree.kernels.forest.arrays import L1Split, L2Split
from labeltree.kernels.forest.splits_l1 import fit_l1
from labeltree.kernels.forest.splits_l2 import fit_l2
from labeltree.reference import forest as reference

METHODS: dict[str, tuple[Callable[..., Any], Any, Callable[..., float]]] = {
    "l1": (fit_l1, lambda cost: L1Split(cost, 0.7, 1e-6, 100), reference.l1_objective),
    "l2": (fit_l2, lambda cost: L2Split(cost, 0.7, 1e-6, 2000, 0.0), reference.l2_objective),
}


# Of L2 higher costs than anyone needs take more passes than 32-bit numbers tell apart.
@pytest.mark.parametrize(
    ("method", "cost"), [("l1", 0.03), ("l1", 1.0), ("l1", 20.0), ("l2", 0.03), ("l2", 0.3), ("l2", 3.0)]
)
def test_no_other_weights_are_better(method: str, cost: float) -> None:
    fit, make_method, objective = METHODS[method]
    X, Y, weight, _ = random_problem(60, 12, 3, seed=5)
    random = np.random.default_rng(0)
    side = np.where(random.random(60) < 0.3, 1, -1)
    scratch = make_scratch(60, 12, 3, 1)
    scratch.side[:] = side
    members = np.arange(60, dtype=np.int32)
    n_first = int(np.count_nonzero(side > 0))
    fit(make_method(cost), make_examples(X, Y, weight, np.ones(Y.n_labels)), members, 0, 60, n_first, scratch)
    dense, costs = dense_rows(X, 0.7), reference.costs(side, weight.astype(np.float64), cost)
    found = scratch.weights.astype(np.float64)
    best = objective(found, dense, side, costs)
    assert best <= objective(np.zeros(13), dense, side, costs)  # the same where a cost is too small for any
    for other in neighbours_of(found, random):
        assert objective(other, dense, side, costs) > best * (1 - 1e-4)
    if method == "l1":
        assert np.count_nonzero(found == 0.0) >= (8 if cost == 0.03 else 0)
    assert not scratch.place.any()


def neighbours_of(weights: NDArray[np.float64], random: np.random.Generator) -> list[NDArray[np.float64]]:
    """Single weights a bit off, or 0, and all of them off by chance."""
    others = []
    for place in range(len(weights)):
        for step in (-0.05, -0.001, 0.001, 0.05, -weights[place]):
            moved = weights.copy()
            moved[place] += step
            others.append(moved)
    return others + [weights + random.normal(0.0, size, len(weights)) for size in (0.001, 0.01, 0.1)]
