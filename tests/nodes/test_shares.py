"""How a change of scores is shared out: exactly, and as integrated gradients where these are simple."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeltree.nodes.shares import Ranges, log_mean, log_sigmoid, share_logistic, share_softmax

SCORES = st.floats(-40.0, 40.0)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=6)


def log_softmax(scores: np.ndarray, place: int) -> float:
    return float(scores[place] - np.logaddexp.reduce(scores))


@given(pairs=PAIRS)
def test_a_logistic_shares_out_all_of_the_change(pairs: list[tuple[float, float]]) -> None:
    scores, first = map(list, zip(*pairs, strict=True))
    shared = share_logistic(scores, first, Ranges([], []))
    for place, (score, at_empty) in enumerate(pairs):
        expected = log_sigmoid(score) - log_sigmoid(at_empty)
        assert shared.coefficients[place] * (score - at_empty) == pytest.approx(expected, abs=1e-9)
        assert 0.0 <= shared.coefficients[place] <= 1.0


@given(pairs=PAIRS, data=st.data())
def test_a_softmax_shares_out_all_of_the_change(
    pairs: list[tuple[float, float]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(pairs) - 1))
    scores, first = (np.array(part) for part in zip(*pairs, strict=True))
    shared = share_softmax(scores.tolist(), first.tolist(), Ranges([0], [place]))
    expected = log_softmax(scores, place) - log_softmax(first, place)
    assert shared.log_probability == [pytest.approx(log_softmax(scores, place), abs=1e-9)]
    assert float(np.array(shared.coefficients) @ (scores - first)) == pytest.approx(expected, abs=1e-8)
    assert sum(shared.coefficients) == pytest.approx(0.0, abs=1e-9)  # what moves all siblings moves nothing


def test_a_softmax_of_two_is_a_logistic() -> None:
    softmax = share_softmax([1.5, 0.0], [-0.5, 0.0], Ranges([0], [0]))
    logistic = share_logistic([1.5], [-0.5], Ranges([], []))
    assert softmax.coefficients[0] == pytest.approx(logistic.coefficients[0])


def test_a_softmax_is_near_integrated_gradients() -> None:
    scores, first = np.array([2.0, 0.5, -1.0, 0.3]), np.array([-0.2, 0.1, 0.4, -1.0])
    steps = (np.arange(2000) + 0.5) / 2000
    line = first + steps[:, None] * (scores - first)
    softmax = np.exp(line - np.logaddexp.reduce(line, axis=1)[:, None])
    expected = np.array([1.0, 0.0, 0.0, 0.0]) - softmax.mean(axis=0)
    found = share_softmax(scores.tolist(), first.tolist(), Ranges([0], [0])).coefficients
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
def test_constant_nodes_have_no_part(infinite: float) -> None:
    shared = share_logistic([infinite, 1.0], [infinite, 0.0], Ranges([], []))
    assert shared.coefficients[0] == 0.0
    assert shared.log_probability[0] == shared.at_empty[0] == (0.0 if infinite > 0 else -math.inf)
    alone = share_softmax([infinite], [infinite], Ranges([0], [0]))
    assert alone.coefficients == [0.0]
    beside = share_softmax([1.0, -math.inf], [0.0, -math.inf], Ranges([0], [0]))
    assert beside.log_probability == [0.0]
    assert beside.coefficients == [0.0, 0.0]


def test_logarithmic_means_lie_between() -> None:
    a, b = np.log([1.0, 2.0, 1e-300, 5.0]), np.log([2.0, 2.0, 1.0, 5.0 + 1e-9])
    means = log_mean(a, b)
    assert means[0] == pytest.approx(1.0 / math.log(2.0))
    assert means[1] == pytest.approx(2.0)
    assert 0.0 < means[2] < 0.01
    assert means[3] == pytest.approx(5.0)
    assert log_mean(np.array([-np.inf]), np.array([-np.inf])) == [0.0]
