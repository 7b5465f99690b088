"""Tests that rules gain what they are tuned for, on rows that they were not fitted to.

Labels are as in real data: some are frequent, most are rare; and probabilities of frequent ones are too high,
those of rare ones too low.
"""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.data.rows import LabelRows
from labeltree.decisions import rankings, thresholds
from labeltree.decisions.fitting import fit_rule
from labeltree.decisions.goals import parse_goal
from labeltree.decisions.judged import Judged
from labeltree.decisions.pooling import Pool
from labeltree.decisions.recalibration import sigmoid
from labeltree.decisions.rule import RankingRule, ThresholdRule
from labeltree.decisions.tuning import tune_judged
from labeltree.metrics.matching import Matched

N_ROWS, N_LABELS, N_CANDIDATES = 2000, 120, 30
N_FREQUENT = 20


def judged(seed: int, n_rows: int = N_ROWS, unlike: float = 0.0) -> Judged:
    """``unlike`` is how far probabilities of single labels are off beside that."""
    random = np.random.default_rng(seed)
    off = np.random.default_rng(7).normal(0.0, unlike, N_LABELS)
    often = np.where(np.arange(N_LABELS) < N_FREQUENT, 0.0, -2.5)
    true = often - 2.0 + random.normal(0.0, 1.8, (n_rows, N_LABELS))
    is_right = random.random(true.shape) < sigmoid(true)
    told = true + np.where(np.arange(N_LABELS) < N_FREQUENT, 1.0, -0.5) + off
    ids = np.argsort(-told, axis=1, kind="stable")[:, :N_CANDIDATES].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(is_right.sum(axis=1))])
    labels = LabelRows(indptr, np.nonzero(is_right)[1].astype(np.int32), N_LABELS)
    counts = np.where(np.arange(N_LABELS) < N_FREQUENT, 1500, 120)
    p = sigmoid(np.take_along_axis(told, ids.astype(np.int64), axis=1)).astype(np.float32)
    return Judged(ids, p, Matched(ids, labels, (N_CANDIDATES,)).hits, labels, counts, counts, n_rows)


FITTED, OTHERS = judged(1), judged(2)


def value(measure: str, rows: Judged = FITTED, others: Judged = OTHERS) -> tuple[float, float]:
    """Of a rule, and of the plain answer."""
    goal = parse_goal(measure)
    rule = fit_rule(goal, rows)
    if goal.k:
        ones = np.ones(N_LABELS, np.float32)
        plain = RankingRule("p", goal.k, ones, 0.0 * ones)
    else:
        plain = ThresholdRule("p", np.full(N_LABELS, 0.5, np.float32))  # type: ignore[assignment]
    found = [others.value(goal, each.choose(others.ids, others.probabilities)) for each in (rule, plain)]
    return found[0], found[1]


@pytest.mark.parametrize(
    ("measure", "gain"),
    [
        ("p@3", 1.005),
        ("psp@3", 1.02),
        ("macro-f1@3", 1.3),
        ("macro-precision@3", 1.01),
        ("macro-recall@3", 1.3),
        ("balanced-accuracy@3", 1.01),
        ("0.5*p@3+0.5*macro-f1@3", 1.03),
        ("macro-f1", 1.2),
        ("micro-f1", 1.02),
        ("instance-f1", 1.05),
    ],
)
def test_a_rule_gains_what_it_is_for(measure: str, gain: float) -> None:
    tuned, plain = value(measure)
    assert tuned > gain * plain, (tuned, plain)


def test_hamming_is_not_above_that_of_one_half() -> None:
    tuned, plain = value("hamming")
    assert tuned > plain  # the loss, with the other sign


def test_more_labels_are_covered_where_rows_are_few() -> None:
    tuned, plain = value("coverage@1", judged(3, 300), judged(4, 300))
    assert tuned > 1.2 * plain, (tuned, plain)


def test_the_care_is_the_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two, of which one spoils the weights."""
    good, bad = (0.6, 1.0), (0.6, -1.0)
    found = []
    for cares in ([good], [bad, good], [bad]):
        monkeypatch.setattr(rankings, "_CARES", tuple(cares))
        found.append(value("macro-f1@3")[0])
    assert found[0] == found[1] > found[2]


def test_labels_that_are_off_are_put_right() -> None:
    """As far as rows tell of them."""
    rows = judged(5, unlike=1.0)
    off = np.random.default_rng(7).normal(0.0, 1.0, N_LABELS)
    log_odds = np.log(rows.probabilities / (1.0 - rows.probabilities)).ravel().astype(np.float64)
    shifts = thresholds._shifts(rows.ids.ravel(), log_odds, rows.hits.ravel(), N_LABELS)
    frequent = slice(0, N_FREQUENT)
    assert np.corrcoef(shifts[frequent], -off[frequent])[0, 1] > 0.9


def test_labels_of_few_rows_follow_others() -> None:
    rows = judged(6)
    own = np.arange(N_LABELS, dtype=np.float64)
    expected = np.where(np.arange(N_LABELS) % 2 == 0, 0.01, 100.0)
    rows = rows._replace(final_counts=np.ones_like(rows.final_counts))
    rows = rows._replace(label_counts=rows.final_counts)
    drawn = Pool(rows, expected, 1.0, 2.0).drawn(own)
    mean = 2.0 * own.mean()
    moved = np.abs(drawn - 2.0 * own) / np.maximum(np.abs(mean - 2.0 * own), 1e-9)
    assert moved[0::2].min() > 0.3
    assert moved[1::2].max() < 0.05


def test_precision_is_that_of_all_that_is_given() -> None:
    tuned = tune_judged(parse_goal("precision>=0.8"), judged(8, 200))
    given = tuned.tuned["micro-precision"]
    assert given == 0.0 or given > 0.6  # not the mean of halves, of which one may give nothing
    assert tuned.lines()[0].split()[-1] == "precision>=0.8"


@pytest.mark.parametrize("measure", ["macro-precision@2", "balanced-accuracy@2", "psp@2"])
def test_the_measure_is_shown(measure: str) -> None:
    lines = tune_judged(parse_goal(measure), judged(9, 200)).lines()
    assert any(line.startswith(measure) for line in lines)
