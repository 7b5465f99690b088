"""Block coordinate ascent: rows take the labels that a measure of all rows gains the most by.

The utility is a mixture of measures of expected counts (Schultheis et al., NeurIPS 2023). What it gains by
one more row with a label is a line over the row's probability, which only changes with the label's own
counts: so it is kept for each label, and a row's candidates need a product and a sum each.

A block of rows at a time is decided in two steps. Threads share out the first: each row proposes, by the
counts that the block begins with. Then one goes through the rows that want another choice, and each exchanges
what still gains something by the counts as they are now: so the utility only rises, and does so in the same
way for any number of threads. Slow twin: :func:`labeltree.reference.decisions.ascend`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Matrix, borrow
from labeltree.kernels.jit import inlined, kernel

HITS, PREDICTED, MISSED, SUPPORT = range(4)  # columns of the counts
SURE = 1.0 - 1e-7  # no label is surer than that, or its row could never be taken back
LEAST_GAIN = 1e-9  # of an exchange, or rows could go to and fro between equal ones
AS_IT_IS = -1  # in the place of a row's proposal: it wants no other choice


class Candidates(NamedTuple):
    """What rows may get. Choices are numbers of entries, those of row i ``taken[i]:taken[i + 1]`` of them."""

    longest: int  # candidates of a row
    indptr: NDArray[np.int64]  # (n_rows + 1,)
    ids: NDArray[np.int32]
    probabilities: NDArray[np.float32]
    taken: NDArray[np.int64]  # (n_rows + 1,) a row gets k labels, or all of its candidates


class Weights(NamedTuple):
    """How much those measures count whose gains depend on what other rows get."""

    macro_f1: float
    macro_precision: float
    coverage: float


class Totals(NamedTuple):
    """What is expected of each label, over all rows; and what follows from it."""

    # (n_labels, 4) the sum of the probabilities of rows that get it, how many they are, the probability that
    # none of them is right, and the sum of the probabilities of all rows: together, as they are needed so.
    counts: Matrix[np.float64]
    fixed: Matrix[np.float64]  # (n_labels, 2) of the line what comes from all other measures
    lines: Matrix[np.float32]  # (n_labels, 2) slope and intercept of what one more row with it gains


class Trade(NamedTuple):
    """Room for what a row would give and get, as many of each as a row has candidates."""

    losses: NDArray[np.float64]  # what is gained, mostly below 0, by giving a choice away
    places: NDArray[np.int64]  # of these choices
    gains: NDArray[np.float64]
    entries: NDArray[np.int64]  # instead of them


@kernel
def add_labels(ids, values, out_sums):
    """The sum of each label's values, as :func:`labeltree.decisions.judged.sums_of_labels` has it.

    That takes longer, and more memory than the values do.
    """
    for e in range(len(ids)):
        out_sums[ids[e]] += np.float64(values[e])


@kernel
def choose_best(candidates, lines, first, last, out_choices):
    """Of the rows ``first`` to ``last`` the labels of the highest values, of equal ones the first.

    Where what a row gains does not depend on others, that is all.
    """
    candidates = borrow(candidates)
    values, best = np.empty(candidates.longest, np.float32), np.empty(candidates.longest, np.float32)
    for i in range(first, last):
        begin, n_candidates, start, n = _bounds(candidates, i)
        _evaluate(candidates, lines, begin, n_candidates, values)
        for c in range(n_candidates):
            if c < n or values[c] > best[n - 1]:
                _put(best, out_choices, start, min(c, n - 1), values[c], begin + c)


@kernel
def count_choices(candidates, choices, weights, totals):
    """Into totals what follows from these choices: anew, as sums that go up and down drift."""
    candidates, totals = borrow(candidates), borrow(totals)
    counts = totals.counts
    for label in range(len(counts)):
        counts[label, HITS], counts[label, PREDICTED], counts[label, MISSED] = 0.0, 0.0, 1.0
    for entry in choices:
        _count(counts, candidates.ids[entry], np.float64(candidates.probabilities[entry]), 1.0)
    for label in range(len(counts)):
        _draw_line(totals, weights, label)


@kernel
def propose(candidates, choices, first, last, weights, totals, out_proposed):
    """The best choices of the rows ``first`` to ``last``, by the totals as they are, or :data:`AS_IT_IS`."""
    candidates, totals = borrow(candidates), borrow(totals)
    ids, probabilities, longest = candidates.ids, candidates.probabilities, candidates.longest
    values, kept = np.empty(longest, np.float32), np.empty(longest, np.float32)
    best = np.empty(longest, np.float32)
    for i in range(first, last):
        begin, n_candidates, start, n = _bounds(candidates, i)
        if n == 0:
            continue
        _evaluate(candidates, totals.lines, begin, n_candidates, values)
        for c in range(n):
            entry = choices[start + c]
            kept[c] = _value_to_keep(totals, weights, ids[entry], np.float64(probabilities[entry]))
            values[entry - begin] = -np.inf
        if not _has_more(values, n_candidates, kept, n):
            out_proposed[start] = AS_IT_IS
            continue
        for c in range(n):
            _put(best, out_proposed, start, c, kept[c], choices[start + c])
        for c in range(n_candidates):
            if values[c] > best[n - 1]:
                _put(best, out_proposed, start, n - 1, values[c], begin + c)


@kernel
def exchange(candidates, proposed, first, last, weights, totals, trade, out_choices):
    """Follow the proposals of the rows ``first`` to ``last`` as far as that gains; returns how much."""
    candidates, totals = borrow(candidates), borrow(totals)
    gained, trade = 0.0, borrow(trade)
    for i in range(first, last):
        _, _, start, n = _bounds(candidates, i)
        if n > 0 and proposed[start] != AS_IT_IS:
            n = _compare(candidates, out_choices, proposed, start, n, weights, totals, trade)
            gained += _exchange_row(candidates, n, weights, totals, trade, out_choices)
    return gained


@inlined
def _compare(candidates, choices, proposed, start, n, weights, totals, trade):
    """What a row would give, the least first, and would get for it, the best first; returns how many."""
    ids, probabilities = candidates.ids, candidates.probabilities
    n_lost, n_won = 0, 0
    for place in range(start, start + n):
        entry = choices[place]
        if not _has(proposed, start, n, entry):
            value = _value_to_keep(totals, weights, ids[entry], np.float64(probabilities[entry]))
            _put(trade.losses, trade.places, 0, n_lost, -value, place)
            n_lost += 1
        entry = proposed[place]
        if not _has(choices, start, n, entry):
            value = _value_to_get(totals, weights, ids[entry], np.float64(probabilities[entry]))
            _put(trade.gains, trade.entries, 0, n_won, value, entry)
            n_won += 1
    return n_lost


@inlined
def _exchange_row(candidates, n, weights, totals, trade, out_choices):
    """Exchange as many as something is gained by; returns how much that is."""
    ids, probabilities = candidates.ids, candidates.probabilities
    n_better, gained = 0, 0.0
    while n_better < n and trade.gains[n_better] + trade.losses[n_better] > LEAST_GAIN:
        n_better += 1
    for c in range(n_better):
        gained += trade.gains[c] + trade.losses[c]
    for c in range(n_better):
        old, new = out_choices[trade.places[c]], trade.entries[c]
        out_choices[trade.places[c]] = new
        _count(totals.counts, ids[old], np.float64(probabilities[old]), -1.0)
        _count(totals.counts, ids[new], np.float64(probabilities[new]), 1.0)
        _draw_line(totals, weights, ids[old])
        _draw_line(totals, weights, ids[new])
    return gained


@inlined
def _bounds(candidates, i):
    """Where a row's candidates and its choices begin, and how many there are."""
    begin, start = candidates.indptr[i], candidates.taken[i]
    return begin, candidates.indptr[i + 1] - begin, start, candidates.taken[i + 1] - start


