"""Rules fitted to rows whose labels are known, and what they gain on others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows
from labeltree.decisions.goals import PRECISION_GOAL, Counts, Goal
from labeltree.decisions.rule import RankingRule, Rule, ThresholdRule
from labeltree.errors import ParameterError
from labeltree.metrics.measures import evaluate_sets, propensities
from labeltree.metrics.per_label import best_thresholds

N_CANDIDATES = 100  # labels of a row that a rule may choose of while it is fitted
_ROUNDS = 20
_MOST_WEIGHTS = 0.998  # weights above this quantile are cut: labels of a single row would win everywhere
_SMOOTHING = (0.5, 2.0, 8.0)  # rows that a label is taken to have more, in parts of all rows' mean
_POWERS = (0.25, 0.5, 0.75)
_SHRINKING = (1.0, 3.0, 10.0, 30.0, 100.0)
_LEAST_THRESHOLD = 0.01
_LOG_ODDS = np.linspace(-4.5, 4.5, 91)  # of the thresholds that are tried
_CARE = 0.5  # standard errors by which a precision must be above the one that is asked for


class UnreachableGoal(ParameterError):
    """Nothing that could be given is good enough."""


class Judged(NamedTuple):
    """Rows with their most probable labels, and which of these are right."""

    ids: NDArray[np.int32]  # (n_rows, n) -1: none
    probabilities: NDArray[np.float32]
    hits: NDArray[np.bool_]
    labels: LabelRows  # the true ones
    label_counts: NDArray[np.int64]  # training rows of each label
    n_examples: int

    def part(self, rows: NDArray[np.int64]) -> Judged:
        """Some of the rows."""
        lengths = np.diff(self.labels.indptr)[rows]
        starts = np.repeat(self.labels.indptr[rows] - np.cumsum(lengths) + lengths, lengths)
        indices = self.labels.indices[starts + np.arange(lengths.sum())]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        labels = LabelRows(indptr, indices, self.labels.n_labels)
        return self._replace(
            ids=self.ids[rows], probabilities=self.probabilities[rows], hits=self.hits[rows], labels=labels
        )

    @property
    def n_labels(self) -> int:
        return len(self.label_counts)

    def scores(self, chosen: NDArray[np.bool_], k: int) -> dict[str, float]:
        """The measures of chosen labels, k of each row or any number."""
        ids = np.where(chosen, self.ids, -1)
        rows = np.nonzero(ids >= 0)[0]
        order = np.lexsort((ids[ids >= 0], rows))
        indptr = np.concatenate([[0], np.cumsum((ids >= 0).sum(axis=1))])
        sets = LabelRows(indptr, ids[ids >= 0][order].astype(np.int32), self.n_labels)
        found = evaluate_sets(sets, self.labels, self.n_labels)
        found[PRECISION_GOAL] = found["micro-precision"]
        if k:
            is_right = self.hits & chosen
            found["p"] = int(np.count_nonzero(is_right)) / (k * len(ids))
            found["psp"] = float(self.inverse[self.ids[is_right]].sum()) / self.most_propensity(k)
        return found

    @property
    def inverse(self) -> NDArray[np.float64]:
        """(n_labels,) inverse propensities."""
        return 1.0 / propensities(self.label_counts, self.n_examples)

    def most_propensity(self, k: int) -> float:
        """The sum of inverse propensities of each row's k rarest labels."""
        weights = np.append(self.inverse, 1.0 / propensities([0], self.n_examples))[self.labels.indices]
        rows = np.repeat(np.arange(self.labels.n_rows), np.diff(self.labels.indptr))
        weights = weights[np.lexsort((-weights, rows))]
        is_best = np.arange(len(rows)) - self.labels.indptr[rows] < k
        return max(float(weights[is_best].sum()), 1e-9)

    def value(self, goal: Goal, chosen: NDArray[np.bool_]) -> float:
        """How good that is; more is better."""
        found = self.scores(chosen, goal.k)
        value = sum(factor * found[key] for factor, key in goal.terms)
        return -value if goal.terms[0][1] == "hamming" else value


