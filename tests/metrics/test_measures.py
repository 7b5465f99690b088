"""The metrics: examples worked out by hand, and agreement with the slow twin on anything."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeltree import metrics
from labeltree.data.rows import LabelRows
from labeltree.errors import DataError, ParameterError
from labeltree.metrics import matching
from labeltree.reference import metrics as reference

# Three rows: two hits of three labels; one unknown label and one hit; no labels at all.
IDS = np.array([[4, 0, 1], [2, 3, -1], [0, 1, 2]])
TRUE = [[1, 4, 7], [-1, 3], []]


def as_label_rows(rows: list[list[int]], n_labels: int = 10) -> LabelRows:
    indptr = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
    return LabelRows(indptr, np.array([label for row in rows for label in sorted(row)], np.int32), n_labels)


def test_precision_by_hand() -> None:
    assert metrics.precision_at(IDS, TRUE, 1) == pytest.approx(1 / 3)
    assert metrics.precision_at(IDS, TRUE, 2) == pytest.approx((1 / 2 + 1 / 2) / 3)
    assert metrics.precision_at(IDS, TRUE, 3) == pytest.approx((2 / 3 + 1 / 3) / 3)


def test_recall_by_hand() -> None:
    assert metrics.recall_at(IDS, TRUE, 1) == pytest.approx((1 / 3) / 3)
    assert metrics.recall_at(IDS, TRUE, 3) == pytest.approx((2 / 3 + 1 / 2) / 3)


def test_ndcg_by_hand() -> None:
    second, third = 1 / math.log2(3), 1 / 2
    assert metrics.ndcg_at(IDS, TRUE, 1) == pytest.approx(1 / 3)
    expected = ((1 + third) / (1 + second + third) + second / (1 + second)) / 3
    assert metrics.ndcg_at(IDS, TRUE, 3) == pytest.approx(expected)


def test_propensities_by_hand() -> None:
    # C = (ln 1000 - 1) * 2.5^0.55 = 5.90776 * 1.65526 = 9.7789, and 1.5^-0.55 = 0.80010
    constant = (math.log(1000) - 1) * 2.5**0.55
    assert constant == pytest.approx(9.7789, abs=1e-4)
    np.testing.assert_allclose(
        metrics.propensities([0, 98.5], 1000),
        [1 / (1 + constant * 1.5**-0.55), 1 / (1 + constant * 100**-0.55)],
    )
    assert metrics.propensities([0], 1000)[0] == pytest.approx(0.1133, abs=1e-4)


def test_propensities_are_probabilities_that_rise_with_the_count() -> None:
    for n_examples in (1, 2, 3, 10, 10**7):
        values = metrics.propensities(np.arange(n_examples + 1 if n_examples < 100 else 100), n_examples)
        assert np.all((values > 0) & (values <= 1))
        assert np.all(np.diff(values) >= 0)


def test_psprecision_by_hand() -> None:
    counts = np.array([50, 3, 9, 1, 20, 0, 0, 2])
    weight = 1 / metrics.propensities([*counts, 0], 100)  # the last one: the unknown label
    for k, reached, possible in (
        (1, weight[4], weight[7] + weight[8]),
        (3, weight[4] + weight[1] + weight[3], weight[1] + weight[4] + weight[7] + weight[8] + weight[3]),
    ):
        assert metrics.psprecision_at(IDS, TRUE, k, counts, 100) == pytest.approx(reached / possible)


def test_a_perfect_prediction_scores_one() -> None:
    true = [[3, 1, 4], [5], [9, 2]]
    ids = np.array([[3, 1, 4], [5, -1, -1], [2, 9, -1]])
    counts = np.full(10, 4)
    assert metrics.recall_at(ids, true, 3) == 1
    assert metrics.ndcg_at(ids, true, 3) == pytest.approx(1)
    assert metrics.psprecision_at(ids, true, 3, counts, 50) == pytest.approx(1)
    assert metrics.precision_at(ids, true, 1) == 1


def test_all_forms_of_labels_give_the_same() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rows = [[1, 4, 7], [3], []]
    dense = np.zeros((3, 10))
    for row, labels in enumerate(rows):
        dense[row, labels] = 1
    coordinates = sparse.coo_matrix(
        (np.array([1, 1, 1, 1, 1, 0]), ([0, 0, 0, 0, 1, 2], [7, 4, 1, 1, 3, 2])), shape=(3, 10)
    )  # unsorted, one entry twice, one explicit zero
    expected = metrics.evaluate(IDS, rows, label_counts=np.arange(10), n_examples=100)
    for form in (
        as_label_rows(rows),
        sparse.csr_matrix(dense),
        sparse.csr_array(dense),
        sparse.csc_matrix(dense),
        coordinates,
        [np.array(row, dtype=np.int64) for row in rows],
        [set(row) for row in rows],
        [(7, 4, 1, 4), [3], ()],
    ):
        assert metrics.evaluate(IDS, form, label_counts=np.arange(10), n_examples=100) == expected


def test_arguments_are_not_changed() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix((np.array([1.0, 0.0]), np.array([4, 2]), np.array([0, 2, 2, 2])), shape=(3, 8))
    matrix.data.setflags(write=False)
    ids = IDS.copy()
    ids.setflags(write=False)
    metrics.evaluate(ids, matrix)
    assert matrix.nnz == 2
    np.testing.assert_array_equal(matrix.indices, [4, 2])


def test_columns_missing_for_k_are_misses() -> None:
    assert metrics.precision_at(IDS, TRUE, 6) == pytest.approx(metrics.precision_at(IDS, TRUE, 3) / 2)
    assert metrics.recall_at(IDS, TRUE, 6) == metrics.recall_at(IDS, TRUE, 3)
    assert metrics.precision_at(np.zeros((3, 0), np.int32), TRUE, 1) == 0
    assert metrics.evaluate(IDS, TRUE, ks=(6, 1))["p@6"] == metrics.precision_at(IDS, TRUE, 6)


def test_evaluate_has_the_documented_keys() -> None:
    keys = ["p", "r", "ndcg", *metrics.SET_MEASURES]
    assert list(metrics.evaluate(IDS, TRUE)) == [f"{m}@{k}" for m in keys for k in (1, 3, 5)]
    scores = metrics.evaluate(IDS, TRUE, (2,), np.ones(8), 10)
    assert list(scores) == ["p@2", "r@2", "ndcg@2", "psp@2", "psndcg@2", *(f"{m}@2" for m in keys[3:])]
    assert all(type(score) is float for score in scores.values())
    assert scores["psp@2"] == metrics.psprecision_at(IDS, TRUE, 2, np.ones(8), 10)
    probs = np.linspace(0, 1, 9).reshape(3, 3)
    scores = metrics.evaluate(IDS, TRUE, (2, 3), np.ones(8), 10, probs=probs)
    assert list(dict.fromkeys(key[:-2] for key in scores)) == list(metrics.METRICS)
    assert all(scores[f"ece@{k}"] == metrics.calibration_error(IDS, probs, TRUE, k) for k in (2, 3))


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, list[list[int]], int]:
    n_labels = draw(st.integers(1, 12))
    n_rows = draw(st.integers(1, 8))
    n_columns = draw(st.integers(0, 6))
    some = st.lists(st.integers(0, n_labels - 1), unique=True, max_size=n_columns)
    ids = np.full((n_rows, n_columns), -1, dtype=draw(st.sampled_from([np.int32, np.int64])))
    for row in range(n_rows):
        predicted = draw(some)
        ids[row, : len(predicted)] = predicted
        ids[row] = draw(st.permutations(ids[row].tolist()))
    true = st.lists(st.integers(0, n_labels - 1), unique=True, max_size=8)
    unknown = st.lists(st.just(-1), max_size=2)
    rows = [sorted(draw(true) + draw(unknown)) for _ in range(n_rows)]
    return ids, rows, n_labels


@settings(max_examples=200)
@given(problems(), st.integers(1, 8), st.integers(1, 1000), st.integers(1, 3), st.data())
def test_agrees_with_the_reference(
    problem: tuple[np.ndarray, list[list[int]], int],
    k: int,
    n_examples: int,
    block_rows: int,
    data: st.DataObject,
) -> None:
    ids, true, n_labels = problem
    counts = data.draw(st.lists(st.integers(0, 50), min_size=n_labels, max_size=n_labels))
    guesses = ids.tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_BLOCK_ROWS", block_rows)
        scores = metrics.evaluate(ids, as_label_rows(true, n_labels), (k,), counts, n_examples)
    assert scores == metrics.evaluate(ids, true, (k,), counts, n_examples)
    sets = reference.set_measures(ids[:, :k].tolist(), true, n_labels)
    of_sets = {f"{key}@{k}": value for key, value in sets.items()}
    assert scores == pytest.approx(
        {
            f"p@{k}": reference.precision_at(guesses, true, k),
            f"r@{k}": reference.recall_at(guesses, true, k),
            f"ndcg@{k}": reference.ndcg_at(guesses, true, k),
            f"psp@{k}": reference.psprecision_at(guesses, true, k, counts, n_examples),
            f"psndcg@{k}": reference.psndcg_at(guesses, true, k, counts, n_examples),
        }
        | of_sets
    )
    bounded = [score for key, score in scores.items() if not key.startswith("hamming")]
    assert all(0 <= score <= 1 + 1e-12 for score in bounded)  # unknown labels are wrong pairs, too


@settings(max_examples=100)
@given(problems(), st.integers(1, 8), st.integers(0, 3))
def test_label_table_agrees_with_the_reference(
    problem: tuple[np.ndarray, list[list[int]], int], k: int, n_more: int
) -> None:
    ids, true, n_labels = problem
    probs = np.random.default_rng(0).integers(0, 8, ids.shape) / 8  # some are equal
    table = metrics.per_label(ids, probs, as_label_rows(true, n_labels), n_labels + n_more, k)
    assert {len(column) for column in table} == {n_labels + n_more}
    for label in range(n_labels + n_more):
        support, predicted, hits, total = reference.per_label(ids.tolist(), probs.tolist(), true, label, k)
        assert (table.support[label], table.predicted[label], table.hits[label]) == (support, predicted, hits)
        for value, numerator, denominator in (
            (table.precision[label], hits, predicted),
            (table.recall[label], hits, support),
            (table.mean_probability[label], total, predicted),
        ):
            assert value == pytest.approx(numerator / denominator) if denominator else math.isnan(value)
        pairs = [
            (probs[row, place], label in true[row])
            for row, place in np.argwhere(ids[:, :k] == label).tolist()
        ]
        best = table.best_f1[label], table.best_threshold[label]
        assert best == pytest.approx(reference.best_threshold(pairs, support), nan_ok=True)


@settings(max_examples=100)
@given(problems(), st.integers(1, 8), st.integers(1, 20))
def test_calibration_agrees_with_the_reference(
    problem: tuple[np.ndarray, list[list[int]], int], k: int, bins: int
) -> None:
    ids, true, n_labels = problem
    probs = np.random.default_rng(1).random(ids.shape)
    error = metrics.calibration_error(ids, probs, as_label_rows(true, n_labels), k, bins)
    assert error == pytest.approx(reference.calibration_error(ids.tolist(), probs.tolist(), true, k, bins))


def test_calibration_of_known_cases() -> None:
    ids, true = np.zeros((10, 1), np.int64), [[0]] * 7 + [[1]] * 3
    assert metrics.calibration_error(ids, np.full((10, 1), 0.7), true, bins=1) == pytest.approx(0.0)
    assert metrics.calibration_error(ids, np.full((10, 1), 0.9), true, bins=1) == pytest.approx(0.2)
    assert metrics.calibration_error(np.full((3, 2), -1), np.zeros((3, 2)), [[0]] * 3) == 0.0
    for bins in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="bins"):
            metrics.calibration_error(ids, np.ones((10, 1)), true, bins=bins)
    with pytest.raises(DataError, match="probs"):
        metrics.calibration_error(ids, np.full((10, 1), np.nan), true)


def test_many_blocks_and_wide_label_ids() -> None:
    n_rows, highest = 70_000, 2**31 - 1  # more rows than one block, ids as large as they can be
    truth = LabelRows(np.arange(n_rows + 1), np.full(n_rows, highest, np.int32), highest + 1)
    ids = np.full((n_rows, 2), highest, np.int32)
    ids[:, 1] = 5
    ids[1::2, 0] = highest - 1
    assert metrics.precision_at(ids, truth, 1) == 0.5
    assert metrics.precision_at(ids.astype(np.int64) + 2**40, truth, 1) == 0


@pytest.mark.parametrize(
    ("ids", "labels", "words"),
    [
        (IDS, TRUE[:2], "3 rows, but labels 2"),
        (IDS[0], TRUE, "two-dimensional"),
        (IDS.astype(float), TRUE, "whole numbers"),
        (IDS > 0, TRUE, "whole numbers"),
        ([[1, 2], [3]], [[1], [2]], "two-dimensional"),
        (np.array([[1], [-2], [0]]), TRUE, "row 1: -2 is no label"),
        (np.array([[1, 2], [3, 3], [-1, -1]]), TRUE, "row 1: label 3 is predicted twice"),
        (np.zeros((0, 3), np.int32), [], "no rows"),
        (IDS, np.ones((3, 4)), "indicators or ids"),
        (IDS, ["abc", "d", "e"], "row 0: must be a list"),
        (IDS, [[1], 2, [3]], "row 1: must be a list"),
        (IDS, [[1], [2.5], [3]], "row 1: must be a list"),
        (IDS, [[1], [2], [-2]], "row 2: must be a list"),
        (IDS, [[1], [2], [2**31]], "row 2: must be a list"),
        (IDS, [[True], [False], [True]], "row 0: must be a list"),
        (IDS, as_label_rows(TRUE)._replace(indptr=np.array([0, 3, 2, 5])), "indptr"),
        (IDS, as_label_rows(TRUE)._replace(indptr=np.array([0, 3, 5, 6])), "indptr"),
        (
            IDS,
            LabelRows(np.array([0, 1, 3, 3]), np.array([5, 2, 1], np.int32), 9),
            "row 1: ids must be sorted",
        ),
        (
            IDS,
            LabelRows(np.array([0, 1, 3, 3]), np.array([5, 2, 2], np.int32), 9),
            "row 1: ids must be sorted",
        ),
        (IDS, LabelRows(np.array([0, 0, 1, 1]), np.array([-3], np.int32), 9), "row 1: ids must be sorted"),
    ],
)
def test_bad_data(ids: Any, labels: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        metrics.evaluate(ids, labels)


def test_bad_k() -> None:
    for k in (0, -1, 1.0, True, "1", None, 2**31, 10**5000, -(10**5000)):
        with pytest.raises(ParameterError, match="k must be"):
            metrics.precision_at(IDS, TRUE, k)


def test_bad_counts() -> None:
    for counts, n_examples, words in (
        ([[1, 2]], 5, "one-dimensional"),
        ([1, -1], 5, "one-dimensional"),
        ([1, math.nan], 5, "one-dimensional"),
        ([1, 10**400], 5, "numbers only"),
        ([1] * 8, 0, "n_examples"),
        ([1] * 8, -(10**5000), "n_examples"),
        ([1] * 7, 5, "labels holds id 7, but label_counts has only 7"),
    ):
        with pytest.raises(DataError, match=words):
            metrics.psprecision_at(IDS, TRUE, 1, counts, n_examples)
    for wrong in (0, -1, math.nan, 2**63, 10**400, -(10**5000)):
        for name in ("a", "b"):
            if (name, wrong) == ("b", 2**63):
                continue  # large, but a number like others
            with pytest.raises(ParameterError, match="a > 0"):
                metrics.propensities([1], 5, **{name: wrong})
    with pytest.raises(ParameterError, match="both"):
        metrics.evaluate(IDS, TRUE, label_counts=[1] * 8)


def test_bad_label_table() -> None:
    with pytest.raises(DataError, match="shape"):
        metrics.per_label(IDS, np.zeros((3, 2)), TRUE, 8)
    with pytest.raises(DataError, match="NaN"):
        metrics.per_label(IDS, np.full((3, 3), math.nan), TRUE, 8)
    with pytest.raises(DataError, match="numbers only"):
        metrics.per_label(IDS, [[10**400] * 3] * 3, TRUE, 8)
    for n_labels in (7, 2**31, 10**400, -(10**5000)):
        with pytest.raises(DataError, match="label id 7 occurs, but n_labels is"):
            metrics.per_label(IDS, np.zeros((3, 3)), TRUE, n_labels)


def test_large_k_and_many_bins_take_no_memory() -> None:
    """Places after the last prediction and the last true label cannot be reached."""
    assert metrics.ndcg_at(IDS, TRUE, 2**31 - 1) == metrics.ndcg_at(IDS, TRUE, 100)
    probabilities = np.linspace(0, 1, 9).reshape(3, 3)
    assert metrics.calibration_error(IDS, probabilities, TRUE, bins=10**400) == metrics.calibration_error(
        IDS, probabilities, TRUE, bins=100
    )


def test_the_page_lists_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert re.findall(r"^\| [^|`]+, `([-\w]+)@k`", page, re.MULTILINE) == list(metrics.METRICS)


def test_no_true_labels_at_all_scores_zero() -> None:
    scores = metrics.evaluate(IDS, [[], [], []], (1, 3), np.ones(8), 10)
    others = {key for key, score in scores.items() if score}
    assert others == {f"{key}@{k}" for key in ("hamming", "balanced-accuracy") for k in (1, 3)}


def test_importing_needs_no_scipy() -> None:
    import subprocess

    code = (
        "import sys, labeltree.metrics; print([m for m in ('numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
