"""What labels' probabilities are at most, and at least, told without computing them.

A probability takes half a dozen logarithms and exponentials, and most labels and nodes that a search meets
are far too improbable to be worth that. So they are computed once, for some log-probabilities of a path and
for some averages of what experts say; what lies between two is at most the one and at least the other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import inlined
from labeltree.kernels.search.answer import HIGHER, mapped
from labeltree.kernels.search.exact import probability_of

_RUNGS, _PER_LOG = 96, 8  # of log-probabilities, and how many of them for a factor of e
_CELLS = 128  # of averages, by their roots: they are close to each other where averages are low


class Ladder(NamedTuple):
    """Rung r is at the log-probability -r / 8, cell c at the average (c / 128)²."""

    average: NDArray[np.float64]  # (_RUNGS + 1,) share of the tree in the average; the last is 0
    marginal: NDArray[np.float64]  # (_RUNGS + 1,) of a label without a vote
    of_average: NDArray[np.float64]  # (_CELLS + 2,) marginals


@inlined
def make_ladder(nodes, weights):
    """Of a tree that has a share of the average of all experts."""
    ladder = Ladder(
        np.zeros(_RUNGS + 1, np.float64), np.zeros(_RUNGS + 1, np.float64), np.empty(_CELLS + 2, np.float64)
    )
    for rung in range(_RUNGS):
        log = np.float32(-rung / _PER_LOG)
        ladder.average[rung] = weights.share * probability_of(nodes, log) / weights.total
        ladder.marginal[rung] = mapped(weights.map, np.float32(ladder.average[rung]))
    for cell in range(_CELLS + 1):
        ladder.of_average[cell] = mapped(weights.map, np.float32((cell / _CELLS) ** 2))
    ladder.of_average[_CELLS + 1] = ladder.of_average[_CELLS]
    return ladder


@inlined
def rung_of(log):
    """The lowest rung that is not below a log-probability."""
    return int(min(max(-log * _PER_LOG, np.float32(0.0)), np.float32(_RUNGS - 1)))


@inlined
def most_at(ladder, rung):
    """The highest marginal of labels without a vote whose rung this is; a bit high."""
    return ladder.marginal[rung] * HIGHER


@inlined
def least_at(ladder, rung):
    """The lowest marginal of labels whose rung this is; a bit low."""
    return ladder.marginal[rung + 1] / HIGHER


@inlined
def most_with(ladder, rung, vote):
    """The highest marginal of labels whose rung this is, with the part of the average that is a vote."""
    return ladder.of_average[_cell_of(ladder.average[rung] + vote) + 1] * HIGHER


@inlined
def least_of_vote(ladder, vote):
    """The lowest marginal of labels with a vote."""
    return ladder.of_average[_cell_of(vote)] / HIGHER


@inlined
def _cell_of(average):
    return int(math.sqrt(min(average, 1.0)) * _CELLS)
