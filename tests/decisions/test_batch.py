"""Decisions for rows together: the ascent is that of the plain loops, and gains what it should."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from support.small_data import make_toy

import labeltree
from labeltree.data.rows import pointers, read_only
from labeltree.decisions.judged import sums_of_labels
from labeltree.errors import DataError, ParameterError
from labeltree.kernels.decisions.ascent import (
    SUPPORT,
    Candidates,
    Totals,
    Trade,
    Weights,
    add_labels,
    choose_best,
    count_choices,
    exchange,
    propose,
)
from labeltree.reference import decisions as reference

TRAIN, TEST = make_toy(200), make_toy(50, seed=4)
MEASURES = ("p", "macro-f1", "macro-precision", "macro-recall", "balanced-accuracy", "coverage", "psp")
OF_MATRICES = [key for key in MEASURES if key != "psp"]  # which needs to know how frequent labels are


def problem(
    seed: int, n_rows: int = 6, n_labels: int = 5
) -> tuple[csr_matrix, list[list[tuple[int, float]]]]:
    random = np.random.default_rng(seed)
    dense = random.random((n_rows, n_labels)) * (random.random((n_rows, n_labels)) < 0.7)
    dense = dense.astype(np.float32).astype(np.float64)
    matrix = csr_matrix(dense)
    rows = [[(int(j), float(dense[i, j])) for j in np.flatnonzero(dense[i])] for i in range(n_rows)]
    return matrix, rows


def as_candidates(matrix: csr_matrix, k: int) -> Candidates:
    arrays = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32)
    lengths = np.diff(matrix.indptr)
    taken = pointers(np.minimum(lengths, k))
    return Candidates(int(lengths.max()), *(read_only(array) for array in (*arrays, taken)))


def as_sets(candidates: Candidates, choices: Any) -> list[set[int]]:
    parts = np.split(candidates.ids[choices], candidates.taken[1:-1])
    return [{*part.tolist()} for part in parts]


def ascend(candidates: Candidates, fixed: Any, support: Any, weights: Weights, n_rows: int) -> Iterator[Any]:
    """The choices of rows that begin with their first candidates, and those after each pass of two blocks."""
    counts = np.zeros((len(support), 4))
    counts[:, SUPPORT] = support
    totals = Totals(counts, read_only(fixed), np.empty((len(support), 2), np.float32))
    room = Trade(*(np.empty(candidates.longest, kind) for kind in (float, np.int64, float, np.int64)))
    lengths = np.diff(candidates.taken)
    choices = np.repeat(candidates.indptr[:-1] - candidates.taken[:-1], lengths) + np.arange(lengths.sum())
    proposed = np.empty_like(choices)
    while True:
        yield choices.copy()
        count_choices(candidates, choices, weights, totals)
        for first, last in ((0, n_rows // 2), (n_rows // 2, n_rows)):
            propose(candidates, choices, first, last, weights, totals, proposed)
            exchange(candidates, proposed, first, last, weights, totals, room, choices)


@settings(max_examples=100)
@given(
    st.integers(0, 9999),
    st.integers(1, 3),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=7, max_size=7),
)
def test_passes_agree_with_the_reference(seed: int, k: int, factors: list[float]) -> None:
    matrix, rows = problem(seed)
    support = np.asarray(matrix.sum(axis=0)).ravel() + 0.1
    measures, n = dict(zip(MEASURES, factors, strict=True)), len(rows)
    inverse = np.random.default_rng(seed).uniform(0.1, 2.0, 5)
    candidates = as_candidates(matrix, k)
    fixed = np.zeros((5, 2))
    fixed[:, 0] = measures["p"] / k + measures["psp"] * inverse + measures["macro-recall"] / support
    fixed[:, 0] += measures["balanced-accuracy"] * (0.5 / support + 0.5 / (n - support))
    fixed[:, 1] -= measures["balanced-accuracy"] * 0.5 / (n - support)
    weights = Weights(*(measures[key] for key in ("macro-f1", "macro-precision", "coverage")))
    given_to = support.tolist(), measures, k
    found = ascend(candidates, fixed, support, weights, n)
    sets, utilities = as_sets(candidates, next(found)), []
    for _ in range(3):
        sets = reference.ascend(rows, sets, *given_to, [range(n // 2), range(n // 2, n)], inverse.tolist())
        own = as_sets(candidates, next(found))
        assert [len(row) for row in own] == [min(k, len(row)) for row in rows]
        utilities.append(reference.utility(rows, own, *given_to, inverse.tolist()))
        wanted = reference.utility(rows, sets, *given_to, inverse.tolist())
        assert utilities[-1] == pytest.approx(wanted, abs=1e-5)
    assert utilities[1] >= utilities[0] - 1e-6
    assert utilities[2] >= utilities[1] - 1e-6


def test_sums_are_those_of_numpy() -> None:
    matrix = random_marginals(50, 30, 10).astype(np.float32)
    sums = np.zeros(31)
    add_labels(read_only(matrix.indices), read_only(matrix.data), sums)
    np.testing.assert_array_equal(sums, sums_of_labels(matrix.indices, matrix.data, 31))


@settings(max_examples=50)
@given(st.integers(0, 9999), st.integers(1, 7))
def test_the_best_are_those_of_a_sort(seed: int, k: int) -> None:
    matrix, rows = problem(seed)
    random = np.random.default_rng(seed)
    lines = np.column_stack([random.uniform(0.5, 2.0, 5), random.normal(0.0, 0.2, 5)]).astype(np.float32)
    candidates = as_candidates(matrix, k)
    choices = np.empty(candidates.taken[-1], np.int64)
    for first, last in ((0, 2), (2, len(rows))):
        choose_best(candidates, read_only(lines), first, last, choices)
    for row, own in zip(rows, as_sets(candidates, choices), strict=True):
        order = sorted(row, key=lambda pair: -(lines[pair[0], 0] * pair[1] + lines[pair[0], 1]))
        assert own == {label for label, _ in order[:k]}


def random_marginals(n_rows: int, n_labels: int, n_candidates: int) -> csr_matrix:
    random = np.random.default_rng(8)
    ids = np.argsort(random.random((n_rows, n_labels)), axis=1)[:, :n_candidates]
    rows = np.repeat(np.arange(n_rows), n_candidates)
    return csr_matrix((random.beta(0.2, 2.0, ids.size), (rows, ids.ravel())), shape=(n_rows, n_labels))


@pytest.mark.parametrize("measure", ["macro-f1@3", "coverage@2", "p@3", "0.5*macro-precision@4+0.5*p@4"])
def test_threads_do_not_matter(measure: str) -> None:
    matrix = random_marginals(300, 80, 20)
    alone, *others = (labeltree.decide(matrix, measure=measure, threads=n) for n in (1, 2, 3, 7))
    for other in others:
        np.testing.assert_array_equal(alone.indptr, other.indptr)
        np.testing.assert_array_equal(alone.indices, other.indices)
        np.testing.assert_array_equal(alone.data, other.data)


@pytest.mark.parametrize("key", ["macro-f1", "macro-precision", "coverage"])
def test_no_row_would_gain_by_another_choice(key: str) -> None:
    """At the end, but for what is not worth another pass."""
    matrix = random_marginals(60, 20, 10)
    decided = labeltree.decide(matrix, measure=f"{key}@2")
    rows = [[(int(j), float(matrix[i, j])) for j in matrix[i].indices] for i in range(60)]
    sets = [{*map(int, decided[i].indices)} for i in range(60)]
    given_to = np.asarray(matrix.sum(axis=0)).ravel().tolist(), {key: 1.0}, 2
    better = reference.ascend(rows, sets, *given_to, [[row] for row in range(60)])
    own, other = (reference.utility(rows, each, *given_to) for each in (sets, better))
    assert other == pytest.approx(own, abs=1e-4)


def test_rows_of_few_candidates_get_them_all() -> None:
    matrix = csr_matrix([[0.5, 0.25, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    for measure in ("macro-f1@5", "coverage@5", "p@5", "macro-recall@5"):
        assert (labeltree.decide(matrix, measure=measure) != matrix).nnz == 0
        assert labeltree.decide(csr_matrix((0, 3)), measure=measure).shape == (0, 3)
        assert labeltree.decide(csr_matrix((3, 0)), measure=measure).shape == (3, 0)


def test_sets_for_macro_f1_are_the_best_of_each_label() -> None:
    """By the expected F1, of all sets of its surest rows."""
    dense = random_marginals(12, 8, 5).toarray()
    decided = labeltree.decide(csr_matrix(dense), measure="macro-f1").toarray() > 0
    for p, chosen in zip(dense.T, decided.T, strict=True):
        found = p[chosen].sum() / (chosen.sum() + p.sum())
        tried = [p[p >= least].sum() / ((p >= least).sum() + p.sum()) for least in p[p > 0]]
        assert found == pytest.approx(max(tried, default=0.0))


def expected(matrix: csr_matrix, decided: csr_matrix, key: str, k: int) -> float:
    rows = [[(int(j), float(matrix[i, j])) for j in matrix[i].indices] for i in range(matrix.shape[0])]
    sets = [{*map(int, decided[i].indices)} for i in range(matrix.shape[0])]
    return reference.utility(rows, sets, np.asarray(matrix.sum(axis=0)).ravel().tolist(), {key: 1.0}, k)


@pytest.mark.parametrize("key", OF_MATRICES)
def test_nothing_is_better_for_a_measure(key: str) -> None:
    """Than what is decided for any other one, or nearly so: an ascent may end before the highest place."""
    matrix, _ = problem(3, 40, 12)
    decided = {other: labeltree.decide(matrix, measure=f"{other}@2") for other in OF_MATRICES}
    own = expected(matrix, decided[key], key, 2)
    assert all(own >= expected(matrix, each, key, 2) - 0.02 * own for each in decided.values())
    assert (np.diff(decided[key].indptr) == 2).all()
    again = labeltree.decide(matrix, measure=f"{key}@2")
    assert (again != decided[key]).nnz == 0
    if key == "p":
        top = -np.sort(-matrix.toarray(), axis=1)[:, :2]
        np.testing.assert_allclose(-np.sort(-decided[key].toarray(), axis=1)[:, :2], top, rtol=1e-6)


def test_a_model_decides() -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, neighbours=0)
    for measure in ("macro-f1@2", "coverage@1", "0.5*p@3+0.5*coverage@3"):
        found = labeltree.decide(model, TEST.texts, measure=measure)
        assert {len(row) for row in found} == {int(measure[-1])}
        assert all(p == sorted(p, reverse=True) for p in ([p for _, p in row] for row in found))
    sets = labeltree.decide(model, TEST.texts, measure="macro-f1")
    assert len({len(row) for row in sets}) > 1
    assert labeltree.decide(model, TEST.texts, measure="p", k=2) == model.predict(TEST.texts, 2)
    rare = labeltree.decide(model, TEST.texts, measure="psp@2")
    weight = 1.0 / labeltree.metrics.propensities(model.label_counts, model.n_examples)
    marginals = model.probability(TEST.texts, model.label_names) * weight
    for row, found in zip(marginals, rare, strict=True):
        best = {model.label_names[label] for label in np.argsort(-row)[:2]}
        assert {name for name, _ in found} == best


@pytest.mark.parametrize("key", ["micro-f1", "instance-f1", "hamming"])
def test_sets_are_the_best_of_all(key: str) -> None:
    """By the expected measure, of all sets of the surest labels."""
    matrix, _ = problem(5, 4, 6)
    dense, decided = matrix.toarray(), labeltree.decide(matrix, measure=key).toarray() > 0

    def value(sets: Any, p: Any, axis: int | None) -> Any:
        if key == "hamming":
            return (np.where(sets, p, 1 - p)).sum()
        return (sets * p).sum(axis=axis) / (sets.sum(axis=axis) + p.sum(axis=axis))

    if key == "instance-f1":
        for p, chosen in zip(dense, decided, strict=True):
            tried = [value(p >= least, p, None) for least in p[p > 0]]
            assert value(chosen, p, None) == pytest.approx(max(tried))
    else:
        tried = [value(dense >= least, dense, None) for least in [*dense[dense > 0], 0.5]]
        assert value(decided, dense, None) == pytest.approx(max(tried))


@pytest.mark.parametrize(
    ("given_to", "measure", "message"),
    [
        (csr_matrix([[0.5]]), "psp@1", "measure 'psp@1' needs a model"),
        (csr_matrix([[0.5]]), "precision>=0.9", "needs no decision"),
        (csr_matrix([[0.5, 0.0], [0.0, 1.5]]), "p@1", "row 1, column 1: 1.5 is no probability from 0 to 1"),
        (csr_matrix([[np.nan]]), "p@1", "nan"),
        ([[0.5]], "p@1", "give a model and X"),
        (csr_matrix([[0.5]]), "what", "is not known"),
    ],
)
def test_wrong_calls_are_refused(given_to: Any, measure: str, message: str) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        labeltree.decide(given_to, measure=measure)


def test_arrays_are_taken_as_they_come_from_a_model() -> None:
    dense = np.array([[0.9, 0.2, 0.1], [0.8, 0.3, 0.0]], np.float32)
    of_array = labeltree.decide(dense, measure="macro-f1@1")
    assert np.array_equal(
        of_array.toarray(), labeltree.decide(csr_matrix(dense), measure="macro-f1@1").toarray()
    )


def test_where_all_is_covered_rows_get_what_is_probable() -> None:
    p = np.tile(np.float32([0.99, 0.4, 0.5]), (300, 1))
    decided = labeltree.decide(csr_matrix(p), measure="coverage@1")
    assert decided.sum() > 0.8 * 300
