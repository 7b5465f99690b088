"""Prediction by a model of one tree or several: exact against the average over all labels, for any call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.searches import Trees, ensembles, linked, links, make_model, random_rows
from support.strategies import (
    feature_dicts,
    kept,
    label_rows,
    random_parameters,
    random_sparse,
    sparse_rows,
)

from labeltree.data.rows import SparseRows
from labeltree.errors import DataError, ParameterError
from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.combination import equal_weights
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.tree_expert import TreeExpert
from labeltree.query import make_query
from labeltree.reference import search as reference
from labeltree.trees.shapes import build_flat

N_FEATURES = 6
CLOSE = dict(rtol=1e-4, atol=1e-6)


def expected_marginals(
    trees: Trees, rows: list[dict[int, float]], normalize: bool = False, link: str = "plt"
) -> NDArray:
    return np.array([reference.marginals(trees, row, normalize, link) for row in rows])


@settings(max_examples=150)
@given(
    trees=ensembles(),
    rows=st.integers(1, 3).flatmap(lambda n: feature_dicts(N_FEATURES, n)),
    k=st.sampled_from([1, 2, 4, 20]),
    threshold=st.sampled_from([0.0, 0.1]),
    normalize=st.booleans(),
    link=links,
)
def test_top_k_is_brute_force(
    trees: Trees, rows: list[dict[int, float]], k: int, threshold: float, normalize: bool, link: str
) -> None:
    model, X = make_model(trees := linked(trees, link), link), sparse_rows(rows, N_FEATURES)
    ids, probabilities = model.predict_arrays(X, k, threshold=threshold, normalize=normalize)
    assert ids.shape == probabilities.shape == (len(rows), k)
    assert (ids.dtype, probabilities.dtype) == (np.int32, np.float32)
    for row, expected in enumerate(expected_marginals(trees, rows, normalize, link)):
        close_call = np.any(np.abs(expected - threshold) < 1e-5) and threshold > 0
        found = ids[row] >= 0
        n_found = int(found.sum())
        assert found[:n_found].all()
        assert not probabilities[row, n_found:].any()
        assert len(set(ids[row, :n_found].tolist())) == n_found
        assert (np.diff(probabilities[row]) <= 0).all()
        np.testing.assert_allclose(probabilities[row, :n_found], expected[ids[row, :n_found]], **CLOSE)
        expected_ids, best = reference.top_k(expected, k, threshold)
        if not close_call:
            assert n_found == sum(label >= 0 for label in expected_ids)
            np.testing.assert_allclose(probabilities[row], best, **CLOSE)


@settings(max_examples=100)
@given(
    trees=ensembles(),
    rows=st.integers(0, 3).flatmap(lambda n: feature_dicts(N_FEATURES, n)),
    threshold=st.sampled_from([0.0, 0.05, 0.4]),
    normalize=st.booleans(),
    link=links,
)
def test_labels_above_a_threshold(
    trees: Trees, rows: list[dict[int, float]], threshold: float, normalize: bool, link: str
) -> None:
    model = make_model(trees := linked(trees, link), link)
    found = model.predict_rows(sparse_rows(rows, N_FEATURES), threshold, normalize=normalize)
    assert (found.n_rows, found.n_columns) == (len(rows), model.n_labels)
    for row, expected in enumerate(expected_marginals(trees, rows, normalize, link)):
        part = slice(found.indptr[row], found.indptr[row + 1])
        ids = found.indices[part]
        assert (np.diff(ids) > 0).all()
        sure = set(reference.labels_above(expected, threshold * (1 + 1e-4)))
        possible = set(reference.labels_above(expected, threshold * (1 - 1e-4)))
        assert sure <= set(ids.tolist()) <= possible
        np.testing.assert_allclose(found.values[part], expected[ids], **CLOSE)


@settings(max_examples=60)
@given(trees=ensembles(), rows=feature_dicts(N_FEATURES, 2), normalize=st.booleans(), link=links)
def test_marginals_of_given_labels(
    trees: Trees, rows: list[dict[int, float]], normalize: bool, link: str
) -> None:
    model, X = make_model(trees := linked(trees, link), link), sparse_rows(rows, N_FEATURES)
    expected = expected_marginals(trees, rows, normalize, link)
    wanted = list(reversed(range(model.n_labels)))
    names = [f"label{label}" for label in wanted]
    found = model.probability(X, names, normalize=normalize)
    np.testing.assert_allclose(found, expected[:, wanted], **CLOSE)
    given_labels = label_rows([set(), {-1, model.n_labels - 1}], model.n_labels)
    by_row = model.probability_rows(X, given_labels, normalize=normalize)
    np.testing.assert_allclose(by_row, [0.0, expected[1, -1]], **CLOSE)


def test_the_union_of_top_lists_would_be_wrong() -> None:
    """Label 2 is no tree's best, but the best on average: one list of k per tree does not find it."""
    tree = build_flat(4)
    trees = []
    for probabilities in ([0.9, 0.0, 0.6, 0.5], [0.0, 0.9, 0.6, 0.5]):
        with np.errstate(divide="ignore"):
            odds = np.log(np.array([1.0, *probabilities])) - np.log1p(-np.array([1.0, *probabilities]))
        zeros = random_parameters(tree, N_FEATURES, 1, 0, scale=0.0)
        trees.append((tree, zeros._replace(bias=odds.astype(np.float32))))
    ids, probabilities = make_model(trees).predict_arrays(sparse_rows([{}], N_FEATURES), 1)
    assert ids.tolist() == [[2]]
    assert probabilities[0, 0] == pytest.approx(0.6)


