"""Decisions for rows together: the ascent is that of the plain loops, and gains what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from support.small_data import make_toy

import labeltree
from labeltree.data.rows import read_only
from labeltree.decisions.batch import MEASURES
from labeltree.errors import DataError, ParameterError
from labeltree.kernels.decisions.ascent import Totals, ascend
from labeltree.reference import decisions as reference

TRAIN, TEST = make_toy(200), make_toy(50, seed=4)
OF_MATRICES = [key for key in MEASURES if key != "psp"]  # which needs to know how frequent labels are


def problem(
    seed: int, n_rows: int = 6, n_labels: int = 5
) -> tuple[csr_matrix, list[list[tuple[int, float]]]]:
    random = np.random.default_rng(seed)
    dense = random.random((n_rows, n_labels)) * (random.random((n_rows, n_labels)) < 0.7)
    matrix = csr_matrix(dense)
    rows = [[(int(j), float(dense[i, j])) for j in np.flatnonzero(dense[i])] for i in range(n_rows)]
    return matrix, rows


@settings(max_examples=100)
@given(
    st.integers(0, 9999),
    st.integers(0, 3),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=7, max_size=7),
)
def test_a_pass_agrees_with_the_reference(seed: int, k: int, coefficients: list[float]) -> None:
    matrix, rows = problem(seed)
    support = np.asarray(matrix.sum(axis=0)).ravel() + 0.1
    order = np.random.default_rng(seed).permutation(len(rows))
    chosen, nothing = np.zeros(matrix.nnz, np.bool_), np.zeros(5)
    inverse = np.random.default_rng(seed).uniform(0.1, 2.0, 5)
    totals = Totals(
        *(nothing.copy() for _ in range(3)), *map(read_only, (support, inverse)), np.empty((5, 2))
    )
    given_rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, order
    ascend(*map(read_only, given_rows), k, len(rows), read_only(np.array(coefficients)), totals, chosen)
    measures = dict(zip(MEASURES, coefficients, strict=True))
    given_to = support.tolist(), measures, k
    sets = reference.ascend(rows, [set() for _ in rows], *given_to, order.tolist(), inverse.tolist())
    indices, found = matrix.indices, []
    for i in range(len(rows)):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        found.append({*indices[part][chosen[part]].tolist()})
    own, wanted = (reference.utility(rows, each, *given_to, inverse.tolist()) for each in (found, sets))
    assert own == pytest.approx(wanted, abs=1e-6)
    if k:
        assert [len(row) for row in found] == [min(k, len(row)) for row in rows]


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
        (csr_matrix([[1.5]]), "p@1", "from 0 to 1"),
        ([[0.5]], "p@1", "give a model and X"),
        (csr_matrix([[0.5]]), "what", "is not known"),
    ],
)
def test_wrong_calls_are_refused(given_to: Any, measure: str, message: str) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        labeltree.decide(given_to, measure=measure)
