"""The search kernels against the probabilities of all labels, computed one by one and sorted."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.searches import (
    CLOSE,
    N_FEATURES,
    ZERO,
    Case,
    Tight,
    biases_only,
    cases,
    make_model,
    tied_cases,
)
from support.strategies import (
    chain_tree,
    kept,
    random_parameters,
    random_sparse,
    sparse_rows,
    with_link,
)

from labeltree import LabelTree
from labeltree.data.rows import SparseRows
from labeltree.experts.tree_expert import TreeExpert
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.query import make_query, query_all
from labeltree.reference import search as reference
from labeltree.trees.shapes import build_complete, build_flat


def topk(
    case: Case, k: int, threshold: np.float32 = ZERO, normalize: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    ids = np.full((len(case.features), k), -7, np.int32)
    probabilities = np.full((len(case.features), k), np.nan, np.float32)
    case.search.topk(case.arrays, make_query(k, threshold, normalize), ids, probabilities)
    return ids, probabilities


def assert_best(
    ids: NDArray, probabilities: NDArray, expected: NDArray[np.float64], k: int, close: dict[str, float]
) -> None:
    """The labels may differ from the expected ones only among labels equal but for rounding."""
    n_found = min(k, len(expected))
    assert (ids[n_found:] == -1).all()
    assert not probabilities[n_found:].any()
    ids, probabilities = ids[:n_found], probabilities[:n_found]
    assert len(set(ids.tolist())) == n_found
    assert ids.min() >= 0
    assert (np.diff(probabilities) <= 0).all()
    np.testing.assert_allclose(probabilities, expected[ids], **close)
    np.testing.assert_allclose(probabilities, reference.top_k(expected, n_found)[1], **close)


ks = st.sampled_from([1, 2, 5, 12, 200])


@settings(max_examples=150)
@given(case=cases(), k=ks, normalize=st.booleans())
def test_topk_is_brute_force(case: Case, k: int, normalize: bool) -> None:
    ids, probabilities = topk(case, k, normalize=normalize)
    for row in range(len(case.features)):
        assert_best(ids[row], probabilities[row], case.marginals(row, normalize), k, case.close)


@settings(max_examples=150)
@given(case=tied_cases(), k=ks, threshold=st.sampled_from([0.0, 0.2, 0.7]))
def test_ties_go_to_the_lower_label(case: Case, k: int, threshold: float) -> None:
    ids, probabilities = topk(case, k, np.float32(threshold))
    for row in range(len(case.features)):
        expected_ids, expected = reference.top_k(case.marginals(row), k, threshold)
        assert ids[row].tolist() == expected_ids
        np.testing.assert_allclose(probabilities[row], expected, rtol=4e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_equal_labels_of_different_depth(is_sparse: bool) -> None:
    """Labels that are certain are all equal, whatever the length of their paths."""
    tree = chain_tree(6)
    parameters = biases_only(tree, np.full(tree.n_nodes, np.inf, np.float32), is_sparse)
    ids, probabilities = topk(Case(tree, parameters, [{}]), 4)
    assert ids.tolist() == [[0, 1, 2, 3]]
    assert (probabilities == 1.0).all()


@settings(max_examples=80)
@given(case=cases(), threshold=st.sampled_from([0.0, 1e-6, 0.05, 0.5, 1.0]), normalize=st.booleans())
def test_thresholds(case: Case, threshold: float, normalize: bool) -> None:
    """All labels above, and the top k of them; labels within rounding of the threshold may be in or out."""
    lengths, ids, probabilities = case.search.above(case.arrays, query_all(threshold, normalize))
    best_ids, best = topk(case, 3, np.float32(threshold), normalize)
    close = case.close
    assert len(lengths) == len(case.features)
    ends = np.cumsum(lengths)
    for row, end in enumerate(ends):
        found = ids[end - lengths[row] : end]
        expected = case.marginals(row, normalize)
        assert (np.diff(found) > 0).all()
        sure = set(reference.labels_above(expected, threshold * (1 + close["rtol"])))
        possible = set(reference.labels_above(expected, threshold * (1 - close["rtol"])))
        assert sure <= set(found.tolist()) <= possible
        np.testing.assert_allclose(probabilities[end - lengths[row] : end], expected[found], **close)
        n_best = min(3, len(found))
        assert (best_ids[row, n_best:] == -1).all()
        best_of_found = sorted(expected[found], reverse=True)[:n_best]
        np.testing.assert_allclose(best[row, :n_best], best_of_found, **close)
        np.testing.assert_allclose(expected[best_ids[row, :n_best]], best_of_found, **close)


@settings(max_examples=40)
@given(case=cases(), place=st.integers(0, 10**6))
def test_a_threshold_includes_a_label_of_just_that_probability(case: Case, place: int) -> None:
    _, ids, probabilities = case.search.above(case.arrays, query_all())
    least = probabilities[place % len(probabilities)]
    assert case.search.above(case.arrays, query_all(least))[0].sum() == np.count_nonzero(
        probabilities >= least
    )
    best_ids, _ = topk(case, len(ids), least)
    assert np.count_nonzero(best_ids >= 0) == np.count_nonzero(probabilities >= least)


@settings(max_examples=40)
@given(case=cases())
def test_a_softmax_shares_out_one(case: Case) -> None:
    """Where some sibling is possible everywhere, the paths to all labels sum to 1."""
    parameters = case.parameters._replace(bias=np.nan_to_num(case.parameters.bias, neginf=-3.0, posinf=3.0))
    if isinstance(parameters, SparseParameters):
        parameters = parameters._replace(calibration=np.array([1.0, 1.0, 0.0], np.float32))
    sure = case._replace(parameters=with_link(parameters, "hsm"), link="hsm")
    lengths, ids, probabilities = sure.search.above(sure.arrays, query_all())
    assert len(ids) == case.tree.n_labels * len(case.features)
    sums = np.add.reduceat(probabilities, np.cumsum(lengths) - lengths)
    np.testing.assert_allclose(sums, 1.0, rtol=1e-5 + 4e-6 * sure.close["rtol"] / 1e-4)
    asked = (np.append(0, np.cumsum(lengths)), ids)
    assert np.array_equal(
        sure.search.score(sure.arrays, asked, query_all(normalize=True)), probabilities
    )  # normalised as it is


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_labels", [7, 8, 100])
def test_equal_siblings_of_a_softmax(n_labels: int, is_sparse: bool) -> None:
    """Flat or in pairs: all labels of a level are exactly equal, and the lower ones go first."""
    for tree in (build_flat(n_labels), build_complete(np.ones(n_labels, np.int64), 2)):
        bias = np.zeros(tree.n_nodes, np.float32)
        bias[0] = np.inf
        case = Case(tree, biases_only(tree, bias, is_sparse), [{}, {1: 1.0}], "hsm")
        ids, probabilities = topk(case, n_labels)
        depths = tree.depth_of_leaves
        order = np.lexsort((np.arange(n_labels), depths))
        assert ids.tolist() == [order.tolist()] * 2
        expected = 1.0 / n_labels if tree.n_nodes == n_labels + 1 else 0.5 ** depths[order]
        np.testing.assert_allclose(probabilities[0], np.broadcast_to(expected, n_labels), rtol=1e-5)


@pytest.mark.parametrize("shift", [0.0, 20.0, -300.0])
@pytest.mark.parametrize("score", [3.0, 9.0, 14.0, 20.0])
def test_a_softmax_over_two_is_as_precise_as_a_logistic(score: float, shift: float) -> None:
    """Also where a probability is near 1 and a calibration looks at what is missing to 1."""
    tree = build_flat(2)
    bias = np.array([np.inf, score + shift, shift], np.float32)
    parameters = biases_only(tree, bias, is_sparse=True)._replace(
        calibration=np.array([0.4, 0.6, -0.5], np.float32)
    )
    _, probabilities = topk(Case(tree, parameters, [{}], "hsm"), 2)
    logistic = parameters._replace(bias=np.array([np.inf, score, -score], np.float32))
    _, expected = topk(Case(tree, logistic, [{}]), 2)
    np.testing.assert_allclose(1.0 - probabilities.astype(np.float64), 1.0 - expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_siblings_of_a_softmax_that_are_all_impossible(is_sparse: bool) -> None:
    """What is below a node without any example: their probability is 0, not NaN."""
    tree = LabelTree.from_parents(np.array([-1, 0, 0, 1, 1, 2, 2, 2]), np.array([-1, -1, -1, 0, 1, 2, 3, 4]))
    bias = np.full(tree.n_nodes, -np.inf, np.float32)
    bias[0], bias[1], bias[tree.leaf_of_label[[0, 1]]] = np.inf, 0.0, [1.0, 0.0]
    case = Case(tree, biases_only(tree, bias, is_sparse), [{}], "hsm")
    ids, probabilities = topk(case, 5)
    assert ids.tolist() == [[0, 1, 2, 3, 4]]
    np.testing.assert_allclose(probabilities[0], [np.e / (1 + np.e), 1 / (1 + np.e), 0, 0, 0], rtol=1e-6)
    assert case.search.above(case.arrays, query_all(1e-9))[1].tolist() == [0, 1]
    asked = (np.array([0, 5]), np.arange(5, dtype=np.int32))
    np.testing.assert_array_equal(case.search.score(case.arrays, asked, query_all()), probabilities[0])


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_huge_values_give_finite_probabilities(is_sparse: bool, link: str) -> None:
    tree = build_flat(40)
    random = np.random.default_rng(1)
    parameters: reference.Parameters = DenseParameters(
        random.normal(size=(N_FEATURES, 8)).astype(np.float32),
        random.normal(size=(tree.n_nodes, 8)).astype(np.float32),
        np.zeros(tree.n_nodes, np.float32),
    )
    if is_sparse:
        parameters = random_sparse(tree, N_FEATURES, seed=1, scale=100.0, calibration=(0.3, 2.0, 1.0))
    rows = [{0: 3e38, 1: 3e38, 2: -3e38}, {3: 1e30}]
    case = Case(tree, with_link(parameters, link), rows, link)
    ids, probabilities = topk(case, 5)
    assert np.isfinite(probabilities).all()
    assert (ids >= 0).all()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_more_labels_than_first_expected(is_sparse: bool) -> None:
    """The arrays for labels above a threshold grow as often as needed."""
    tree = build_flat(3000)
    parameters: reference.Parameters = random_parameters(tree, N_FEATURES, 2, seed=0, scale=0.1)
    if is_sparse:
        parameters = random_sparse(tree, N_FEATURES, seed=0, scale=0.1)
    case = Case(tree, parameters, [{}, {1: 1.0}, {0: 0.5, 5: 1.0}])
    lengths, ids, probabilities = case.search.above(case.arrays, query_all())
    assert lengths.tolist() == [3000] * 3
    assert ids.tolist() == list(range(3000)) * 3
    expected = np.concatenate([case.marginals(row) for row in range(3)])
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)


@settings(max_examples=80)
@given(case=cases(), normalize=st.booleans())
def test_marginals_of_given_labels(case: Case, normalize: bool) -> None:
    n_rows, n_labels = len(case.features), case.tree.n_labels
    ids = np.tile(np.arange(-1, n_labels, dtype=np.int32), n_rows)
    indptr = np.arange(n_rows + 1, dtype=np.int64) * (n_labels + 1)
    found = case.search.score(case.arrays, (indptr, ids), query_all(normalize=normalize)).reshape(
        n_rows, n_labels + 1
    )
    best_ids, best = topk(case, n_labels, normalize=normalize)
    for row in range(n_rows):
        assert found[row, 0] == 0.0  # label -1
        np.testing.assert_allclose(found[row, 1:], case.marginals(row, normalize), **case.close)
        np.testing.assert_allclose(found[row, 1:][best_ids[row]], best[row], rtol=0, atol=1e-6)


def test_normalize_of_very_improbable_siblings() -> None:
    """Probabilities far below what a float32 can hold still sum to 1; those of 0 stay 0."""
    tree = chain_tree(3)
    first = int(tree.first_child[0])
    bias = np.full(tree.n_nodes, -np.inf, np.float32)
    bias[0], bias[first], bias[first + 1] = np.inf, -200.0, -201.0
    zeros = np.zeros((tree.n_nodes, 1), np.float32)
    case = Case(tree, DenseParameters(np.zeros((N_FEATURES, 1), np.float32), zeros, bias), [{}])
    _, probabilities = topk(case, 3, normalize=True)
    np.testing.assert_allclose(probabilities[0], reference.top_k(case.marginals(0, True), 3)[1], rtol=1e-5)
    assert (probabilities[0] > 0).sum() == 1


@settings(max_examples=60)
@given(case=cases(), normalize=st.booleans())
def test_a_row_alone_and_in_a_batch(case: Case, normalize: bool) -> None:
    ids, probabilities = topk(case, 4, normalize=normalize)
    for row, features in enumerate(case.features):
        alone_ids, alone = topk(case._replace(features=[features]), 4, normalize=normalize)
        assert alone_ids[0].tobytes() == ids[row].tobytes()
        assert alone[0].tobytes() == probabilities[row].tobytes()


@settings(max_examples=60)
@given(case=st.one_of(cases(), tied_cases()), k=ks, normalize=st.booleans())
def test_algorithm_2_is_brute_force(case: Case, k: int, normalize: bool) -> None:
    """Of the reference itself: the paper's search finds exactly what sorting all labels finds."""
    how = (case.tree, case.parameters, case.features[0], normalize, case.link)
    conditionals = reference.log_conditionals(*how)
    logs = reference.log_marginals(case.tree, conditionals)
    expected = reference.top_k(logs, min(k, len(logs)), -math.inf)[0]
    assert [label for label, _ in reference.best_first(case.tree, conditionals, k)] == expected


