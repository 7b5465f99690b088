"""How much each expert counts, and the map of their average: fitted on rows that none of them saw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import pointers
from labeltree.experts.by_rows import part_of
from labeltree.experts.calibration import LABELS_PER_ROW, map_of_found
from labeltree.experts.combination import Combination, equal_weights
from labeltree.experts.ensemble import Evidence, best_per_row, find_evidence
from labeltree.experts.expert import Expert, Labels, Trained
from labeltree.experts.held_out import HeldOut
from labeltree.parallel import Pool, row_slices
from labeltree.query import make_query

_DEPTH = 10  # labels that each searched expert gives for a row
_SHARES = np.arange(15) / 20  # that a group of experts may have
# In rows whose labels all come to the front, times the square of how far a share is from the usual one. Less
# does as well on held-out rows of four data sets, but follows their noise.
_CAUTION = 450.0
_ROUNDS = 2  # over all groups
_ROWS_AT_ONCE = 512


def combine(trained: Sequence[Trained], held_out: HeldOut, pool: Pool) -> Combination:
    """Experts of a group, such as all trees with one kind of nodes, count the same.

    Without held-out rows each group has its usual share.
    """
    experts = [each.expert for each in trained]
    if len(experts) == 1 and experts[0].is_calibrated:
        return equal_weights(1)
    groups = _groups(experts)
    usual = _usual_shares(experts, groups)
    judges = [each.without_held_out for each in trained]
    if not len(held_out.numbers) or any(judge is None for judge in judges):
        return Combination(_weights(groups, usual))
    evidence = _gather([judge for judge in judges if judge is not None], held_out, pool)
    rows = np.repeat(np.arange(held_out.X.n_rows), np.diff(evidence.labels[0]))
    is_right = held_out.are_right(evidence.labels[1], rows)
    by_group = np.stack([evidence.probabilities[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    shares = _fit_shares(by_group, evidence.labels, is_right, held_out, usual)
    k = min(LABELS_PER_ROW, experts[0].n_labels)
    ids, best = best_per_row(evidence.labels, _average(shares, by_group), k)
    return Combination(_weights(groups, shares), map_of_found(ids, best, held_out))


def _groups(experts: Sequence[Expert]) -> NDArray[np.int64]:
    """(n_experts,) the number of each one's group: of one kind, and as the data chose."""
    whats = [(expert.kind, expert.title, dict(expert.chosen)) for expert in experts]
    distinct = [what for number, what in enumerate(whats) if what not in whats[:number]]
    return np.array([distinct.index(what) for what in whats])


def _usual_shares(experts: Sequence[Expert], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_groups,) what groups count where nothing is known: those that have no share of their own get the
    rest."""
    usual = np.full(groups.max() + 1, np.nan)
    for expert, group in zip(experts, groups, strict=True):
        usual[group] = np.nan if expert.usual_share is None else expert.usual_share
    open_groups = np.isnan(usual)
    if not open_groups.any():
        return usual / usual.sum()
    usual[open_groups] = (1.0 - np.nansum(usual)) / np.count_nonzero(open_groups)
    return usual


def _weights(groups: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_experts,) where a group's share is that of all its experts together."""
    return shares[groups] / np.bincount(groups)[groups]


def _gather(judges: Sequence[Expert], held_out: HeldOut, pool: Pool) -> Evidence:
    """What the experts say of the held-out rows."""
    query, n_rows = make_query(min(_DEPTH, judges[0].n_labels)), held_out.X.n_rows

    def find(part: slice) -> Evidence:
        return find_evidence(judges, part_of(held_out.X, part), query)

    found = pool.map(find, row_slices(n_rows, -(-n_rows // _ROWS_AT_ONCE)))
    lengths = np.concatenate([np.diff(part.labels[0]) for part in found])
    return Evidence(
        (pointers(lengths), np.concatenate([part.labels[1] for part in found])),
        np.concatenate([part.probabilities for part in found], axis=1),
        np.concatenate([part.last for part in found], axis=1),
        np.concatenate([part.is_exact for part in found]),
    )


def _average(shares: NDArray[np.float64], by_group: NDArray[np.float32]) -> NDArray[np.float64]:
    return (shares[:, None] * by_group).sum(axis=0)


def _fit_shares(
    by_group: NDArray[np.float32],
    labels: Labels,
    is_right: NDArray[np.bool_],
    held_out: HeldOut,
    usual: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(n_groups,) shares that bring true labels to the front: one after another is chosen, all others keep
    their proportions. Few rows say little, so a share must gain something to be far from the usual one."""
    shares = usual
    for _ in range(_ROUNDS if len(shares) > 2 else len(shares) - 1):
        for group in range(1, len(shares)):
            tried = [_with_share(shares, group, share) for share in _SHARES]
            gains = [
                _gain(_average(each, by_group), labels, is_right, held_out)
                - _CAUTION * (each[group] - usual[group]) ** 2
                for each in tried
            ]
            shares = tried[int(np.argmax(gains))]
    return shares


def _with_share(shares: NDArray[np.float64], group: int, share: float) -> NDArray[np.float64]:
    others = 1.0 - shares[group]
    changed = shares * (1.0 - share) / others
    changed[group] = share
    return changed


def _gain(
    average: NDArray[np.float64], labels: Labels, is_right: NDArray[np.bool_], held_out: HeldOut
) -> float:
    """The normalised discounted cumulative gain of each row's first labels, summed over rows."""
    indptr = labels[0]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((labels[1], -average, rows))
    rank = np.arange(len(order)) - indptr[rows]  # rows are in order already
    hit = is_right[order] & (rank < LABELS_PER_ROW)
    ideal = np.cumsum(1.0 / np.log2(np.arange(LABELS_PER_ROW) + 2.0))
    n_true = np.minimum(np.diff(held_out.Y.indptr), LABELS_PER_ROW)
    of_row = held_out.weight / ideal[np.maximum(n_true, 1) - 1]
    return float((of_row[rows[hit]] / np.log2(rank[hit] + 2.0)).sum())