def fit_rule(goal: Goal, rows: Judged) -> Rule:
    """The rule that is best for the goal on these rows, made careful with labels that they say little of."""
    if goal.k:
        return _fit_ranking(goal, rows)
    n = max(1, int(np.count_nonzero((rows.probabilities >= _LEAST_THRESHOLD).any(axis=0))))
    rows = rows._replace(ids=rows.ids[:, :n], probabilities=rows.probabilities[:, :n], hits=rows.hits[:, :n])
    if goal.least_precision:
        return ThresholdRule(goal.text, _same(rows, _precise_threshold(goal.least_precision, rows)))
    threshold, at_least = _single_threshold(goal, rows)
    if goal.terms[0][1] == "macro-f1":
        return _fit_per_label(goal, rows, threshold)
    return ThresholdRule(goal.text, _same(rows, threshold), at_least)


def _same(rows: Judged, threshold: float) -> NDArray[np.float32]:
    return np.full(rows.n_labels, max(threshold, _LEAST_THRESHOLD), np.float32)


def _single_threshold(goal: Goal, rows: Judged) -> tuple[float, int]:
    """The best of some thresholds for all labels, with and without a label for every row."""
    tried = 1.0 / (1.0 + np.exp(-_LOG_ODDS))
    choices = (0,) if goal.terms[0][1] in ("hamming", "macro-f1", "micro-f1") else (0, 1)
    best = (-np.inf, 0.5, 0)
    for at_least in choices:
        for threshold in tried.tolist():
            rule = ThresholdRule(goal.text, _same(rows, threshold), at_least)
            value = rows.value(goal, rule.choose(rows.ids, rows.probabilities))
            if value > best[0]:
                best = (value, threshold, at_least)
    return best[1], best[2]


def _precise_threshold(least: float, rows: Judged) -> float:
    """The smallest threshold above which enough are right, with some care."""
    is_label = rows.ids >= 0
    order = np.argsort(-rows.probabilities[is_label], kind="stable")
    values, hits = rows.probabilities[is_label][order], rows.hits[is_label][order]
    n = np.arange(1, len(hits) + 1)
    share = np.cumsum(hits) / n - _CARE * np.sqrt(least * (1.0 - least) / n)
    is_end = np.append(values[1:] != values[:-1], True)
    good = np.flatnonzero((share >= least) & is_end)
    if not len(good):
        raise UnreachableGoal(f"no threshold has a precision of {least:g} on these rows; ask for less")
    return float(values[good[-1]])


def _fit_per_label(goal: Goal, rows: Judged, common: float) -> Rule:
    """A threshold for each label, half of its best F1, drawn towards the common one where rows are few."""
    half = np.arange(len(rows.ids)) % 2
    best = (-np.inf, _SHRINKING[-1])
    for strength in _SHRINKING:
        value = 0.0
        for side in (0, 1):
            fitted = _shrunk(rows.part(np.flatnonzero(half == side)), common, strength / 2)
            others = rows.part(np.flatnonzero(half != side))
            rule = ThresholdRule(goal.text, fitted)
            value += others.value(goal, rule.choose(others.ids, others.probabilities))
        if value > best[0]:
            best = (value, strength)
    return ThresholdRule(goal.text, _shrunk(rows, common, best[1]))


def _shrunk(rows: Judged, common: float, strength: float) -> NDArray[np.float32]:
    is_label = rows.ids >= 0
    ids, values, hits = rows.ids[is_label], rows.probabilities[is_label], rows.hits[is_label]
    true = rows.labels.indices[rows.labels.indices >= 0]
    support = np.bincount(true, minlength=rows.n_labels)
    _, threshold = best_thresholds(ids, values.astype(np.float64), hits, support)
    is_taken = values >= threshold[ids]  # False where there is none
    taken = np.bincount(ids[is_taken], minlength=rows.n_labels)
    right = np.bincount(ids[is_taken & hits], minlength=rows.n_labels)
    shrunk = (strength * common + right) / (strength + taken + support)
    return np.maximum(shrunk, _LEAST_THRESHOLD).astype(np.float32)


