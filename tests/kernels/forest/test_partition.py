"""Halves of rows are those of the reference, and rank better with each round."""

from __future__ import annotations

import numpy as np
import pytest
from support.forests import make_scratch, random_problem

from labeltree.experts.forest_training import make_examples
from labeltree.kernels.forest.partition import halve
from labeltree.kernels.random import next_random
from labeltree.reference import forest as reference

SEED = 17


def first_sides(n: int) -> np.ndarray:
    state = np.array([SEED], np.uint64)
    return np.array([1 if next_random(state, 2) == 1 else -1 for _ in range(n)])


@pytest.mark.parametrize("n_labels", [1, 3, 30])
@pytest.mark.parametrize("n_rows", [2, 20, 200])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_it_is_the_references(n_rows: int, n_labels: int, is_weighted: bool) -> None:
    """Also where some labels count more than others."""
    X, Y, weight, dense = random_problem(n_rows, 5, n_labels, seed=n_rows + n_labels)
    scratch = make_scratch(n_rows, 5, n_labels, SEED)
    members = np.arange(n_rows, dtype=np.int32)
    gains = (
        np.random.default_rng(n_rows).choice([1.0, 2.5, 7.0], n_labels) if is_weighted else np.ones(n_labels)
    )
    n_first = halve(make_examples(X, Y, weight, gains), members, 0, n_rows, scratch)
    expected = reference.halve(dense * gains, weight.astype(np.float64), first_sides(n_rows))
    if len(set(expected.side.tolist())) == 2:
        assert n_first == np.count_nonzero(expected.side > 0)
        assert scratch.side.tolist() == expected.side.tolist()
    else:
        assert n_first in (0, n_rows)
    assert np.all(np.diff(expected.objectives) > -1e-9)
    for array in (scratch.scores, scratch.others, scratch.lead):  # as it was, for the next node
        assert not array.any()


def test_only_the_nodes_own_rows_count() -> None:
    X, Y, weight, dense = random_problem(90, 5, 12, seed=4)
    scratch = make_scratch(90, 5, 12, SEED)
    members = np.random.default_rng(1).permutation(90).astype(np.int32)
    halve(make_examples(X, Y, weight, np.ones(12)), members, 30, 80, scratch)
    part = members[30:80]
    expected = reference.halve(dense[part], weight[part].astype(np.float64), first_sides(50))
    assert scratch.side[:50].tolist() == expected.side.tolist()