@pytest.mark.parametrize("is_sparse", [False, True])
def test_several_python_threads_at_once(is_sparse: bool) -> None:
    tree = chain_tree(60)
    random = np.random.default_rng(3)
    features = [{int(f): 1.0 for f in random.choice(N_FEATURES, 3, replace=False)} for _ in range(200)]
    parameters = (
        random_sparse(tree, N_FEATURES, 1) if is_sparse else random_parameters(tree, N_FEATURES, 5, 1)
    )
    case = Case(tree, parameters, features)
    ids, probabilities = topk(case, 7)
    with ThreadPoolExecutor(6) as executor:
        answers = list(executor.map(lambda _: topk(case, 7), range(24)))
    for their_ids, their_probabilities in answers:
        assert np.array_equal(ids, their_ids)
        assert np.array_equal(probabilities, their_probabilities)


def test_no_rows() -> None:
    tree = build_flat(4)
    case = Case(tree, random_parameters(tree, N_FEATURES, 2, seed=0), [])
    assert topk(case, 3)[0].shape == (0, 3)
    lengths, ids, _ = case.search.above(case.arrays, query_all())
    assert (len(lengths), len(ids)) == (0, 0)


@pytest.mark.parametrize("n_features", [0, N_FEATURES])
def test_a_row_without_features_gets_the_prior(n_features: int) -> None:
    tree = build_flat(3)
    parameters = random_parameters(tree, n_features, 2, seed=4)
    rows = SparseRows(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), n_features)
    ids, probabilities = np.empty((1, 3), np.int32), np.empty((1, 3), np.float32)
    TreeExpert(tree, *kept(parameters), n_features).topk(rows[:3], make_query(3), ids, probabilities)
    prior = 1.0 / (1.0 + np.exp(-parameters.bias.astype(np.float64)))
    expected = prior[0] * prior[tree.leaf_of_label]
    assert_best(ids[0], probabilities[0], expected, 3, CLOSE)


