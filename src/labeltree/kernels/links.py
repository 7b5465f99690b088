"""Links: how the scores of siblings become probabilities, as kernels compute it.

A link is a NamedTuple, whose type chooses the body of each helper below when a kernel is compiled. One more
link is one more type with a body for each of the six: a search calls :func:`apply_link`,
:func:`apply_link_alone` and :func:`needs_siblings`, training of dense nodes :func:`count_learned` and
:func:`judge_siblings`, the learned tree :func:`weigh_children`. A type that only searches use, for normalised
probabilities, has the first three. The table of links (:mod:`labeltree.nodes`) names a link.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from labeltree.kernels.arithmetic import apply_softmax, fast_exp
from labeltree.kernels.jit import generic, inlined

_LEAST_LIKELIHOOD = 1e-7  # of a node, so that one example cannot drown the sum of losses
# Beyond this score a probability is 0 or 1 for every purpose, but what it is multiplied with would be so
# small (denormal) that each operation takes a hundred times as long.
_FAR = np.float32(30.0)


class Logistic(NamedTuple):
    """A logistic for each node."""


class NormalizedLogistic(NamedTuple):
    """A logistic for each node, and siblings whose probabilities sum to less than 1 are rescaled."""


class Softmax(NamedTuple):
    """A softmax over siblings. Of two the second's score is 0, so that they share one logistic."""


@generic
def apply_link(link, scores, n):
    """``scores[:n]``, those of all children of a node, become log P(child | parent)."""


@generic
def apply_link_alone(link, scores):
    """``scores[0]`` becomes the log-probability of a node whose siblings are not asked: the root has none."""


@generic
def needs_siblings(link):
    """Whether a node's probability depends on its siblings' scores; the root's never does."""


@generic
def count_learned(link, n_children):
    """How many of so many siblings, the first ones, have a score to learn."""


@generic
def judge_siblings(link, scores, first, n_learned, positive, begin, end):
    """``scores``, those of the nodes ``first ...``, become d loss / d score for one example: its loss.

    ``positive[begin:end]`` are the siblings that the example has. For training, of dense nodes.
    """


@generic
def weigh_children(link, scores, n):
    """``scores[:n]`` of siblings become what their probabilities are the multiples of; returns the divisor.

    For the learned tree. In double precision, unlike :func:`apply_link`: where labels go is decided by small
    differences of means, and the exponentials of that one's results would send some of them elsewhere.
    """


@apply_link.of(Logistic)
def _apply_log_sigmoid(link, scores, n):
    """``scores[:n] = -log(1 + exp(-scores[:n]))`` to 3e-7, in plain arithmetic so that it vectorises.

    = min(s, 0) - log1p(z) with z = exp(-|s|), and log1p(z) = 2 artanh(t) with t = z / (2 + z) <= 1/3, by its
    series.
    """
    for c in range(n):
        # -88: where fast_exp is exactly 0, so that a certain node costs nothing
        z = fast_exp(max(-abs(scores[c]), np.float32(-88.0)))
        t = z / (np.float32(2.0) + z)
        u = t * t
        q = np.float32(1.0 / 13.0)
        q = q * u + np.float32(1.0 / 11.0)
        q = q * u + np.float32(1.0 / 9.0)
        q = q * u + np.float32(1.0 / 7.0)
        q = q * u + np.float32(1.0 / 5.0)
        q = q * u + np.float32(1.0 / 3.0)
        q = q * u + np.float32(1.0)
        scores[c] = min(scores[c], np.float32(0.0)) - np.float32(2.0) * t * q


@inlined
def _log_sum(logs, n):
    """log(sum of exp(logs[:n])), relative to the largest: all may be too small for a float32."""
    largest = np.float32(-np.inf)
    for c in range(n):
        largest = max(largest, logs[c])
    if largest == -np.inf:
        return largest
    total = np.float32(0.0)
    for c in range(n):
        total += math.exp(logs[c] - largest)
    return largest + math.log(total)


