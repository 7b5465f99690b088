"""A node's rows in two halves whose labels are ranked well by one order of labels each.

nDCG by alternation (Prabhu and Varma 2014): from halves by chance, the best order of labels for a half is by
the sum of what its rows gain from each, and a row goes to the half whose order suits it better. The objective
never falls. Slow twin: :func:`labeltree.reference.forest.halve`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import helper, inlined
from labeltree.kernels.random import next_random
from labeltree.kernels.sorting import MOST_RANKED, make_key, place_of, sort_keys

MOST_ROUNDS = 50
LEAST_GAIN = 1e-6  # of the objective, per row
_UNDECIDED = 1e-10


class Ranking(NamedTuple):
    """What labels are ranked with."""

    rounded: NDArray[np.float32]  # (n_labels of the node,)
    keys: NDArray[np.int64]
    buffer: NDArray[np.int64]  # (MOST_RANKED,)


@inlined
def _mark_labels(examples, members, begin, end, scratch):
    """The labels that occur, sorted; marks are left in scratch.lead."""
    label_indptr, labels, lead, found = examples.label_indptr, examples.labels, scratch.lead, scratch.labels
    n = 0
    for k in range(begin, end):
        for e in range(label_indptr[members[k]], label_indptr[members[k] + 1]):
            label = labels[e]
            if lead[label] == 0.0:
                lead[label] = 1.0
                found[n] = label
                n += 1
    return np.sort(found[:n])


@inlined
def _sum_gains(examples, members, begin, end, side, found, scores, others):
    """What the rows of each half gain from each label."""
    label_indptr, labels, gain = examples.label_indptr, examples.labels, examples.gain
    for j in range(len(found)):
        scores[found[j]], others[found[j]] = 0.0, 0.0
    for k in range(begin, end):
        row = members[k]
        weight = examples.weight[row]
        sums = scores if side[k - begin] > 0 else others
        for e in range(label_indptr[row], label_indptr[row + 1]):
            sums[labels[e]] += weight * gain[e]


@inlined
def _add_discounts(discount, scores, found, sign, work, lead):
    """The discounts of labels in the order of a half, times the sign, are added to ``lead``.

    Returns the half's part of the objective. Scores are compared as 32 bits, whose order is that of their
    bits as they are not below 0.
    """
    for j in range(len(found)):
        work.rounded[j] = scores[found[j]]
    keys, bits = work.keys, work.rounded.view(np.int32)
    for j in range(len(found)):
        keys[j] = make_key(-np.int64(bits[j]), j)
    sort_keys(keys, len(found), work.buffer)
    for j in range(len(found)):
        lead[found[place_of(keys[j])]] += sign * discount[j]
    total = 0.0
    for j in range(len(found)):
        total += discount[j] * scores[found[place_of(keys[j])]]
    return total


@inlined
def _choose_sides(examples, members, begin, end, lead, side):
    """Each row goes where its labels stand before; how many are on the first side, 0 if none can tell."""
    label_indptr, labels, gain = examples.label_indptr, examples.labels, examples.gain
    n_first, n_decided = 0, 0
    for k in range(begin, end):
        row = members[k]
        ahead = 0.0
        for e in range(label_indptr[row], label_indptr[row + 1]):
            ahead += lead[labels[e]] * gain[e]
        if ahead > _UNDECIDED:
            side[k - begin] = 1
        elif ahead < -_UNDECIDED:
            side[k - begin] = -1
        n_first += side[k - begin] > 0
        n_decided += abs(ahead) > _UNDECIDED
    return n_first if n_decided > 0 else 0


@helper
def halve(examples, members, begin, end, scratch):
    """Fill ``scratch.side`` for the rows of a node; how many are on the first side.

    0 where there is nothing to tell rows apart by, as all have the same labels.
    """
    side, lead, scores, others = scratch.side, scratch.lead, scratch.scores, scratch.others
    for k in range(end - begin):
        side[k] = 1 if next_random(scratch.random, 2) == 1 else -1
    found = _mark_labels(examples, members, begin, end, scratch)
    n = len(found)
    work = Ranking(np.empty(n, np.float32), np.empty(n, np.int64), np.empty(MOST_RANKED, np.int64))
    before, n_first = -1.0, np.int64(0)
    for _ in range(MOST_ROUNDS):
        _sum_gains(examples, members, begin, end, side, found, scores, others)
        for j in range(len(found)):
            lead[found[j]] = 0.0
        objective = _add_discounts(examples.discount, scores, found, 1.0, work, lead)
        objective += _add_discounts(examples.discount, others, found, -1.0, work, lead)
        n_first = np.int64(_choose_sides(examples, members, begin, end, lead, side))
        if n_first == 0 or n_first == end - begin or objective - before < LEAST_GAIN * (end - begin):
            break
        before = objective
    for j in range(len(found)):
        scores[found[j]], others[found[j]], lead[found[j]] = 0.0, 0.0, 0.0
    return n_first
