"""Votes are ranked as the reference says, by what labels count and how near their mean rows are."""

from __future__ import annotations

import numpy as np
import pytest
from support.forests import N_COLUMNS, N_LABELS, N_ROWS, NONE, POOL, ROWS, random_problem, row_of

from labeltree.config import Config, make_config
from labeltree.data.rows import TrainingRows
from labeltree.experts.forest import SHARPNESS, ForestExpert
from labeltree.experts.forest_tail import label_gains
from labeltree.experts.forest_training import Grower
from labeltree.kernels.forest.arrays import HALF_BITS, Tail
from labeltree.metrics.measures import propensities
from labeltree.reference import forest as reference

X, Y, WEIGHT, DENSE = random_problem(N_ROWS, N_COLUMNS, N_LABELS, seed=9)


def forest_of(config: Config, without: np.ndarray = NONE) -> ForestExpert:
    grow = Grower(TrainingRows(X, Y, WEIGHT), config, N_COLUMNS).without(without)
    return grow.expert([grow.grow(number) for number in range(3)], POOL)


def mean_rows(without: np.ndarray = NONE) -> list[dict[int, float]]:
    """Of length 1, as bytes have them."""
    rows = np.zeros((N_ROWS, N_COLUMNS))
    for i in range(N_ROWS):
        for column, value in row_of(X, i).items():
            rows[i, column] = value
    weight = WEIGHT.copy()
    weight[without] = 0.0
    found = []
    for label in range(N_LABELS):
        total = (DENSE[:, label] * weight) @ rows
        total /= np.sqrt(total @ total)
        scale = np.abs(total).max() / 127
        found.append({column: float(scale * np.rint(value / scale)) for column, value in enumerate(total)})
    return found


def decoded(tail: Tail) -> list[dict[int, float]]:
    ids = tail.low.astype(int) | (tail.high.astype(int) << HALF_BITS if len(tail.high) else 0)
    parts = [slice(*tail.start[label : label + 2]) for label in range(N_LABELS)]
    return [
        dict(zip(ids[part].tolist(), (tail.scale[label] * tail.amount[part]).tolist(), strict=True))
        for label, part in enumerate(parts)
    ]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("by_propensity", [True, False])
def test_it_is_the_references(share: float, by_propensity: bool) -> None:
    given = {"trees": 0, "forest": 3, "forest_propensity": by_propensity, "forest_tail": share}
    config = make_config(given)
    expert = forest_of(config)
    if not share and not by_propensity:
        assert expert.tail is None
        return
    tail = expert.tail
    assert tail is not None
    plain = ForestExpert(expert.forest, N_LABELS, N_COLUMNS).nonzero(ROWS[:3])
    lengths, ids, ranked = expert.nonzero(ROWS[:3])
    assert np.array_equal(ids, plain[1])
    ends, means = np.cumsum(lengths), decoded(tail)
    for i in range(N_ROWS):
        part = slice(ends[i] - lengths[i], ends[i])
        votes = dict(zip(ids[part].tolist(), plain[2][part].tolist(), strict=True))
        expected = reference.rank(votes, row_of(ROWS, i), tail.weight.tolist(), means, share, SHARPNESS)
        np.testing.assert_allclose(ranked[part], list(expected.values()), rtol=1e-4)


@pytest.mark.parametrize("without", [NONE, np.arange(30)])
def test_mean_rows_are_those_of_rows_by_weight(without: np.ndarray) -> None:
    tail = forest_of(make_config({"trees": 0, "forest": 3, "forest_tail": 0.2}), without).tail
    assert tail is not None
    assert tail.weight.tolist() == [1.0] * N_LABELS
    for found, expected in zip(decoded(tail), mean_rows(without), strict=True):
        largest = max(map(abs, expected.values()))
        for column, value in expected.items():
            assert found.get(column, 0.0) == pytest.approx(value, abs=1.01 * largest / 127)


def test_labels_count_by_their_inverse_propensity() -> None:
    config = make_config({"trees": 0, "forest": 3, "forest_propensity": True})
    gains = label_gains(Y, WEIGHT, config)
    counts = WEIGHT.astype(np.float64) @ DENSE
    np.testing.assert_allclose(gains, 1.0 / propensities(counts, WEIGHT.sum()), rtol=1e-6)
    tail = forest_of(config).tail
    assert tail is not None
    np.testing.assert_allclose(tail.weight, gains / gains.max(), rtol=1e-6)
    assert not len(tail.amount)
    assert np.array_equal(label_gains(Y, WEIGHT, make_config({"forest": 3})), np.ones(N_LABELS))


def test_what_labels_count_does_not_know_rows_that_are_left_out() -> None:
    """They judge the trees: a label that they alone have must count as one without rows."""
    config = make_config({"trees": 0, "forest": 3, "forest_propensity": True})
    left_out = np.arange(30)
    grow, weight = Grower(TrainingRows(X, Y, WEIGHT), config, N_COLUMNS), WEIGHT.copy()
    weight[left_out] = 0.0
    without = grow.without(left_out)
    np.testing.assert_array_equal(without.gains, label_gains(Y, weight, config))
    assert not np.array_equal(without.gains, grow.gains)