def test_ties_of_an_ensemble_go_to_the_lower_label() -> None:
    tree = build_flat(40)
    equal = random_parameters(tree, N_FEATURES, 2, 0, scale=0.0)
    ids, _ = make_model([(tree, equal)] * 3).predict_arrays(sparse_rows([{}, {1: 2.0}], N_FEATURES), 5)
    assert ids.tolist() == [[0, 1, 2, 3, 4]] * 2


def test_rows_of_an_ensemble_go_as_deep_as_they_need() -> None:
    """Rows end at different depths; each answer is that of the row alone."""
    trees = []
    for seed in range(3):
        tree = build_flat(60)
        trees.append((tree, random_parameters(tree, N_FEATURES, 4, seed, scale=2.0)))
    searches = [TreeExpert(tree, *kept(parameters), N_FEATURES) for tree, parameters in trees]
    ensemble = Ensemble(searches, equal_weights(len(searches)))
    rows = random_rows(30)
    ids, probabilities, is_exact = best_of_rows(ensemble, sparse_rows(rows, N_FEATURES), make_query(3), 1)
    assert is_exact.all()
    for row, expected in enumerate(expected_marginals(trees, rows)):
        np.testing.assert_allclose(probabilities[row], reference.top_k(expected, 3)[1], **CLOSE)
        alone = best_of_rows(ensemble, sparse_rows([rows[row]], N_FEATURES), make_query(3), 1)
        assert alone[0][0].tobytes() == ids[row].tobytes()
        assert alone[1][0].tobytes() == probabilities[row].tobytes()


@pytest.mark.parametrize("n_trees", [1, 2, 3])
def test_a_longer_list_begins_with_the_shorter_one(n_trees: int) -> None:
    """Also when more labels are asked for than there are."""
    tree = build_flat(30)
    trees: Trees = [(tree, random_sparse(tree, N_FEATURES, 5, scale=1e-7))] if n_trees > 2 else []
    trees += [(tree, random_parameters(tree, N_FEATURES, 4, seed, scale=1e-7)) for seed in range(n_trees)]
    model, X = make_model(trees), sparse_rows(random_rows(20), N_FEATURES)
    longest, most = model.predict_arrays(X, 50)
    assert (longest[:, 30:] == -1).all()
    for k in (1, 7, 30):
        ids, probabilities = model.predict_arrays(X, k)
        assert np.array_equal(ids, longest[:, :k])
        assert np.array_equal(probabilities, most[:, :k])


