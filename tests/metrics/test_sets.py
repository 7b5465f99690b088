"""Measures of sets: scikit-learn's own, and agreement with the slow twin; problems of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from labeltree import metrics
from labeltree.errors import DataError
from labeltree.metrics.per_label import PROBLEMS, LabelTable, by_urgency, find_problems
from labeltree.reference import metrics as reference


def indicators(seed: int, n_rows: int = 40, n_labels: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Sets and true labels; some rows and some labels have none."""
    random = np.random.default_rng(seed)
    true = random.random((n_rows, n_labels)) < random.random(n_labels) * 0.5
    sets = np.where(random.random(true.shape) < 0.8, true, random.random(true.shape) < 0.2)
    sets[0], true[0], sets[1], true[2] = False, False, False, False
    sets[:, 0], true[:, 0], true[:, 1], sets[:, 2] = False, False, False, False
    return sets, true


@pytest.mark.parametrize("seed", range(5))
def test_scikit_learn_has_the_same_numbers(seed: int) -> None:
    sklearn: Any = pytest.importorskip("sklearn.metrics")
    sets, true = indicators(seed)
    found = metrics.evaluate_sets(csr_matrix(sets), csr_matrix(true))
    expected = {
        f"{average if average != 'samples' else 'instance'}-{short}": score(
            true, sets, average=average, zero_division=0
        )
        for average, names in (
            ("samples", ["f1"]),
            ("micro", ["f1", "precision", "recall"]),
            ("macro", ["f1", "precision", "recall"]),
        )
        for short, score in (
            ("f1", sklearn.f1_score),
            ("precision", sklearn.precision_score),
            ("recall", sklearn.recall_score),
        )
        if short in names
    }
    expected["jaccard"] = sklearn.jaccard_score(true, sets, average="samples", zero_division=0)
    expected["hamming"] = sklearn.hamming_loss(true, sets)
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    both = true.any(axis=0) & ~true.all(axis=0)  # elsewhere scikit-learn knows one class only
    balanced = metrics.evaluate_sets(csr_matrix(sets[:, both]), csr_matrix(true[:, both]))
    assert balanced["balanced-accuracy"] == pytest.approx(
        np.mean([sklearn.balanced_accuracy_score(true[:, j], sets[:, j]) for j in np.flatnonzero(both)])
    )
    assert found["coverage"] == np.mean((sets & true).any(axis=0))


def test_the_first_k_are_a_set() -> None:
    sets, true = indicators(3)
    ids = np.array([[*np.flatnonzero(row), *[-1] * 12][:12] for row in sets])
    at = metrics.evaluate(ids, csr_matrix(true), (12,))
    of_sets = metrics.evaluate_sets(csr_matrix(sets), csr_matrix(true))
    assert {key: at[f"{key}@12"] for key in of_sets} == of_sets


_rows = st.lists(st.lists(st.integers(-1, 9), unique=True, max_size=5), min_size=4, max_size=4)


@given(_rows, _rows, st.integers(10, 14))
def test_agrees_with_the_reference(sets: list[list[int]], true: list[list[int]], n_labels: int) -> None:
    found = metrics.evaluate_sets(sets, true, n_labels)
    assert found == pytest.approx(reference.set_measures(sets, true, n_labels))


@pytest.mark.parametrize(
    ("sets", "true", "message"),
    [([[0]], [[0], [1]], "sets has 1 rows, but labels 2"), ([], [], "no rows")],
)
def test_bad_sets(sets: Any, true: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        metrics.evaluate_sets(sets, true)


def test_many_labels_take_no_memory() -> None:
    """Only those that occur are counted, of however many there are."""
    found = metrics.evaluate_sets([[2**31 - 2], [5]], [[2**31 - 2], [7]], 2**31 - 1)
    assert found["micro-f1"] == 0.5
    assert found["coverage"] == 1 / (2**31 - 1)


def test_problems_and_their_order() -> None:
    """A label of each kind, and one without a problem."""
    support = np.array([4, 4, 4, 5, 20, 40, 10])
    predicted = np.array([0, 1, 2, 30, 30, 10, 10])
    hits = np.array([0, 0, 0, 5, 20, 8, 9])
    none = np.full(7, np.nan)
    table = LabelTable(
        support, predicted, hits, hits / np.maximum(predicted, 1), hits / support,
        np.array([0, 0.1, 0.1, 0.9, 0.2, 0.8, 0.85]), none, none,
    )  # fmt: skip
    problems = find_problems(table, np.array([0, 3, 50, 50, 50, 50, 50]))
    assert problems.tolist() == [0, 1, 2, 3, 4, 5, -1]
    assert len(PROBLEMS) == 6
    assert by_urgency(table).tolist() == [5, 2, 1, 0, 6, 3, 4]