@apply_link.of(NormalizedLogistic)
def _apply_normalized(link, scores, n):
    _apply_log_sigmoid(link, scores, n)
    shift = _log_sum(scores, n)
    if -np.inf < shift < 0.0:
        for c in range(n):
            scores[c] -= shift


@apply_link.of(Softmax)
def _apply_log_softmax(link, scores, n):
    """``scores[:n] -= log(sum of exp(scores[:n]))``, unless all are -inf.

    Not the logarithm of :func:`.arithmetic.apply_softmax`: the largest one's is -log1p(the others' sum),
    precise however near 0 it is, and no other one is cut off.
    """
    best = 0
    for c in range(1, n):
        if scores[c] > scores[best]:
            best = c
    largest = scores[best]
    if largest == -np.inf:
        return
    for c in range(n):
        scores[c] -= largest
    others = 0.0
    for c in range(n):
        if c != best:
            others += math.exp(scores[c])
    shift = np.float32(math.log1p(others))
    for c in range(n):
        scores[c] -= shift


@apply_link_alone.of(Logistic, NormalizedLogistic, Softmax)
def _apply_alone(link, scores):
    """By a logistic; with a softmax the root is certain, as its score is infinite."""
    _apply_log_sigmoid(link, scores, np.int32(1))


@needs_siblings.of(Logistic)
def _needs_none(link):
    return False


@needs_siblings.of(NormalizedLogistic, Softmax)
def _needs_all(link):
    return True


@count_learned.of(Logistic)
def _count_logistic(link, n_children):
    return n_children


@count_learned.of(Softmax)
def _count_softmax(link, n_children):
    return 1 if n_children == 2 else n_children


@inlined
def _sigmoid(score):
    x = min(max(-score, -_FAR), _FAR)
    return np.float32(1.0) / (np.float32(1.0) + fast_exp(x))


@judge_siblings.of(Logistic)
def _judge_logistic(link, scores, first, n_learned, positive, begin, end):
    for c in range(n_learned):
        scores[c] = _sigmoid(scores[c])
    for place in range(begin, end):
        scores[positive[place] - first] -= np.float32(1.0)
    loss = 0.0
    likelihood = 1.0
    for c in range(n_learned):
        likelihood *= max(1.0 - abs(scores[c]), _LEAST_LIKELIHOOD)
        if likelihood < 1e-200:  # one logarithm for all siblings, unless the product gets too small
            loss -= math.log(likelihood)
            likelihood = 1.0
    return loss - math.log(likelihood)


@judge_siblings.of(Softmax)
def _judge_softmax(link, scores, first, n_learned, positive, begin, end):
    """The example has exactly one of the siblings."""
    c = positive[begin] - first
    if n_learned == 1:  # the first of two
        gradient = _sigmoid(scores[0])
        if c == 0:
            gradient -= np.float32(1.0)
        scores[0] = gradient
        return -math.log(max(1.0 - abs(gradient), _LEAST_LIKELIHOOD))
    apply_softmax(scores, n_learned, -_FAR)
    scores[c] -= np.float32(1.0)
    return -math.log(max(1.0 - abs(scores[c]), _LEAST_LIKELIHOOD))


@inlined
def _exp(score):
    return math.exp(min(max(np.float64(score), -80.0), 80.0))


@weigh_children.of(Logistic)
def _weigh_logistic(link, scores, n):
    for c in range(n):
        odds = _exp(scores[c])
        scores[c] = odds / (1.0 + odds)
    return 1.0


@weigh_children.of(Softmax)
def _weigh_softmax(link, scores, n):
    largest = np.float64(scores[0])
    for c in range(1, n):
        largest = max(largest, np.float64(scores[c]))
    for c in range(n):
        scores[c] = _exp(scores[c] - largest)
    total = 0.0
    for c in range(n):
        total += scores[c]
    return total