@inlined
def _evaluate(candidates, lines, begin, n, out_values):
    """What a row gains by each of its candidates, if it has none of them."""
    ids, probabilities = candidates.ids, candidates.probabilities
    for c in range(n):
        label = np.uint32(ids[begin + c])  # so that it needs no look whether it counts from the end
        out_values[c] = lines[label, 0] * probabilities[begin + c] + lines[label, 1]


@inlined
def _has_more(values, n_values, kept, n_kept):
    """Whether one of the values is above the least that is kept: in most rows of later passes none is."""
    least, n_more = kept[0], 0
    for c in range(1, n_kept):
        least = min(least, kept[c])
    for c in range(n_values):
        n_more += values[c] > least
    return n_more > 0


@inlined
def _put(best, out_entries, start, place, value, entry):
    """Put an entry among the best, which are in order, in place of the one at ``place``, the last."""
    while place > 0 and best[place - 1] < value:
        best[place], out_entries[start + place] = best[place - 1], out_entries[start + place - 1]
        place -= 1
    best[place], out_entries[start + place] = value, entry


@inlined
def _has(entries, start, n, entry):
    found = False
    for place in range(start, start + n):
        found |= entries[place] == entry
    return found


@inlined
def _count(counts, label, probability, sign):
    """A row with the label more, or less."""
    counts[label, HITS] += sign * probability
    counts[label, PREDICTED] += sign
    missed = 1.0 - min(probability, SURE)
    if sign > 0.0:
        counts[label, MISSED] *= missed
    else:
        counts[label, MISSED] /= missed


@inlined
def _draw_line(totals, weights, label):
    totals.lines[label, 0], totals.lines[label, 1] = _present_line(totals, weights, label)


@inlined
def _value_to_get(totals, weights, label, probability):
    """What is gained by one more row with the label."""
    slope, intercept = _present_line(totals, weights, label)
    return slope * probability + intercept


@inlined
def _value_to_keep(totals, weights, label, probability):
    """What is gained by the row that has the label, beside all others."""
    counts = totals.counts
    hits, predicted = counts[label, HITS] - probability, counts[label, PREDICTED] - 1.0
    missed = counts[label, MISSED] / (1.0 - min(probability, SURE))
    slope, intercept = _line(totals, weights, label, hits, predicted, missed)
    return slope * probability + intercept


@inlined
def _present_line(totals, weights, label):
    counts = totals.counts
    hits, predicted, missed = counts[label, HITS], counts[label, PREDICTED], counts[label, MISSED]
    return _line(totals, weights, label, hits, predicted, missed)


@inlined
def _line(totals, weights, label, hits, predicted, missed):
    """What the utility, times the number of labels, gains by one more row with the label."""
    slope, intercept, support = totals.fixed[label, 0], totals.fixed[label, 1], totals.counts[label, SUPPORT]
    if weights.macro_f1 != 0.0:
        share = 2.0 * weights.macro_f1 / (predicted + 1.0 + support)
        slope += share
        intercept += share * hits - 2.0 * weights.macro_f1 * _ratio(hits, predicted + support)
    if weights.macro_precision != 0.0:
        share = weights.macro_precision / (predicted + 1.0)
        slope += share
        intercept += share * hits - weights.macro_precision * _ratio(hits, predicted)
    slope += weights.coverage * missed
    return slope, intercept


@inlined
def _ratio(part, whole):
    return part / whole if whole > 0.0 else 0.0
