"""A forest's jumps on the way from the empty row: each is due to what moved the score of its node."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.experts.forest import ForestExpert
from labeltree.kernels.forest.arrays import Trees

N_COLUMNS, N_LABELS = 4, 2


def forest(biases: tuple[float, float], weights: tuple[list[int], list[int]]) -> ForestExpert:
    """One tree: two nodes, one below the other, and three leaves; the last leaf has label 1, the others 0."""
    lists = [(weights[0], range(4)), (weights[1], range(4)), ([127], [0]), ([127], [0]), ([127], [1])]
    first_child = [1, 0, 3, 0, 0]  # node 0: leaf 1, node 2; node 2: leaves 3 and 4
    lists = [lists[0], lists[2], lists[1], lists[3], lists[4]]
    start = np.cumsum([0, *(len(amount) for amount, _ in lists)])
    bias = np.array([biases[0], 1.0, biases[1], 1.0, 1.0], np.float32)
    return ForestExpert(
        Trees(
            np.zeros(1, np.int32), np.array(first_child, np.int32), bias,
            np.full(5, 1 / 127, np.float32), start.astype(np.int64),
            np.concatenate([list(ids) for _, ids in lists]).astype(np.uint16), np.empty(0, np.uint16),
            np.concatenate([amount for amount, _ in lists]).astype(np.int8),
        ), N_LABELS, N_COLUMNS,
    )  # fmt: skip


ROW = np.array([0, 3]), np.array([0, 1, 2], np.int32), np.array([0.6, 0.0, 0.8], np.float32)


def test_a_jump_is_due_to_what_moved_the_score() -> None:
    """The empty row goes left at once; the row goes right twice, first because of columns 0 and 2."""
    expert = forest((0.5, -1.0), ([-127, 0, -127, 0], [0, 0, 0, 0]))
    label = expert.explain(ROW, [1])[0]
    assert (label.probability, label.at_empty) == (pytest.approx(1.0), 0.0)
    np.testing.assert_allclose(label.shares, [0.6 / 1.4, 0.0, 0.8 / 1.4])
    other = expert.explain(ROW, [0])[0]
    np.testing.assert_allclose(other.shares, [-0.6 / 1.4, 0.0, -0.8 / 1.4])
    assert label.leaves is not None
    assert (label.leaves.n_trees, label.leaves.n_with_label) == (1, 1)


def test_two_jumps_that_undo_each_other() -> None:
    """It goes right because of column 0, and left again, lower down, because of column 2: nothing remains."""
    expert = forest((0.1, -0.4), ([-127, 0, 0, 0], [0, 0, 127, 0]))
    label = expert.explain(ROW, [1])[0]
    assert label.probability == label.at_empty == 0.0
    np.testing.assert_allclose(label.shares, [1.0, 0.0, -1.0])


def test_an_empty_row_moves_nothing() -> None:
    expert = forest((0.5, -1.0), ([-127, 0, -127, 0], [0, 0, 0, 0]))
    nothing = np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    label = expert.explain(nothing, [0])[0]
    assert label.probability == label.at_empty == pytest.approx(1.0)
    assert len(label.shares) == 0
