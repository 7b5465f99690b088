"""The arithmetic of links is accurate for every score, and bodies are chosen by the type of a link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from labeltree.kernels.jit import kernel
from labeltree.kernels.links import (
    Logistic,
    NormalizedLogistic,
    Softmax,
    apply_link,
    apply_link_alone,
    count_learned,
    judge_siblings,
)
from labeltree.reference import search as reference
from labeltree.reference import training

NOTHING = np.empty(0, np.int32)


class Nameless(NamedTuple):
    """A link without bodies."""


@kernel
def linked(link, scores, n):
    apply_link(link, scores, n)


@kernel
def linked_alone(link, scores):
    apply_link_alone(link, scores)


@kernel
def judged(link, scores, first, n, positive):
    return judge_siblings(link, scores, first, n, positive, 0, len(positive))


@kernel
def learned(link, n):
    return count_learned(link, n)


def float_range() -> NDArray[np.float32]:
    small = np.linspace(-120.0, 120.0, 24_001)
    large = np.array([1e3, 1e10, 3.4e38, np.inf, 1e-10, 1e-40, 0.0])
    return np.concatenate([small, large, -large]).astype(np.float32)


def test_log_sigmoid_is_accurate_for_every_score() -> None:
    scores = float_range()
    found = scores.copy()
    linked(Logistic(), found, len(found))
    expected = np.array([reference.log_sigmoid(float(score)) for score in scores])
    np.testing.assert_allclose(found, expected, rtol=4e-7, atol=2e-38)
    assert found[scores == np.inf] == 0.0
    assert found[scores == -np.inf] == -np.inf
    assert (found <= 0.0).all()


@pytest.mark.parametrize("link", [Logistic(), NormalizedLogistic(), Softmax()], ids=repr)
def test_a_node_alone_has_a_logistic(link: NamedTuple) -> None:
    for score in (-np.inf, -3.0, 0.5, np.inf):
        found = np.array([score, 7.0], np.float32)
        linked_alone(link, found)
        np.testing.assert_allclose(found, [reference.log_sigmoid(score), 7.0], rtol=1e-6)


def test_normalized_siblings_sum_to_at_least_one() -> None:
    for scores in ([-2.0, -3.0, -1.0], [2.0, 3.0, 1.0]):
        found = np.array(scores, np.float32)
        linked(NormalizedLogistic(), found, 3)
        plain = 1.0 / (1.0 + np.exp(-np.array(scores)))
        np.testing.assert_allclose(np.exp(found), plain / min(1.0, plain.sum()), rtol=1e-6)


def test_the_sigmoid_of_training_is_accurate_for_every_score() -> None:
    scores = float_range()
    found = scores.copy()
    judged(Logistic(), found, 0, len(found), NOTHING)
    with np.errstate(over="ignore"):
        expected = 1.0 / (1.0 + np.exp(-scores.astype(np.float64)))
    np.testing.assert_allclose(found, expected, rtol=4e-7, atol=1e-13)
    assert found.max() == 1.0
    assert found.min() >= 0.0


@pytest.mark.parametrize("n", [2, 3, 70])
def test_derivatives_and_losses(n: int) -> None:
    """Of a logistic for each sibling, and of a softmax, of which a pair has one logistic."""
    scores = np.random.default_rng(n).normal(0.0, 2.0, n).astype(np.float32)
    each = 1.0 / (1.0 + np.exp(-scores.astype(np.float64)))
    has = np.arange(n) % 2 == 1
    found = scores.copy()
    loss = judged(Logistic(), found, 5, n, np.flatnonzero(has).astype(np.int32) + 5)
    np.testing.assert_allclose(found, each - has, atol=1e-6)
    assert loss == pytest.approx(-np.log(np.where(has, each, 1.0 - each)).sum(), rel=1e-4)
    for positive in range(n):
        scores[1] = 0.0 if n == 2 else scores[1]
        all_ = np.array(list(training.softmax(dict(enumerate(scores.astype(np.float64).tolist()))).values()))
        found, n_learned = scores.copy(), learned(Softmax(), n)
        loss = judged(Softmax(), found, 5, n_learned, np.array([5 + positive], np.int32))
        np.testing.assert_allclose(
            found[:n_learned], (all_ - (np.arange(n) == positive))[:n_learned], atol=1e-6
        )
        assert loss == pytest.approx(-np.log(all_[positive]), rel=1e-4)


def test_of_two_siblings_a_softmax_learns_one_score() -> None:
    assert [learned(Softmax(), n) for n in (1, 2, 3)] == [1, 1, 3]
    assert [learned(Logistic(), n) for n in (1, 2, 3)] == [1, 2, 3]


def test_a_missing_body_is_named() -> None:
    with pytest.raises(TypeError, match=r"apply_link has no body for Nameless: add one with @apply_link\.of"):
        linked(Nameless(), np.zeros(1, np.float32), 1)
