"""A pass of block coordinate ascent: each row in turn takes the labels that gain the most, given all others.

The utility is a mixture of measures of expected counts (Schultheis et al., NeurIPS 2023). Slow twin:
:func:`labeltree.reference.decisions.ascend`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import inlined, kernel

# Coefficients of the utility, by place: of precision at k, and of means over labels.
PRECISION, MACRO_F1, MACRO_PRECISION, MACRO_RECALL, BALANCED, COVERAGE = range(6)
SURE = 1.0 - 1e-7  # no label is surer than that, or its row could never be taken back


class Totals(NamedTuple):
    """Expected counts of each label, over all rows."""

    hits: NDArray[np.float64]  # sum of the probabilities of rows that get it
    predicted: NDArray[np.float64]  # rows that get it
    missed: NDArray[np.float64]  # log of the probability that none of them is right
    support: NDArray[np.float64]  # sum of the probabilities of all rows


@kernel
def ascend(indptr, ids, probabilities, order, k, n_rows, coefficients, totals, out_chosen):
    """Decide for the rows in ``order`` anew; ``totals`` follow. Returns how many decisions changed.

    ``out_chosen`` are the decisions, one for each candidate, to begin with and at the end. With k 0 a row
    gets all labels that gain something.
    """
    n_changed, n_most = 0, 0
    for i in range(len(indptr) - 1):
        n_most = max(n_most, indptr[i + 1] - indptr[i])
    gains = np.empty(n_most, np.float64)
    taken = np.empty(n_most, np.bool_)
    for i in order:
        begin, end = indptr[i], indptr[i + 1]
        for e in range(begin, end):
            if out_chosen[e]:
                _count(totals, ids[e], probabilities[e], -1.0)
        for e in range(begin, end):
            gains[e - begin] = _gain(totals, coefficients, ids[e], probabilities[e], k, n_rows)
        _take_best(gains, end - begin, k, taken)
        for e in range(begin, end):
            n_changed += out_chosen[e] != taken[e - begin]
            out_chosen[e] = taken[e - begin]
            if out_chosen[e]:
                _count(totals, ids[e], probabilities[e], 1.0)
    return n_changed


@inlined
def _count(totals, label, probability, sign):
    totals.hits[label] += sign * probability
    totals.predicted[label] += sign
    totals.missed[label] += sign * math.log1p(-min(probability, SURE))


@inlined
def _take_best(gains, n, k, out_taken):
    """The k highest gains, of equal ones the earlier; with k 0 all above 0."""
    for e in range(n):
        out_taken[e] = k == 0 and gains[e] > 0.0
    for _ in range(min(k, n)):
        best = -1
        for e in range(n):
            if not out_taken[e] and (best < 0 or gains[e] > gains[best]):
                best = e
        out_taken[best] = True


@inlined
def _gain(totals, coefficients, label, probability, k, n_rows):
    """What the utility, times the number of labels, gains by one more row with the label."""
    hits, predicted, support = totals.hits[label], totals.predicted[label], totals.support[label]
    more = hits + probability
    gain = coefficients[PRECISION] * probability / max(k, 1)
    if coefficients[MACRO_F1] != 0.0:
        gain += (
            coefficients[MACRO_F1]
            * 2
            * (more / (predicted + 1 + support) - _ratio(hits, predicted + support))
        )
    if coefficients[MACRO_PRECISION] != 0.0:
        gain += coefficients[MACRO_PRECISION] * (more / (predicted + 1) - _ratio(hits, predicted))
    if coefficients[MACRO_RECALL] != 0.0:
        gain += coefficients[MACRO_RECALL] * _ratio(probability, support)
    if coefficients[BALANCED] != 0.0:
        found, lost = _ratio(probability, support), _ratio(1.0 - probability, n_rows - support)
        gain += coefficients[BALANCED] * 0.5 * (found - lost)
    if coefficients[COVERAGE] != 0.0:
        gain += coefficients[COVERAGE] * probability * math.exp(totals.missed[label])
    return gain


@inlined
def _ratio(part, whole):
    return part / whole if whole > 0.0 else 0.0
