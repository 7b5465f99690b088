"""A pass of block coordinate ascent: each row in turn takes the labels that gain the most, given all others.

The utility is a mixture of measures of expected counts (Schultheis et al., NeurIPS 2023). What it gains by
one more row with a label is a line over the row's probability, which only changes with the label's own
counts: so it is kept for each label, and a row's candidates need a product and a sum each. Slow twin:
:func:`labeltree.reference.decisions.ascend`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import borrow
from labeltree.kernels.jit import inlined, kernel

# Coefficients of the utility, by place: of precision at k and by propensities, and of means over labels.
PRECISION, MACRO_F1, MACRO_PRECISION, MACRO_RECALL, BALANCED, COVERAGE, PSPRECISION = range(7)
SURE = 1.0 - 1e-7  # no label is surer than that, or its row could never be taken back


class Totals(NamedTuple):
    """Expected counts of each label, over all rows; and what follows from them."""

    hits: NDArray[np.float64]  # sum of the probabilities of rows that get it
    predicted: NDArray[np.float64]  # rows that get it
    missed: NDArray[np.float64]  # log of the probability that none of them is right
    support: NDArray[np.float64]  # sum of the probabilities of all rows
    inverse: NDArray[np.float64]  # inverse propensity, relative to the most that all rows can have
    lines: NDArray[np.float64]  # (n_labels, 2) slope and intercept of what one more row with it gains


@kernel
def ascend(indptr, ids, probabilities, order, k, n_rows, coefficients, totals, out_chosen):
    """Decide for the rows in ``order`` anew; ``totals`` follow. Returns what the utility has gained.

    ``out_chosen`` are the decisions, one for each candidate, to begin with and at the end. With k 0 a row
    gets all labels that gain something.
    """
    gained, totals = 0.0, borrow(totals)
    for label in range(len(totals.hits)):
        _draw_line(totals, coefficients, label, k, n_rows)
    gains, places = np.empty(k, np.float64), np.empty(k, np.int64)
    lines = totals.lines
    for i in order:
        begin, end = indptr[i], indptr[i + 1]
        for e in range(begin, end):
            if out_chosen[e]:
                _count(totals, coefficients, ids[e], probabilities[e], -1.0, k, n_rows)
                gained -= lines[ids[e], 0] * probabilities[e] + lines[ids[e], 1]
        if k > 0:
            _take_best(ids, probabilities, begin, end, lines, gains, places, out_chosen)
        else:
            _take_gains(ids, probabilities, begin, end, lines, out_chosen)
        for e in range(begin, end):
            if out_chosen[e]:
                gained += lines[ids[e], 0] * probabilities[e] + lines[ids[e], 1]
                _count(totals, coefficients, ids[e], probabilities[e], 1.0, k, n_rows)
    return gained


@kernel
def choose_best(indptr, values, k, out_chosen):
    """The k highest values of each row, of equal ones the first; with k 0 those of at least a half."""
    best, places = np.empty(max(k, 1), np.float64), np.empty(max(k, 1), np.int64)
    for i in range(len(indptr) - 1):
        found = 0
        for e in range(indptr[i], indptr[i + 1]):
            if k == 0:
                out_chosen[e] = values[e] >= 0.5
            else:
                out_chosen[e] = False
                found = _keep(best, places, found, values[e], e)
        for place in range(found):
            out_chosen[places[place]] = True


@inlined
def _count(totals, coefficients, label, probability, sign, k, n_rows):
    """A row with the label more, or less."""
    totals.hits[label] += sign * probability
    totals.predicted[label] += sign
    if coefficients[COVERAGE] != 0.0:
        totals.missed[label] += sign * math.log1p(-min(probability, SURE))
    _draw_line(totals, coefficients, label, k, n_rows)


@inlined
def _take_best(ids, probabilities, begin, end, lines, gains, places, out_chosen):
    """The highest gains, of equal ones the earlier."""
    found = 0
    for e in range(begin, end):
        out_chosen[e] = False
        gain = lines[ids[e], 0] * probabilities[e] + lines[ids[e], 1]
        if found < len(gains) or gain > gains[found - 1]:
            found = _keep(gains, places, found, gain, e)
    for place in range(found):
        out_chosen[places[place]] = True


@inlined
def _take_gains(ids, probabilities, begin, end, lines, out_chosen):
    """All that gain something."""
    for e in range(begin, end):
        out_chosen[e] = lines[ids[e], 0] * probabilities[e] + lines[ids[e], 1] > 0.0


@inlined
def _keep(best, places, found, value, place):
    """Keep a value among the highest, which are in order; returns how many there are."""
    if found == len(best):
        if value <= best[found - 1]:
            return found
        found -= 1
    slot = found
    while slot > 0 and best[slot - 1] < value:
        best[slot], places[slot] = best[slot - 1], places[slot - 1]
        slot -= 1
    best[slot], places[slot] = value, place
    return found + 1


@inlined
def _draw_line(totals, coefficients, label, k, n_rows):
    """What the utility, times the number of labels, gains by one more row with the label."""
    hits, predicted, support = totals.hits[label], totals.predicted[label], totals.support[label]
    slope, intercept = coefficients[PRECISION] / max(k, 1), 0.0
    if coefficients[PSPRECISION] != 0.0:
        slope += coefficients[PSPRECISION] * totals.inverse[label]
    if coefficients[MACRO_F1] != 0.0:
        share = 2.0 * coefficients[MACRO_F1] / (predicted + 1.0 + support)
        slope += share
        intercept += share * hits - 2.0 * coefficients[MACRO_F1] * _ratio(hits, predicted + support)
    if coefficients[MACRO_PRECISION] != 0.0:
        share = coefficients[MACRO_PRECISION] / (predicted + 1.0)
        slope += share
        intercept += share * hits - coefficients[MACRO_PRECISION] * _ratio(hits, predicted)
    if coefficients[MACRO_RECALL] != 0.0:
        slope += coefficients[MACRO_RECALL] * _ratio(1.0, support)
    if coefficients[BALANCED] != 0.0:
        found, lost = _ratio(0.5, support), _ratio(0.5, n_rows - support)
        slope += coefficients[BALANCED] * (found + lost)
        intercept -= coefficients[BALANCED] * lost
    if coefficients[COVERAGE] != 0.0:
        slope += coefficients[COVERAGE] * math.exp(totals.missed[label])
    totals.lines[label, 0], totals.lines[label, 1] = slope, intercept


@inlined
def _ratio(part, whole):
    return part / whole if whole > 0.0 else 0.0