@settings(max_examples=200)
@given(case=cases(), k=st.sampled_from([1, 2, 5, 200]), budget=st.integers(0, 8))
def test_a_search_within_a_budget(case: Case, k: int, budget: int) -> None:
    """What it calls proven is exact; else it has k labels of the right probabilities, like its twin."""
    exact_ids, exact = topk(case, k)
    ids, probabilities = np.empty_like(exact_ids), np.empty_like(exact)
    is_exact = case.search.topk(case.arrays, Tight(k, budget), ids, probabilities)  # type: ignore[arg-type]
    assert np.array_equal(ids[is_exact], exact_ids[is_exact])
    assert np.array_equal(probabilities[is_exact], exact[is_exact])
    for row in range(len(case.features)):
        n_found = min(k, case.tree.n_labels)
        found = ids[row, :n_found]
        assert len(set(found.tolist())) == n_found
        assert found.min() >= 0
        np.testing.assert_allclose(probabilities[row, :n_found], case.marginals(row)[found], **case.close)
        conditionals = reference.log_conditionals(
            case.tree, case.parameters, case.features[row], link=case.link
        )
        if len(np.unique(conditionals.round(4))) < len(conditionals):
            continue  # nodes that are equal but for rounding may be opened in another order
        expected, is_proven = reference.within_budget(case.tree, conditionals, k, budget)
        assert is_exact[row] == is_proven
        with np.errstate(divide="ignore"):
            logs = np.log([path for _, path in expected])
        best = reference.probabilities_of(case.parameters, logs)
        np.testing.assert_allclose(probabilities[row, :n_found], best, **case.close)


def test_the_default_search_ends_where_a_row_is_unsure() -> None:
    """All of 2,000 labels are as probable as each other, but for rounding."""
    tree = build_complete(np.ones(2000, np.int64), 2)
    model = make_model([(tree, random_parameters(tree, N_FEATURES, 4, seed=1, scale=1e-3))])
    X = sparse_rows([{}, {1: 1.0}, {0: 2.0, 3: -1.0}], N_FEATURES)
    ids, probabilities, is_exact = model.predict_arrays(X, 5, return_exact=True)
    assert not is_exact.any()
    assert (ids >= 0).all()
    *_, is_exact = model.predict_arrays(X, 5, search="exact", return_exact=True)
    assert is_exact.all()
    for row in range(3):
        alone = model.predict_arrays(
            SparseRows(X.indptr[row : row + 2] - X.indptr[row], *(
                array[X.indptr[row] : X.indptr[row + 1]] for array in (X.indices, X.values)
            ), N_FEATURES), 5, return_exact=True,
        )  # fmt: skip
        assert np.array_equal(alone[0][0], ids[row])
        assert np.array_equal(alone[1][0], probabilities[row])
        assert alone[2].tolist() == [False]