@pytest.mark.parametrize("n_trees", [1, 2])
def test_threads_and_callers_do_not_change_the_answer(n_trees: int) -> None:
    tree = build_flat(50)
    trees: Trees = [(tree, random_sparse(tree, N_FEATURES, seed=5))]
    trees = [(tree, random_parameters(tree, N_FEATURES, 4, seed)) for seed in range(1, n_trees)] + trees
    model, X = make_model(trees), sparse_rows(random_rows(700), N_FEATURES)  # enough for several threads
    ids, probabilities = model.predict_arrays(X, 5, threads=1)
    above = model.predict_rows(X, 0.3, threads=1)
    chosen = model.probability(X, ["label3", "label7"], threads=1)

    def ask(threads: int) -> None:
        their_ids, their_probabilities = model.predict_arrays(X, 5, threads=threads)
        assert np.array_equal(ids, their_ids)
        assert np.array_equal(probabilities, their_probabilities)
        for mine, theirs in zip(above[:3], model.predict_rows(X, 0.3, threads=threads)[:3], strict=True):
            assert np.array_equal(mine, theirs)
        assert np.array_equal(chosen, model.probability(X, ["label3", "label7"], threads=threads))

    ask(3)
    with ThreadPoolExecutor(4) as callers:
        list(callers.map(ask, [1, 2, 3, 1]))


def test_predict_gives_names_best_first() -> None:
    tree = build_flat(5)
    model = make_model([(tree, random_parameters(tree, N_FEATURES, 3, seed=1))])
    X = sparse_rows(random_rows(4), N_FEATURES)
    ids, probabilities = model.predict_arrays(X, 8)
    for row, pairs in enumerate(model.predict(X, 8)):
        assert [name for name, _ in pairs] == [f"label{label}" for label in ids[row, :5]]
        assert [p for _, p in pairs] == probabilities[row, :5].tolist()
    for row, pairs in enumerate(model.predict(X, None, threshold=0.2)):
        assert [p for _, p in pairs] == pytest.approx([p for p in probabilities[row] if p >= 0.2])
        assert [name for name, _ in pairs] == [f"label{label}" for label in ids[row, : len(pairs)]]


def test_no_rows_and_any_integer() -> None:
    tree = build_flat(3)
    model = make_model([(tree, random_parameters(tree, N_FEATURES, 3, seed=1))])
    nothing = SparseRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), N_FEATURES)
    assert model.predict_arrays(nothing, 2)[0].shape == (0, 2)
    assert model.predict_rows(nothing, 0.5).n_rows == 0
    assert model.predict(nothing) == []
    X = sparse_rows(random_rows(2), N_FEATURES)
    assert np.array_equal(model.predict_arrays(X, np.int16(2))[0], model.predict_arrays(X, 2)[0])


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "5"])
def test_bad_k(k: object) -> None:
    model = make_model([(build_flat(3), random_parameters(build_flat(3), N_FEATURES, 3, seed=1))])
    with pytest.raises(ParameterError, match="k must be at least 1, but is"):
        model.predict_arrays(sparse_rows([{}], N_FEATURES), k)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan"), "0.5", True])
def test_bad_threshold(threshold: object) -> None:
    model = make_model([(build_flat(3), random_parameters(build_flat(3), N_FEATURES, 3, seed=1))])
    X = sparse_rows([{}], N_FEATURES)
    with pytest.raises(ParameterError, match="threshold must be"):
        model.predict_arrays(X, 2, threshold=threshold)
    with pytest.raises(ParameterError, match="threshold must be"):
        model.predict_rows(X, threshold)
    with pytest.raises(ParameterError, match="lists all labels above a threshold"):
        model.predict(X, None)


def test_bad_labels() -> None:
    model = make_model([(build_flat(3), random_parameters(build_flat(3), N_FEATURES, 3, seed=1))])
    X = sparse_rows([{}], N_FEATURES)
    with pytest.raises(DataError, match="'label9' is not among the model's 3 labels"):
        model.probability(X, ["label1", "label9"])
    with pytest.raises(DataError, match="wrap a label in a list"):
        model.probability(X, "label1")
    with pytest.raises(DataError, match="X has 1 rows, but labels has 2"):
        model.probability_rows(X, label_rows([{0}, {1}], 3))
    with pytest.raises(DataError, match="label id 3 is not below 3"):
        model.probability_rows(X, label_rows([{3}], 4))
    assert model.probability(X, []).shape == (1, 0)
