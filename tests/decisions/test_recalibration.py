"""Tests for how often labels of a probability are right."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.data.rows import LabelRows
from labeltree.decisions.fitting import fit_rule
from labeltree.decisions.goals import parse_goal
from labeltree.decisions.judged import Judged
from labeltree.decisions.recalibration import recalibrate, sigmoid, straight_lines
from labeltree.decisions.rule import RankingRule
from labeltree.metrics.matching import Matched

N_ROWS, N_LABELS = 300, 40


def judged(bias: float, seed: int = 1) -> Judged:
    """Rows whose labels are right more or less often than their probabilities say."""
    random = np.random.default_rng(seed)
    ids = np.stack([random.permutation(N_LABELS)[:20] for _ in range(N_ROWS)]).astype(np.int32)
    log_odds = -np.sort(-random.normal(-2.0, 2.0, ids.shape), axis=1)
    is_right = random.random(ids.shape) < sigmoid(log_odds + bias)
    true = [np.sort(labels[hits]) for labels, hits in zip(ids, is_right, strict=True)]
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in true])])
    labels = LabelRows(indptr, np.concatenate(true), N_LABELS)
    counts = random.integers(1, 100, N_LABELS)
    hits = Matched(ids, labels, (20,)).hits
    return Judged(ids, sigmoid(log_odds).astype(np.float32), hits, labels, counts, counts, 1000)


@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0])
def test_probabilities_that_are_off_are_put_right(bias: float) -> None:
    rows = judged(bias)
    found = recalibrate(rows)
    shares = sigmoid(found.log_odds(rows.probabilities, rows.label_counts[rows.ids]))
    for low, high in ((0.05, 0.2), (0.2, 0.5), (0.5, 0.9)):
        part = (rows.probabilities >= low) & (rows.probabilities < high)
        assert shares[part].mean() == pytest.approx(rows.hits[part].mean(), abs=0.05)


@pytest.mark.parametrize("bias", [-1.0, 0.0, 2.0])
def test_what_is_not_probable_at_all_is_never_right(bias: float) -> None:
    """A label of probability 0 would be given to every row."""
    rows = judged(bias)
    shares = sigmoid(recalibrate(rows).log_odds(rows.probabilities, rows.label_counts[rows.ids]))
    slope, intercept = straight_lines(rows, shares)
    assert intercept.max() <= 0.0 < slope.min()
    slope, intercept = straight_lines(rows, shares, through_zero=True)
    assert not intercept.any()
    assert slope.min() > 0.0
    for measure in ("macro-f1@3", "coverage@3", "psp@3", "macro-recall@3"):
        rule = fit_rule(parse_goal(measure), rows)
        assert isinstance(rule, RankingRule)
        assert rule.summand.max() <= 0.0
