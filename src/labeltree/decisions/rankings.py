"""Rules for k labels of each row, by Frank and Wolfe's algorithm.

What a label is worth in one more row follows from what the last decisions give it, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.decisions.goals import Counts, Goal
from labeltree.decisions.judged import Judged, sums_of_labels
from labeltree.decisions.pooling import Pool
from labeltree.decisions.recalibration import recalibrate, sigmoid, straight_lines
from labeltree.decisions.rule import RankingRule

_MOST_ROUNDS = 40
_FEW = 0.002  # of the labels that rows get: a round that changes no more is the last
# How much labels follow others, and powers of the weights: what suits depends on the measure.
_CARES = ((0.6, 1.0), (0.6, 0.5), (6.0, 1.0), (6.0, 0.5))
_MOST_WEIGHTS = 0.998  # weights above this quantile are cut: labels of a single row would win everywhere


class _Evidence:
    """What the rows say, by how often labels of a probability are right."""

    def __init__(self, goal: Goal, rows: Judged) -> None:
        self.goal, self.rows = goal, rows
        found = recalibrate(rows)
        counts = rows.label_counts[rows.ids]
        self.shares = np.where(rows.ids >= 0, sigmoid(found.log_odds(rows.probabilities, counts)), 0.0)
        self.lines = straight_lines(rows, self.shares)
        # For goals where no label costs anything: then all are worth something, and rows get k labels.
        self.proportions = straight_lines(rows, self.shares, through_zero=True)
        self.inverse, self.most_propensity = rows.inverse, rows.most_propensity(goal.k)
        self.expected = self._sums(rows.ids >= 0, self.shares)

    def _sums(self, chosen: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums_of_labels(self.rows.ids[chosen], values[chosen], self.rows.n_labels)

    def counts(self, chosen: NDArray[np.bool_]) -> Counts:
        """What is expected of a decision."""
        return Counts(
            self._sums(chosen, self.shares), self._sums(chosen, np.ones(chosen.shape)),
            self.expected, self.inverse, self.most_propensity, self.rows.n_rows, self.goal.k,
        )  # fmt: skip

    def rule(self, counts: Counts, pool: Pool, power: float) -> RankingRule:
        """What one more row with a label is worth: over how often it is right, and so over probabilities."""
        careful = counts._replace(
            hits=pool.drawn(counts.hits), predicted=pool.drawn(counts.predicted), support=pool.support,
            n_rows=int(pool.scale * counts.n_rows), most_propensity=pool.scale * counts.most_propensity,
        )  # fmt: skip
        weight, summand = self.goal.slopes(careful)
        most = max(float(np.quantile(weight, _MOST_WEIGHTS)), 1e-300)
        # A power keeps the share of rows that are right at which a label is worth nothing.
        factor = np.minimum(1.0, weight / most) ** power / np.maximum(weight, 1e-300)
        weight, summand = weight * factor, summand * factor
        slope, intercept = self.lines if summand.any() else self.proportions
        values = weight * slope, summand + weight * intercept
        return RankingRule(self.goal.text, self.goal.k, *(each.astype(np.float32) for each in values))


def fit_ranking(goal: Goal, rows: Judged, scale: float) -> RankingRule:
    """With so much care with labels of few rows, or none but the plain ranking, as is best for other rows.

    What is best for the rows that it was fitted to themselves is too bold.
    """
    values = np.zeros(1 + len(_CARES))
    for own, others in rows.halves():
        fitted = [_plain(goal, own), *_of_cares(goal, own, 1.0, _CARES)]
        values += [others.value(goal, rule.choose(others.ids, others.probabilities)) for rule in fitted]
    best = int(np.argmax(values))
    return _of_cares(goal, rows, scale, _CARES[best - 1 : best])[0] if best else _plain(goal, rows)


def _plain(goal: Goal, rows: Judged) -> RankingRule:
    ones = np.ones(rows.n_labels, np.float32)
    return RankingRule(goal.text, goal.k, ones, 0.0 * ones)


def _of_cares(
    goal: Goal, rows: Judged, scale: float, cares: Sequence[tuple[float, float]]
) -> list[RankingRule]:
    evidence = _Evidence(goal, rows)
    return [_last_round(evidence, _plain(goal, rows), scale, *care) for care in cares]


def _last_round(
    evidence: _Evidence, plain: RankingRule, scale: float, of_others: float, power: float
) -> RankingRule:
    rows, rule = evidence.rows, plain
    pool = Pool(rows, evidence.expected, of_others, scale)
    chosen = rule.choose(rows.ids, rows.probabilities)
    counts = evidence.counts(chosen)
    for number in range(1, _MOST_ROUNDS):
        rule, last = evidence.rule(counts, pool, power), chosen
        chosen = rule.choose(rows.ids, rows.probabilities)
        if np.count_nonzero(chosen != last) <= _FEW * np.count_nonzero(last):
            break
        counts = _between(counts, evidence.counts(chosen), 2.0 / (number + 2.0))
    return rule


def _between(old: Counts, new: Counts, step: float) -> Counts:
    mixed = {
        name: (1 - step) * getattr(old, name) + step * getattr(new, name) for name in ("hits", "predicted")
    }
    return old._replace(**mixed)
