"""How far groups of labels are believed beside the labels themselves: chosen by held-out rows.

A path's probability is a product over its nodes, which are trained by themselves, and one meaning is assumed
for the scores of all. A group that is ruled out takes its labels with it: how far to trust that depends on
the data. A label's own words often say more than those of its group, above all where labels are rare; among
tags that come in dozens the group says more. So a number is added to the log-odds of all groups. Unlike the
map of :mod:`.calibration` it changes the order of labels: the one that brings true labels to the front is
taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.calibration import LABELS_PER_ROW
from labeltree.experts.combination import equal_weights
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Expert
from labeltree.experts.held_out import HeldOut
from labeltree.parallel import Pool
from labeltree.query import make_query

# Likelier groups are searched more: at 1 a search of acl-authors' 108,000 labels takes nearly twice as long,
# for 0.9 P@3. More was never more accurate.
SUMMANDS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_UNCHANGED = SUMMANDS.index(0.0)


class Chosen(NamedTuple):
    """What to add to the log-odds of groups, and which labels the held-out rows then get."""

    summand: float
    ids: NDArray[np.int32]  # (n_rows, k)
    probabilities: NDArray[np.float32]


def choose_summand(expert_of: Callable[[float], Expert], held_out: HeldOut, pool: Pool) -> Chosen:
    """With which an expert, trained without the held-out rows, does best on them: from "no change" up or down
    as long as that gains."""

    def ask(place: int) -> tuple[float, Chosen]:
        expert = expert_of(SUMMANDS[place])
        query = make_query(min(LABELS_PER_ROW, expert.n_labels))
        alone = Ensemble([expert], equal_weights(1))
        ids, probabilities, _ = best_of_rows(alone, held_out.X, query, pool.threads)
        return gain_of_found(ids, held_out), Chosen(SUMMANDS[place], ids, probabilities)

    best = ask(_UNCHANGED)
    for step in (1, -1):
        place = _UNCHANGED + step
        while 0 <= place < len(SUMMANDS) and (found := ask(place))[0] > best[0]:
            best = found
            place += step
        if best[1].summand:  # going up has gained
            break
    return best[1]


def gain_of_found(ids: NDArray[np.int32], held_out: HeldOut) -> float:
    """The normalised discounted cumulative gain of the labels found (n_rows, k), best first, summed over rows
    by their weights."""
    n_rows, k = ids.shape
    rows = np.repeat(np.arange(n_rows), k)
    is_right = held_out.are_right(ids.ravel(), rows).reshape(n_rows, k) & (ids >= 0)
    discount = 1.0 / np.log2(np.arange(k) + 2.0)
    return float((held_out.gain_of_first(k) * (is_right * discount).sum(axis=1)).sum())
