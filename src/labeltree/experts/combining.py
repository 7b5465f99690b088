"""Experts become one: what each counts, which variant of it, and the map of their average.

All is fitted on rows that none of them saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import pointers
from labeltree.experts.by_rows import part_of
from labeltree.experts.calibration import LABELS_PER_ROW, bent_map_of_found
from labeltree.experts.combination import Combination, equal_weights
from labeltree.experts.ensemble import Evidence, best_per_row, find_evidence
from labeltree.experts.expert import Expert, Trained
from labeltree.experts.held_out import HeldOut
from labeltree.experts.shares import Cases, fit_shares, make_cases
from labeltree.parallel import Pool, row_slices
from labeltree.query import make_query

_DEPTH = 10  # labels that each searched expert gives for a row
_ROWS_AT_ONCE = 512


class Combined(NamedTuple):
    experts: list[Expert]  # those that were trained, or variants of them
    combination: Combination


def combine(trained: Sequence[Trained], held_out: HeldOut, pool: Pool) -> Combined:
    """Experts of a group, such as all trees with one kind of nodes, count the same.

    Without held-out rows each group has its usual share.
    """
    experts = [each.expert for each in trained]
    if len(experts) == 1 and experts[0].is_calibrated:
        return Combined(experts, equal_weights(1))
    groups = _groups(experts)
    usual = _usual_shares(experts, groups)
    judges = [each.without_held_out for each in trained if each.without_held_out is not None]
    if not len(held_out.numbers) or len(judges) < len(experts):
        return Combined(experts, Combination(_weights(groups, usual)))
    evidence = _gather(judges, held_out, pool)
    by_group = np.stack([evidence.probabilities[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    cases = make_cases(evidence.labels, by_group, held_out, usual)
    shares = fit_shares(cases, usual)
    for number in _with_variants(judges, groups):
        chosen, cases = _choose_variant(judges[number], int(groups[number]), cases, shares, held_out, pool)
        experts[number] = experts[number].variants[chosen]
        shares = fit_shares(cases, usual)
    k = min(LABELS_PER_ROW, experts[0].n_labels)
    ids, best = best_per_row(cases.labels, cases.average(shares), k)
    return Combined(experts, Combination(_weights(groups, shares), bent_map_of_found(ids, best, held_out)))


def _with_variants(judges: Sequence[Expert], groups: NDArray[np.int64]) -> list[int]:
    """Experts of which there are variants, and that are a group by themselves."""
    is_alone = np.bincount(groups)[groups] == 1
    return [number for number, judge in enumerate(judges) if is_alone[number] and judge.variants]


def _choose_variant(
    judge: Expert, group: int, cases: Cases, shares: NDArray[np.float64], held_out: HeldOut, pool: Pool
) -> tuple[int, Cases]:
    """The variant that brings true labels to the front beside the others, and the cases with what it says."""
    indptr, ids = cases.labels

    def score(part: slice) -> NDArray[np.float32]:
        starts = indptr[part.start : part.stop + 1]
        labels = starts - starts[0], ids[starts[0] : starts[-1]]
        return judge.score_variants(part_of(held_out.X, part), labels)

    scores = np.concatenate(pool.map(score, _parts(held_out)), axis=1)
    tried = [cases.with_group(group, own) for own in scores]
    chosen = int(np.argmax([each.gain(shares) for each in tried]))
    return chosen, tried[chosen]


def _parts(held_out: HeldOut) -> list[slice]:
    n_rows = held_out.X.n_rows
    return list(row_slices(n_rows, -(-n_rows // _ROWS_AT_ONCE)))


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
    query = make_query(min(_DEPTH, judges[0].n_labels))

    def find(part: slice) -> Evidence:
        return find_evidence(judges, part_of(held_out.X, part), query)

    found = pool.map(find, _parts(held_out))
    lengths = np.concatenate([np.diff(part.labels[0]) for part in found])
    return Evidence(
        (pointers(lengths), np.concatenate([part.labels[1] for part in found])),
        np.concatenate([part.probabilities for part in found], axis=1),
        np.concatenate([part.last for part in found], axis=1),
        np.concatenate([part.is_exact for part in found]),
    )
