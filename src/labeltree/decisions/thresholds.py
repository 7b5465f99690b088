"""Rules for sets of any size: thresholds, one or one for each label, and what rows are expected to gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.decisions.goals import Goal
from labeltree.decisions.judged import Judged, sums_of_labels
from labeltree.decisions.pooling import Pool
from labeltree.decisions.recalibration import recalibrate, sigmoid, straight_lines
from labeltree.decisions.rule import ExpectedRule, Rule, ThresholdRule
from labeltree.errors import ParameterError

_LEAST_THRESHOLD = 0.02  # below it are very many labels, of which hardly any is right
_LOG_ODDS = np.linspace(-4.5, 4.5, 91)  # of the single thresholds that are tried
_OWN_LOG_ODDS = np.arange(-6.0, 2.6, 0.25)  # and of those of each label
_CARE = 1.0  # standard errors by which a precision must be above the one that is asked for
_VARIANCE = 0.2  # of how far the log-odds of labels are off, beside what probability and rows say
_STEPS = 12  # by which that is found
_OF_OTHERS = 0.6  # how much labels follow others: less, and those of few rows follow chance


# A rule for a goal, fitted to rows, for so many times as many of them.
Fit = Callable[[Goal, Judged, float], Rule]


class UnreachableGoal(ParameterError):
    """Nothing that could be given is good enough."""


def fit_sets(goal: Goal, rows: Judged, scale: float) -> Rule:
    """The rule that is best for a goal without k."""
    n = max(1, int(np.count_nonzero((rows.probabilities >= _LEAST_THRESHOLD).any(axis=0))))
    rows = rows._replace(ids=rows.ids[:, :n], probabilities=rows.probabilities[:, :n], hits=rows.hits[:, :n])
    if goal.least_precision:
        return ThresholdRule(goal.text, _same(rows, _precise_threshold(goal.least_precision, rows)))
    kinds: list[Fit] = [_single_threshold, *_OTHER_KINDS.get(goal.terms[0][1], ())]
    return kinds[_best_for_others(goal, rows, kinds)](goal, rows, scale)


def _best_for_others(goal: Goal, rows: Judged, kinds: Sequence[Fit]) -> int:
    """Which kind of rule is best for rows that it is not fitted to."""
    if len(kinds) == 1:
        return 0
    values = np.zeros(len(kinds))
    for own, others in rows.halves():
        fitted = [fit(goal, own, 1.0) for fit in kinds]
        values += [others.value(goal, rule.choose(others.ids, others.probabilities)) for rule in fitted]
    return int(np.argmax(values))


def _same(rows: Judged, threshold: float) -> NDArray[np.float32]:
    return np.full(rows.n_labels, max(threshold, _LEAST_THRESHOLD), np.float32)


def _single_threshold(goal: Goal, rows: Judged, scale: float) -> Rule:
    """The best of some thresholds for all labels, with and without a label for every row."""
    choices = (0,) if goal.terms[0][1] in ("hamming", "macro-f1", "micro-f1") else (0, 1)
    tried = [
        ThresholdRule(goal.text, _same(rows, threshold), at_least)
        for at_least in choices
        for threshold in sigmoid(_LOG_ODDS).tolist()
    ]
    values = [rows.value(goal, rule.choose(rows.ids, rows.probabilities)) for rule in tried]
    return tried[int(np.argmax(values))]


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


def _expected(goal: Goal, rows: Judged, scale: float) -> Rule:
    """By what F1 each row is expected to have."""
    found = recalibrate(rows)
    shares = sigmoid(found.log_odds(rows.probabilities, rows.label_counts[rows.ids]))
    slope, intercept = straight_lines(rows, shares)
    return ExpectedRule(goal.text, slope.astype(np.float32), intercept.astype(np.float32))


def _own_thresholds(goal: Goal, rows: Judged, scale: float) -> Rule:
    """One for each label."""
    return ThresholdRule(goal.text, _thresholds_of_labels(rows, scale))


def _thresholds_of_labels(rows: Judged, scale: float) -> NDArray[np.float32]:
    """A threshold for each label: half of the F1 that it is expected to have at best (Lipton et al., 2014).

    What is expected, by how often labels of a probability are right: where a label is found in a row, that
    is one of those that have it and one of those that get it; so F1 is twice the hits, by all others of both
    kinds and 2. For labels of few rows the 2 is most of it, and thresholds are low: there is little to lose.
    """
    is_label = rows.ids >= 0
    ids = rows.ids[is_label]
    recalibration = recalibrate(rows)
    log_odds = recalibration.log_odds(rows.probabilities[is_label], rows.label_counts[ids])
    shift = _shifts(ids, log_odds, rows.hits[is_label], rows.n_labels)
    log_odds = log_odds + shift[ids]
    shares = sigmoid(log_odds)
    pool = Pool(rows, sums_of_labels(ids, shares, rows.n_labels), _OF_OTHERS, scale)
    best = np.full(rows.n_labels, 1e-6)
    for least in _OWN_LOG_ODDS.tolist():
        taken = log_odds >= least
        predicted = np.bincount(ids[taken], minlength=rows.n_labels).astype(np.float64)
        hits = sums_of_labels(ids[taken], shares[taken], rows.n_labels)
        whole = pool.drawn(predicted) + pool.support + 2.0
        best = np.maximum(best, pool.drawn(hits) / whole)  # half of the F1
    best = np.minimum(best, 0.999)
    wanted = np.log(best) - np.log1p(-best) - shift
    threshold = recalibration.probability_where(wanted, rows.final_counts)
    return np.maximum(threshold, _LEAST_THRESHOLD).astype(np.float32)


def _shifts(
    ids: NDArray[np.int32], log_odds: NDArray[np.float64], hits: NDArray[np.bool_], n_labels: int
) -> NDArray[np.float64]:
    """(n_labels,) by how much the log-odds of labels are most likely off, if most are not far off."""
    shift = np.zeros(n_labels)
    for _ in range(_STEPS):
        share = sigmoid(log_odds + shift[ids])
        slope = sums_of_labels(ids, hits - share, n_labels) - shift / _VARIANCE
        curvature = sums_of_labels(ids, share * (1.0 - share), n_labels) + 1.0 / _VARIANCE
        shift += np.clip(slope / curvature, -1.0, 1.0)
    return shift


# Beside one threshold for all labels.
_OTHER_KINDS: dict[str, tuple[Fit, ...]] = {"macro-f1": (_own_thresholds,), "instance-f1": (_expected,)}
