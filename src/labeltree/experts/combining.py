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
from labeltree.experts.shares import Cases, choose_cases, fit_shares, make_cases
from labeltree.parallel import Pool, row_slices
from labeltree.query import make_query

_DEPTH = 10  # labels that each searched expert gives for a row
_ROWS_AT_ONCE = 512


class Combined(NamedTuple):
    experts: list[Expert]  # those that were trained, or variants of them
    combination: Combination
    judges: Sequence[Expert] = ()  # the same, trained without the held-out rows; none where there are none


def combine(trained: Sequence[Trained], held_out: HeldOut, pool: Pool) -> Combined:
    """Experts of a group, such as all trees with one kind of nodes, count the same.

    Without held-out rows each group has its usual share. Of those that are trained in part there is more,
    or nothing where it does not pay.
    """
    combined = _combine(trained, held_out, pool)
    if not any(each.more for each in trained):
        return combined
    weights = combined.combination.weights.tolist()
    pairs = zip(trained, weights, strict=True)
    found = [each if each.more is None else each.more(weight > 0.0) for each, weight in pairs]
    return combine([each for each in found if each is not None], held_out, pool)


def _combine(trained: Sequence[Trained], held_out: HeldOut, pool: Pool) -> Combined:
    experts = [each.expert for each in trained]
    judges = [each.without_held_out for each in trained if each.without_held_out is not None]
    if len(experts) == 1 and experts[0].is_calibrated:
        return Combined(experts, equal_weights(1), judges)
    groups = _groups(experts)
    usual = _usual_shares(experts, groups)
    if not len(held_out.numbers) or len(judges) < len(experts):
        return Combined(experts, Combination(_weights(groups, usual)))
    evidence = _gather(judges, held_out, pool)
    by_group = np.stack([evidence.probabilities[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    cases = make_cases(evidence.labels, by_group, held_out, usual)
    must_pay = np.array([expert.must_pay for expert in _first_of_groups(experts, groups)])
    shares = fit_shares(cases, usual, must_pay)
    for number in _with_variants(judges, groups):
        others = _variant_cases(judges[number], int(groups[number]), cases, held_out, pool)
        chosen = choose_cases(cases, others, shares)
        if chosen is not None:
            experts[number], cases = experts[number].variants[chosen], others[chosen]
            judges[number] = judges[number].variants[chosen]
            shares = fit_shares(cases, usual, must_pay)
    k = min(LABELS_PER_ROW, experts[0].n_labels)
    ids, best = best_per_row(cases.labels, cases.average(shares), k)
    combination = Combination(_weights(groups, shares), bent_map_of_found(ids, best, held_out))
    return Combined(experts, combination, judges)


def _with_variants(judges: Sequence[Expert], groups: NDArray[np.int64]) -> list[int]:
    """Experts of which there are variants, and that are a group by themselves."""
    is_alone = np.bincount(groups)[groups] == 1
    return [number for number, judge in enumerate(judges) if is_alone[number] and judge.variants]


def _variant_cases(judge: Expert, group: int, cases: Cases, held_out: HeldOut, pool: Pool) -> list[Cases]:
    """The cases with what each variant says of them."""
    indptr, ids = cases.labels

    def score(part: slice) -> NDArray[np.float32]:
        starts = indptr[part.start : part.stop + 1]
        labels = starts - starts[0], ids[starts[0] : starts[-1]]
        return judge.score_variants(part_of(held_out.X, part), labels)

    scores = np.concatenate(pool.map(score, _parts(held_out)), axis=1)
    return [cases.with_group(group, own) for own in scores]


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
    rest. Groups that must pay take theirs from all others in proportion."""
    first = _first_of_groups(experts, groups)
    own = np.array([np.nan if expert.usual_share is None else expert.usual_share for expert in first])
    must_pay = np.array([expert.must_pay for expert in first])
    if must_pay.all():
        return own / own.sum()
    usual = np.where(must_pay, 0.0, own)
    open_groups = np.isnan(usual)
    if open_groups.any():
        usual[open_groups] = (1.0 - np.nansum(usual)) / np.count_nonzero(open_groups)
    return np.where(must_pay, own, usual / usual.sum() * (1.0 - own[must_pay].sum()))


def _first_of_groups(experts: Sequence[Expert], groups: NDArray[np.int64]) -> list[Expert]:
    return [experts[number] for number in np.unique(groups, return_index=True)[1]]


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
