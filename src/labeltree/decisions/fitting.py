"""Rules fitted to rows whose labels are known."""

from __future__ import annotations

from labeltree.decisions.goals import Goal
from labeltree.decisions.judged import Judged
from labeltree.decisions.rankings import fit_ranking
from labeltree.decisions.rule import Rule
from labeltree.decisions.thresholds import fit_sets

_N_CANDIDATES = 100


def fit_rule(goal: Goal, rows: Judged, scale: float | None = None) -> Rule:
    """The rule that is best for the goal on rows like these, careful with labels that they say little of.

    It will be used for ``scale`` times as many rows, or for as many as usual.
    """
    scale = rows.scale if scale is None else scale
    return fit_ranking(goal, rows, scale) if goal.k else fit_sets(goal, rows, scale)


def n_candidates(goal: Goal, n_labels: int) -> int:
    """How many labels of a row may be chosen of, while a rule is fitted or rows are decided together."""
    return min(n_labels, max(_N_CANDIDATES, 4 * goal.k))
