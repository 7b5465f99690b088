"""A rule for a model, tuned on rows that it was not trained on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.decisions.fitting import fit_rule, n_candidates
from labeltree.decisions.goals import PRECISION_GOAL, Goal
from labeltree.decisions.judged import Judged
from labeltree.decisions.rule import Rule, best_of_columns
from labeltree.decisions.thresholds import UnreachableGoal
from labeltree.errors import DataError
from labeltree.features.reading import DataSet
from labeltree.metrics.matching import Matched
from labeltree.query import SET_THRESHOLD, make_query
from labeltree.wording import align, counted

if TYPE_CHECKING:
    from labeltree.model import Model

_SHOWN = ("p", "psp", "micro-f1", "instance-f1", "macro-f1", "macro-recall", "coverage", "hamming")
_SHOWN_OF_SETS = (
    "micro-precision",
    "micro-recall",
    "micro-f1",
    "instance-f1",
    "macro-f1",
    "coverage",
    "hamming",
)


_LEAST_ROWS = 4  # half of each half of them is needed


class Tuned(NamedTuple):
    """A rule, and measures of the plain answer and of the rule on rows that it was not fitted to."""

    rule: Rule | None  # None where nothing is good enough
    plain: dict[str, float]
    tuned: dict[str, float]
    title: str  # of the plain answer
    goal: Goal
    failure: str = ""  # why there is no rule

    def lines(self) -> list[str]:
        """A table, in percent."""
        if self.rule is None:
            return []
        keys: tuple[str, ...] = _SHOWN if self.goal.k else _SHOWN_OF_SETS
        keys += tuple(key for _, key in self.goal.terms if key not in (*keys, PRECISION_GOAL))
        sides = self.plain, self.tuned
        body = []
        if len(self.goal.terms) > 1:
            body.append([self.goal.text, *(f"{100 * self.goal.value(side):.4g}" for side in sides)])
        body += [
            [
                key + (f"@{self.goal.k}" if self.goal.k else ""),
                *(f"{100 * side[key]:.4g}" for side in sides),
            ]
            for key in keys
        ]
        return align([["on rows it was not fitted to", self.title, self.goal.text], *body])

    def notices(self) -> list[str]:
        """What to know before it is used."""
        least = self.goal.least_precision
        if self.rule is None:
            return [f"There is no rule: {self.failure}."]
        if least:
            reached = self.tuned["micro-precision"]
            if reached == 0.0:
                return [
                    "Half of the rows are not enough to judge it by: the rule is fitted to all of them. More "
                    "rows to tune on would show more."
                ]
            is_short = reached < least
            said = f"a precision of {reached:.1%}, below {least:.1%}: more rows to tune on would show more"
        else:
            is_short = self.goal.value(self.tuned) < self.goal.value(self.plain)
            said = f"less {self.goal.text} than without it: more rows to tune on may help, or no rule at all"
        return [f"On rows that it was not fitted to the rule has {said}."] if is_short else []


def tune_rule(model: Model, data: DataSet, goal: Goal, threads: int) -> Tuned:
    """On rows that the model was not trained on."""
    _check_labels(data)
    n_most = n_candidates(goal, model.n_labels)
    ids, probabilities, _ = model.best(data.rows, make_query(n_most), threads)
    hits, counts = Matched(ids, data.labels, (n_most,)).hits, model.label_counts
    judged = Judged(ids, probabilities, hits, data.labels, counts, counts, model.n_examples)
    tuned = tune_judged(goal, judged)
    if tuned.rule is not None:
        tuned.rule.labels = model.labels
    return tuned


def _check_labels(data: DataSet) -> None:
    counts = data.counts("tune")
    if counts.rows < _LEAST_ROWS:
        raise DataError(
            f"{data.name}: {counted(counts.rows, 'row')} cannot be tuned on, as halves of them judge each "
            f"other; give at least {_LEAST_ROWS}, better some hundreds"
        )
    if counts.labels == counts.unknown_labels:
        said = "no row has a label" if counts.labels == 0 else "no label is among the model's"
        raise DataError(f"{data.name}: {said}, so there is nothing to tune by; give rows with their labels")


def tune_judged(goal: Goal, rows: Judged) -> Tuned:
    """Fit a rule to all rows; and to one half each, to see what it gives the other."""
    rule = fit_rule(goal, rows)
    return judge_tuning(goal, rows)._replace(rule=rule)


def judge_tuning(goal: Goal, rows: Judged) -> Tuned:
    """What rules give to each half of the rows that are fitted to the other: for as many rows as that has."""
    chosen = np.zeros(rows.ids.shape, np.bool_)
    for (own, others), places in zip(rows.halves(), reversed(rows.rows_of_halves()), strict=True):
        with suppress(UnreachableGoal):  # what half of the rows cannot show, all may: nothing is given
            chosen[places] = fit_rule(goal, own, 1.0).choose(others.ids, others.probabilities)
    plain, tuned = rows.scores(_plain(goal, rows), goal.k), rows.scores(chosen, goal.k)
    title = f"top {goal.k}" if goal.k else f"p>={SET_THRESHOLD:g}"
    return Tuned(None, plain, tuned, title, goal)


def _plain(goal: Goal, rows: Judged) -> NDArray[np.bool_]:
    """What is given without a rule."""
    if goal.k:
        return best_of_columns(np.where(rows.ids >= 0, rows.probabilities, -1.0), goal.k) & (rows.ids >= 0)
    return (rows.probabilities >= SET_THRESHOLD) & (rows.ids >= 0)
