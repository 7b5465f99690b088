"""What groups of experts count: the shares that bring true labels of held-out rows to the front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import pointers
from labeltree.experts.calibration import LABELS_PER_ROW
from labeltree.experts.expert import Labels
from labeltree.experts.held_out import HeldOut

_SHARES = np.arange(15) / 20  # that a group of experts may have, besides its usual one
# In rows whose labels all come to the front, times the square of how far a share is from the usual one. Less
# does as well on held-out rows of four data sets, but follows their noise.
_CAUTION = 450.0
_ROUNDS = 2  # over all groups
_SURE = 2.0  # standard errors of what rows gain by experts that must pay: that is the least
_FRONT = 2 * LABELS_PER_ROW  # labels of a row that some mixture may bring to the front: for a group, for all


class Cases(NamedTuple):
    """Labels of the held-out rows that may come to the front, and what groups of experts say of them."""

    labels: Labels
    by_group: NDArray[np.float32]  # (n_groups, n)
    is_right: NDArray[np.bool_]  # (n,)
    of_row: NDArray[np.float64]  # (n_rows,) what a first label that is right gains

    def average(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return (shares[:, None] * self.by_group).sum(axis=0)

    def gains(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n_rows,) the normalised discounted cumulative gain of each row's first labels."""
        front = _first_places(self.labels[0], self.average(shares), LABELS_PER_ROW)
        is_hit = (front >= 0) & self.is_right[front]
        return self.of_row * (is_hit / np.log2(np.arange(front.shape[1]) + 2.0)).sum(axis=1)

    def with_group(self, group: int, probabilities: NDArray[np.float32]) -> Cases:
        """Where a group says something else."""
        by_group = self.by_group.copy()
        by_group[group] = probabilities
        return self._replace(by_group=by_group)


def make_cases(
    labels: Labels, by_group: NDArray[np.float32], held_out: HeldOut, usual: NDArray[np.float64]
) -> Cases:
    """Of all labels that experts name, those that are far in front for a group or with the usual shares:
    sorting the others, some hundred of each row, again and again would take longer than anything else."""
    rows = np.repeat(np.arange(len(labels[0]) - 1), np.diff(labels[0]))
    keep = np.zeros(len(rows), np.bool_)
    for scores in (*by_group, (usual[:, None] * by_group).sum(axis=0)):
        front = _first_places(labels[0], scores, _FRONT)
        keep[front[front >= 0]] = True
    kept_ids, kept_rows = labels[1][keep], rows[keep]
    indptr = pointers(np.bincount(kept_rows, minlength=len(labels[0]) - 1))
    is_right = held_out.are_right(kept_ids, kept_rows)
    return Cases((indptr, kept_ids), by_group[:, keep], is_right, held_out.gain_of_first(LABELS_PER_ROW))


def _first_places(indptr: NDArray[np.int64], scores: NDArray[np.floating], n: int) -> NDArray[np.int64]:
    """(n_rows, at most n) the places of each row's best labels, best first, then -1; ties go to the lower
    label, as a row's labels are in order."""
    lengths = np.diff(indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    table = np.full((len(lengths), int(lengths.max(initial=0))), np.inf)
    table[rows, np.arange(len(scores)) - indptr[rows]] = -scores
    columns = np.argsort(table, axis=1, kind="stable")[:, :n]
    return np.where(columns < lengths[:, None], indptr[:-1, None] + columns, -1)


def fit_shares(cases: Cases, usual: NDArray[np.float64], must_pay: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n_groups,) one after another is chosen, all others keep their proportions. Few rows say little, so a
    share must gain something to be far from the usual one; or from 0, where a group must pay."""
    if must_pay.all():
        return usual
    usual = np.where(must_pay, 0.0, usual) / usual[~must_pay].sum()
    shares, others = usual, np.flatnonzero(~must_pay)[1:]
    for _ in range(min(_ROUNDS, len(others))):
        for group in others:
            tried = [_with_share(shares, group, share) for share in np.union1d(_SHARES, usual[group])]
            gains = [cases.gains(each).sum() - _CAUTION * (each[group] - usual[group]) ** 2 for each in tried]
            shares = tried[int(np.argmax(gains))]
    for group in np.flatnonzero(must_pay).tolist():
        shares = _with_pay(cases, shares, group)
    return shares


def _with_pay(cases: Cases, shares: NDArray[np.float64], group: int) -> NDArray[np.float64]:
    """With the share of a group that gains the most for certain; of none that is 0."""
    tried = [_with_share(shares, group, share) for share in _SHARES]
    before = cases.gains(shares)
    surplus = [cases.gains(each) - before for each in tried]
    return tried[int(np.argmax([own.sum() - _SURE * _standard_error(own) for own in surplus]))]


def choose_cases(usual: Cases, others: Sequence[Cases], shares: NDArray[np.float64]) -> int | None:
    """Which of them gains the most, less the standard error of what it gains over the usual ones; None where
    that is nothing."""
    before = usual.gains(shares)
    surplus = [each.gains(shares) - before for each in others]
    scores = [own.sum() - _standard_error(own) for own in surplus]
    best = int(np.argmax(scores))
    return best if scores[best] > 0.0 else None


def _standard_error(surplus: NDArray[np.float64]) -> float:
    """Of the sum over rows."""
    return float(np.sqrt(len(surplus)) * surplus.std())


def _with_share(shares: NDArray[np.float64], group: int, share: float) -> NDArray[np.float64]:
    others = 1.0 - shares[group]
    changed = shares * (1.0 - share) / others
    changed[group] = share
    return changed
