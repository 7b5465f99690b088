"""One kernel for several trees and votes: against brute force over all labels, with any budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.lists import Lister, random_votes
from support.searches import N_FEATURES, Tight, Trees, biases_only, linked, links, random_rows
from support.strategies import (
    feature_dicts,
    kept,
    random_parameters,
    random_sparse,
    sparse_rows,
    trees_of,
)

from labeltree.data.rows import SparseRows
from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.combination import Combination
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Found
from labeltree.experts.tree_expert import TreeExpert
from labeltree.query import Query, make_query
from labeltree.reference import search as reference
from labeltree.trees.shapes import build_complete, build_flat

BENT = (-4.5, -3.2, -1.0, -0.9, 0.3, 0.5, 2.0, 3.5, 3.6)
MAPS = [(), (0.6, 1.3, -0.4), (2.0, 0.5, 1.0), (0.9, 1.2, 0.1, *BENT)]
CLOSE = dict(rtol=1e-4, atol=1e-6)


class Mixture(NamedTuple):
    """Trees of one kind and link, experts with lists, and how they are combined."""

    trees: Trees
    link: str
    listers: list[Lister]
    weights: list[float]
    map: tuple[float, ...]

    @property
    def ensemble(self) -> Ensemble:
        trees = [TreeExpert(tree, *kept(own), N_FEATURES, self.link) for tree, own in self.trees]
        return Ensemble([*trees, *self.listers], Combination(np.array(self.weights), np.array(self.map)))

    def expected(self, row: dict[int, float], normalize: bool = False) -> NDArray[np.float64]:
        """The probability of every label."""
        arrays = sparse_rows([row], N_FEATURES)[:3]
        of_trees = [reference.marginals([tree], row, normalize, self.link) for tree in self.trees]
        votes = [lister.dense(arrays)[0].astype(np.float64) for lister in self.listers]
        return reference.combined([*of_trees, *votes], self.weights, self.map)


@st.composite
def mixtures(draw: st.DrawFn) -> Mixture:
    n_labels, n_trees, n_listers = (draw(st.integers(*range)) for range in ((1, 12), (1, 3), (0, 2)))
    kind, link = draw(st.sampled_from(["dense", "sparse"])), draw(links)
    scale, constants = draw(st.sampled_from([0.5, 3.0])), draw(st.sampled_from([0.0, 0.4]))
    trees: Trees = []
    for _ in range(n_trees):
        tree, seed = draw(trees_of(n_labels)), draw(st.integers(0, 999))
        if kind == "dense":
            trees.append(
                (tree, random_parameters(tree, N_FEATURES, 3, seed, scale=scale, constants=constants))
            )
        else:
            map = draw(st.sampled_from([(1.0, 1.0, 0.0), (0.6, 1.3, -0.4)]))
            own = random_sparse(tree, N_FEATURES, seed, scale=scale, constants=constants, calibration=map)
            trees.append((tree, own))
    listers = [Lister(random_votes(N_FEATURES, n_labels, draw(st.integers(0, 99)))) for _ in range(n_listers)]
    weights = [draw(st.sampled_from([0.3, 1.0, 2.5])) for _ in trees]
    weights += [draw(st.sampled_from([0.0, 0.2, 1.0])) for _ in listers]
    return Mixture(linked(trees, link), link, listers, weights, draw(st.sampled_from(MAPS)))


def search(mixture: Mixture, X: SparseRows, query: Query) -> Found:
    """By the kernel, also where one tree is alone."""
    ensemble = mixture.ensemble
    if ensemble.trees is None:
        return best_of_rows(ensemble, X, query, 1)
    ids = np.full((X.n_rows, query.k), -7, np.int32)
    probabilities = np.full((X.n_rows, query.k), np.nan, np.float32)
    is_exact = ensemble.trees.topk(X[:3], ensemble.votes(X[:3]), query, ids, probabilities)
    return ids, probabilities, is_exact


rows_of_features = st.integers(1, 3).flatmap(lambda n: feature_dicts(N_FEATURES, n))


@settings(max_examples=200)
@given(
    mixture=mixtures(),
    rows=rows_of_features,
    k=st.sampled_from([1, 2, 4, 20]),
    threshold=st.sampled_from([0.0, 0.1, 0.5]),
    normalize=st.booleans(),
)
def test_top_k_is_brute_force(
    mixture: Mixture, rows: list[dict[int, float]], k: int, threshold: float, normalize: bool
) -> None:
    X = sparse_rows(rows, N_FEATURES)
    query = make_query(k, threshold, normalize, "exact")
    ids, probabilities, is_exact = search(mixture, X, query)
    assert is_exact.all()
    for row, features in enumerate(rows):
        expected = mixture.expected(features, normalize)
        n_found = int((ids[row] >= 0).sum())
        found = ids[row, :n_found]
        assert (ids[row, n_found:] == -1).all()
        assert not probabilities[row, n_found:].any()
        assert len(set(found.tolist())) == n_found
        assert (np.diff(probabilities[row]) <= 0).all()
        np.testing.assert_allclose(probabilities[row, :n_found], expected[found], **CLOSE)
        if not np.any(np.abs(expected - threshold) < 1e-5) or threshold == 0.0:
            expected_ids, best = reference.top_k(expected, k, threshold)
            assert n_found == sum(label >= 0 for label in expected_ids)
            np.testing.assert_allclose(probabilities[row], best, **CLOSE)


@settings(max_examples=100)
@given(mixture=mixtures(), rows=rows_of_features, k=st.sampled_from([1, 3, 20]), normalize=st.booleans())
def test_it_finds_what_any_experts_would(
    mixture: Mixture, rows: list[dict[int, float]], k: int, normalize: bool
) -> None:
    """The way for experts of any kinds, and the probabilities of given labels."""
    X = sparse_rows(rows, N_FEATURES)
    ensemble, query = mixture.ensemble, make_query(min(k, mixture.trees[0][0].n_labels), 0.0, normalize)
    ids, probabilities, _ = search(mixture, X, query)
    other_ids, others = np.empty_like(ids), np.empty_like(probabilities)
    assert ensemble._topk_of_any(X[:3], query, other_ids, others).all()
    np.testing.assert_allclose(probabilities, others, rtol=1e-5, atol=1e-7)
    indptr = np.arange(len(rows) + 1, dtype=np.int64) * ids.shape[1]
    scores = ensemble.score(X[:3], (indptr, ids.ravel()), query)
    np.testing.assert_allclose(probabilities.ravel(), scores, rtol=1e-5, atol=1e-7)


@settings(max_examples=100)
@given(
    n_labels=st.integers(1, 9),
    n_trees=st.integers(1, 3),
    k=st.sampled_from([1, 3, 12]),
    threshold=st.sampled_from([0.0, 0.3]),
    is_sparse=st.booleans(),
    has_votes=st.booleans(),
    data=st.data(),
)
def test_ties_go_to_the_lower_label(
    n_labels: int,
    n_trees: int,
    k: int,
    threshold: float,
    is_sparse: bool,
    has_votes: bool,
    data: st.DataObject,
) -> None:
    """Every node has probability 0, 1/2 or 1, every vote is one of few: very many labels are equal."""
    trees: Trees = []
    for _ in range(n_trees):
        tree = data.draw(trees_of(n_labels))
        odds = st.sampled_from([-np.inf, 0.0, 0.0, np.inf])
        bias = data.draw(st.lists(odds, min_size=tree.n_nodes, max_size=tree.n_nodes))
        trees.append((tree, biases_only(tree, np.array(bias, np.float32), is_sparse)))
    listers = [Lister(random_votes(N_FEATURES, n_labels, 3))] if has_votes else []
    mixture = Mixture(trees, "plt", listers, [1.0] * (n_trees + has_votes), ())
    rows: list[dict[int, float]] = [{}, {2: 1.0}]
    ids, probabilities, _ = search(mixture, sparse_rows(rows, N_FEATURES), make_query(k, threshold))
    for row, features in enumerate(rows):
        expected_ids, expected = reference.top_k(mixture.expected(features), k, threshold)
        assert ids[row].tolist() == expected_ids
        np.testing.assert_allclose(probabilities[row], expected, rtol=4e-6)


@settings(max_examples=150)
@given(mixture=mixtures(), rows=rows_of_features, k=st.sampled_from([1, 3, 20]), budget=st.integers(0, 6))
def test_what_is_called_proven_is_exact(
    mixture: Mixture, rows: list[dict[int, float]], k: int, budget: int
) -> None:
    X, n_labels = sparse_rows(rows, N_FEATURES), mixture.trees[0][0].n_labels
    exact_ids, exact, _ = search(mixture, X, make_query(k, search="exact"))
    ids, probabilities, is_exact = search(mixture, X, Tight(k, budget))  # type: ignore[arg-type]
    assert np.array_equal(ids[is_exact], exact_ids[is_exact])
    assert np.array_equal(probabilities[is_exact], exact[is_exact])
    for row, features in enumerate(rows):
        found = ids[row, : min(k, n_labels)]
        assert len(set(found.tolist())) == len(found)
        assert found.min() >= 0
        np.testing.assert_allclose(
            probabilities[row, : len(found)], mixture.expected(features)[found], **CLOSE
        )


@pytest.mark.parametrize("n_trees", [1, 3])
def test_more_nodes_than_memory_was_taken_for(n_trees: int) -> None:
    """Rows that are unsure among thousands of labels: they begin again with more room, and still agree."""
    tree = build_complete(np.ones(5000, np.int64), 2)
    trees: Trees = [
        (tree, random_parameters(tree, N_FEATURES, 3, seed, scale=0.01)) for seed in range(n_trees)
    ]
    lister = Lister(random_votes(N_FEATURES, 5000, 1))
    mixture = Mixture(trees, "plt", [lister], [1.0] * n_trees + [0.001], MAPS[1])
    rows = random_rows(5)
    X = sparse_rows(rows, N_FEATURES)
    _, probabilities, is_exact = search(mixture, X, make_query(9, search="exact"))
    assert is_exact.all()
    for row, features in enumerate(rows):
        expected = reference.top_k(mixture.expected(features), 9)[1]
        np.testing.assert_allclose(probabilities[row], expected, **CLOSE)


@pytest.mark.parametrize("n_trees", [1, 2])
def test_one_row_alone_and_threads_change_nothing(n_trees: int) -> None:
    tree = build_flat(50)
    trees: Trees = [(tree, random_sparse(tree, N_FEATURES, seed)) for seed in range(n_trees)]
    mixture = Mixture(
        trees, "plt", [Lister(random_votes(N_FEATURES, 50, 1))], [1.0] * n_trees + [0.5], MAPS[1]
    )
    ensemble, X = mixture.ensemble, sparse_rows(random_rows(700), N_FEATURES)
    query = make_query(5)
    ids, probabilities, _ = best_of_rows(ensemble, X, query, 1)
    for threads in (2, 3):
        their_ids, theirs, _ = best_of_rows(ensemble, X, query, threads)
        assert np.array_equal(ids, their_ids)
        assert np.array_equal(probabilities, theirs)
    for row in range(0, 700, 100):
        part = slice(X.indptr[row], X.indptr[row + 1])
        indices, values = X.indices[part].copy(), X.values[part].copy()
        alone = ensemble.topk_row(indices, values, len(indices), 0, query)
        assert alone is not None
        assert np.array_equal(alone[0][0], ids[row])
        assert np.array_equal(alone[1][0], probabilities[row])