def _fit_ranking(goal: Goal, rows: Judged) -> Rule:
    """By Frank and Wolfe's algorithm: what a label is worth follows from what the last decisions give it.

    Of all rounds the rule is kept that is best on these rows, of several degrees of care with rare labels.
    What is known of these is not as good as what is known of others: so weights count by powers below 1, too,
    down to the plain ranking.
    """
    plain = RankingRule(goal.text, goal.k, *_plain_weights(rows))
    best = rows.value(goal, plain.choose(rows.ids, rows.probabilities)), plain
    for smoothing in _SMOOTHING:
        rounds = _rounds(goal, rows, smoothing)
        for rule in [*rounds, *(_tempered(rounds[-1], power) for power in _POWERS)]:
            value = rows.value(goal, rule.choose(rows.ids, rows.probabilities))
            if value > best[0] + 1e-12:
                best = value, rule
    return best[1]


def _plain_weights(rows: Judged) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return np.ones(rows.n_labels, np.float32), np.zeros(rows.n_labels, np.float32)


def _tempered(rule: RankingRule, power: float) -> RankingRule:
    """With a power of the weights; a label is worth nothing at the same probability as before."""
    weight = np.maximum(rule.weight, np.float32(1e-30)) ** np.float32(power)
    summand = rule.summand * weight / np.maximum(rule.weight, np.float32(1e-30))
    return RankingRule(rule.measure, rule.k, weight, summand.astype(np.float32))


def _rounds(goal: Goal, rows: Judged, smoothing: float) -> list[RankingRule]:
    n_rows, n_labels = len(rows.ids), rows.n_labels
    share = rows.label_counts / max(1, rows.n_examples)
    expected = np.bincount(
        rows.ids[rows.ids >= 0], weights=rows.probabilities[rows.ids >= 0], minlength=n_labels
    )
    pseudo = smoothing * n_rows / max(1, rows.n_examples)
    support = np.maximum(expected, n_rows * share) + pseudo
    propensity = rows.inverse, rows.most_propensity(goal.k)
    counts: Counts | None = None
    plain = RankingRule(goal.text, goal.k, *_plain_weights(rows))
    chosen = plain.choose(rows.ids, rows.probabilities)
    rules: list[RankingRule] = []
    for number in range(_ROUNDS):
        new = _counts_of(rows, chosen, support, propensity, goal.k)
        step = 2.0 / (number + 2.0)
        counts = new if counts is None else _between(counts, new, step)
        rule = _rule_of(goal, counts)
        if rules and np.array_equal(rule.weight, rules[-1].weight):
            break
        rules.append(rule)
        chosen = rule.choose(rows.ids, rows.probabilities)
    return rules


def _rule_of(goal: Goal, counts: Counts) -> RankingRule:
    weight, summand = goal.slopes(counts)
    most = np.quantile(weight, _MOST_WEIGHTS)
    factor = np.minimum(1.0, most / np.maximum(weight, 1e-300))
    scale = 1.0 / max(float(most), 1e-300)  # only ratios matter
    weight, summand = weight * factor * scale, summand * factor * scale
    return RankingRule(goal.text, goal.k, weight.astype(np.float32), summand.astype(np.float32))


def _counts_of(
    rows: Judged,
    chosen: NDArray[np.bool_],
    support: NDArray[np.float64],
    propensity: tuple[NDArray[np.float64], float],
    k: int,
) -> Counts:
    ids, values = rows.ids[chosen], rows.probabilities[chosen].astype(np.float64)
    n_labels = rows.n_labels
    return Counts(
        np.bincount(ids, weights=values, minlength=n_labels).astype(np.float64),
        np.bincount(ids, minlength=n_labels).astype(np.float64),
        np.exp(np.bincount(ids, weights=np.log1p(-np.minimum(values, 1 - 1e-7)), minlength=n_labels)),
        support, *propensity, len(rows.ids), k,
    )  # fmt: skip


def _between(old: Counts, new: Counts, step: float) -> Counts:
    mixed = {
        name: (1 - step) * getattr(old, name) + step * getattr(new, name)
        for name in ("hits", "predicted", "missed")
    }
    return old._replace(**mixed)
