"""What an example changes in the weights of siblings, by the kind of loss and of training.

With a loss of its own each child is solved as if it were alone: the vector unit only does them side by side.
With a softmax they are solved together.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.arithmetic import apply_softmax, fast_exp
from labeltree.kernels.jit import generic, inlined
from labeltree.kernels.sparse.arrays import (
    LogLoss,
    OnlineLogLoss,
    OnlineSoftmax,
    SoftmaxLoss,
    SquaredHinge,
)

_NEWTON_STEPS = 2
_LEAST_SCORE = np.float32(-88.0)  # relative to the best one's: where fast_exp is exactly 0


@generic
def learn_example(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """Fill what an example adds to each child's weights, times its values, given its scores; and its duals.

    ``sign`` is +-1 for each child; what its positive examples count besides their weight is in
    ``positive_weight``. Leaves in ``scores`` what the sizes of the changes are to be compared with: the dual
    variables, or online the changes themselves. Returns what the weights are multiplied with.
    """


@learn_example.of(SquaredHinge)
def _learn_hinge(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """Coordinate descent (Hsieh et al. 2008): the variable that is best while all others stay."""
    negative = np.float32(0.5) / (method.cost * weight)
    for c in range(len(scores)):
        y = sign[c]
        softness = negative / positive_weight[c] if y > 0.0 else negative
        old = dual[i, c]
        gradient = y * scores[c] - np.float32(1.0) + old * softness
        new = max(np.float32(0.0), old - gradient / (squares + softness))
        dual[i, c] = new
        out_change[c] = y * (new - old)
        scores[c] = new
    return np.float32(1.0)


@learn_example.of(LogLoss)
def _learn_log(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """As for the hinge; a variable, between 0 and the cost, is kept as its logit t.

    The best one solves squares * (cost * sigmoid(t) - old) + y * score + t = 0. The left side is steeper than
    1 and bends at t = 0 only, so Newton's steps from 0's side of the root never leave it.
    """
    negative = method.cost * weight
    one, limit = np.float32(1.0), np.float32(87.0)
    for c in range(len(scores)):
        y = sign[c]
        cost = negative * positive_weight[c] if y > 0.0 else negative
        margin = y * scores[c]
        t = dual[i, c]
        old = cost / (one + fast_exp(-t))
        at_zero = squares * (np.float32(0.5) * cost - old) + margin
        low = -limit if at_zero > 0.0 else np.float32(0.0)
        high = np.float32(0.0) if at_zero > 0.0 else limit
        t = min(max(t, low), high)
        new = cost / (one + fast_exp(-t))
        for _ in range(_NEWTON_STEPS):
            slope = one + squares * new * (one - new / cost)
            t -= (squares * (new - old) + margin + t) / slope
            t = min(max(t, low), high)
            new = cost / (one + fast_exp(-t))
        dual[i, c] = t
        out_change[c] = y * (new - old)
        scores[c] = new
    return one


@learn_example.of(OnlineLogLoss)
def _learn_online(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    one, limit = np.float32(1.0), np.float32(87.0)
    rate = method.eta * np.float32(step) ** -method.power
    negative = rate * weight
    for c in range(len(scores)):
        y = sign[c]
        margin = min(max(y * scores[c], -limit), limit)
        size = (negative * positive_weight[c] if y > 0.0 else negative) / (one + fast_exp(margin))
        out_change[c] = y * size
        scores[c] = size
    return max(np.float32(0.0), one - rate * method.l2)


@inlined
def _apply_softmax(scores, is_child):
    """The probability of each child, 0 where ``is_child`` is: columns that only fill up a vector."""
    for c in range(len(scores)):
        if not is_child[c] > 0.0:
            scores[c] = -np.inf
    apply_softmax(scores, len(scores), _LEAST_SCORE)


@learn_example.of(SoftmaxLoss)
def _learn_softmax(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    """An example's variables are probabilities, at first those of its label; they go towards the softmax.

    The step (Shalev-Shwartz and Zhang 2013) is one that the dual objective never falls by.
    """
    cost = method.cost * weight
    part = np.float32(1.0) / (np.float32(1.0) + np.float32(0.5) * cost * squares)
    _apply_softmax(scores, positive_weight)
    for c in range(len(scores)):
        old = dual[i, c]
        new = old + part * (scores[c] - old)
        dual[i, c] = new
        out_change[c] = cost * (old - new)
        scores[c] = cost * (max(sign[c], np.float32(0.0)) - new)
    return np.float32(1.0)


@learn_example.of(OnlineSoftmax)
def _learn_online_softmax(method, step, weight, positive_weight, squares, sign, scores, dual, i, out_change):
    rate = method.eta * np.float32(step) ** -method.power
    _apply_softmax(scores, positive_weight)
    for c in range(len(scores)):
        out_change[c] = rate * weight * (max(sign[c], np.float32(0.0)) - scores[c])
        scores[c] = out_change[c]
    return max(np.float32(0.0), np.float32(1.0) - rate * method.l2)
