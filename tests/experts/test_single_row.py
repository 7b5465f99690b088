"""Single texts and rows of models with several experts: the quick way, and what it leaves to batches."""

from __future__ import annotations

import numpy as np
import pytest
from support.lists import Lister, random_votes
from support.searches import N_FEATURES, make_model, random_rows
from support.small_data import make_toy
from support.strategies import random_parameters, random_sparse, sparse_rows

import labeltree
from labeltree.experts.combination import Combination
from labeltree.model import Model
from labeltree.query import make_query
from labeltree.trees.shapes import build_complete

N_LABELS = 40


def with_votes(n_trees: int, is_sparse: bool) -> Model:
    """Trees and a list, whose average is mapped."""
    tree = build_complete(np.ones(N_LABELS, np.int64), 4)
    make = random_sparse if is_sparse else lambda *given: random_parameters(*given[:2], 3, given[2])
    trees = make_model([(tree, make(tree, N_FEATURES, seed)) for seed in range(n_trees)])
    experts = [*trees.experts, Lister(random_votes(N_FEATURES, N_LABELS, 1))]
    combination = Combination(np.array([1.0] * n_trees + [0.4]), np.array([0.8, 1.1, -0.2]))
    parts = trees.config, trees.features, trees.labels, trees.label_counts, trees.n_examples
    return Model(*parts, experts, combination)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_trees", [1, 3])
def test_a_row_alone_is_the_row_of_a_batch(n_trees: int, is_sparse: bool) -> None:
    model = with_votes(n_trees, is_sparse)
    rows = random_rows(12)
    for how in ({}, {"threshold": 0.3}, {"normalize": True}, {"search": "exact"}, {"if_unknown": "nothing"}):
        ids, probabilities = model.predict_arrays(sparse_rows(rows, N_FEATURES), 4, **how)
        for row, features in enumerate(rows):
            alone = model.predict_arrays(sparse_rows([features], N_FEATURES), 4, **how)
            assert np.array_equal(alone[0][0], ids[row])
            assert np.array_equal(alone[1][0], probabilities[row])


def test_the_quick_way_is_taken() -> None:
    """And not for what is wrong with a row, which the way of batches says."""
    model, query = with_votes(2, is_sparse=True), make_query(4)
    good = sparse_rows([{1: 1.0, 4: 2.0}], N_FEATURES)
    assert model._single_row.best(good, query) is not None
    bad = good._replace(values=np.array([np.nan, 1.0], np.float32))
    assert model._single_row.best(bad, query) is None
    assert model._single_row.best(good, make_query(4, search="beam")) is None


def test_a_text_alone_is_the_text_of_a_batch() -> None:
    train, test = make_toy(200, seed=0), make_toy(20, seed=1)
    model = labeltree.train(train.texts, train.Y, trees=2)
    assert model._single_row.best(test.texts[:1], make_query(3)) is not None
    together = model.predict(test.texts, 3)
    assert [model.predict([text], 3)[0] for text in test.texts] == together
    (nothing,) = model.predict(["unheardof"], 3, if_unknown="nothing")
    assert nothing == []
