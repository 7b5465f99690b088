"""A program's own link: one table entry and bodies for its type, and dense nodes train and search with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import Problem, arrays_of, random_problem
from support.small_data import make_toy, with_effect
from support.strategies import sparse_rows

import labeltree
from labeltree import LabelTree
from labeltree.config import Config
from labeltree.errors import ParameterError
from labeltree.experts.tree_expert import TreeExpert
from labeltree.kernels.links import (
    apply_link,
    apply_link_alone,
    count_learned,
    judge_siblings,
    needs_siblings,
    weigh_children,
)
from labeltree.nodes import LINKS
from labeltree.nodes.dense.fitting import fit_dense
from labeltree.nodes.dense.quantized import DenseParameters, quantize
from labeltree.nodes.kind import FitInput, FitProgress
from labeltree.nodes.links import Link
from labeltree.parallel import Pool
from labeltree.query import make_query
from labeltree.reference.search import log_marginals, node_scores
from labeltree.training.driver import estimate
from labeltree.trees import BUILDERS
from labeltree.trees.shapes import build_complete

TRAIN = make_toy(200, seed=0)

# The complementary log-log link: P(node | parent) = 1 - exp(-exp(score)).


class LogLog(NamedTuple):
    """Scores in training are taken for these beyond them: numbers must stay finite."""

    least: float
    largest: float


@apply_link.of(LogLog)
def _apply(link, scores, n):
    for c in range(n):
        scores[c] = math.log(-math.expm1(-math.exp(np.float64(scores[c]))))


@apply_link_alone.of(LogLog)
def _apply_alone(link, scores):
    apply_link(link, scores, 1)


@needs_siblings.of(LogLog)
def _needs_siblings(link):
    return False


@count_learned.of(LogLog)
def _count_learned(link, n_children):
    return n_children


@judge_siblings.of(LogLog)
def _judge(link, scores, first, n_learned, positive, begin, end):
    """Loss exp(s) without a label below, and -log(1 - exp(-exp(s))) with one."""
    loss = 0.0
    place = begin
    for c in range(n_learned):
        rate = math.exp(min(max(scores[c], link.least), link.largest))
        if place < end and positive[place] == first + c:
            place += 1
            scores[c] = -rate / math.expm1(rate)
            loss -= math.log(-math.expm1(-rate))
        else:
            scores[c] = rate
            loss += rate
    return loss


@weigh_children.of(LogLog)
def _weigh(link, scores, n):
    for c in range(n):
        scores[c] = -math.expm1(-math.exp(np.float64(scores[c])))
    return 1.0


def first_bias(weight: NDArray[np.float64], tree: LabelTree, total: float) -> NDArray[np.float32]:
    above = np.where(tree.parent >= 0, weight[np.maximum(tree.parent, 0)], total)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.log(-np.log1p(-np.where(above > 0.0, weight / above, 0.0)))
    return bias.astype(np.float32)


@pytest.fixture(autouse=True)
def loglog() -> Iterator[None]:
    kernel = LogLog(-15.0, 3.0)
    LINKS.add("loglog", Link("loglog", False, kernel, kernel, first_bias))
    yield
    LINKS.remove("loglog")


def train(problem: Problem, config: Config) -> tuple[DenseParameters, list[float]]:
    reports: list[FitProgress] = []
    with Pool(1) as pool:
        found = fit_dense(FitInput(arrays_of(problem), problem.tree, config, 1, pool, reports.append))
    return found, [report.loss for report in reports]


def marginals(
    tree: LabelTree, parameters: DenseParameters, features: dict[int, float]
) -> NDArray[np.float64]:
    rate = np.exp(node_scores(tree, parameters, features))
    with np.errstate(divide="ignore"):
        return np.exp(log_marginals(tree, np.log(-np.expm1(-rate))))


@pytest.fixture
def problem() -> Problem:
    return random_problem(build_complete(np.ones(23, np.int64), 4), 60, seed=5)


def test_training_starts_at_the_frequencies(problem: Problem) -> None:
    found, _ = train(problem, Config(link="loglog", lr=0.0, epochs=1, dim=3))
    weight = sum(example.weight for example in problem.examples)
    for label, probability in enumerate(marginals(problem.tree, found, {})):
        having = sum(example.weight for example in problem.examples if label in example.labels)
        assert probability == pytest.approx(having / weight, rel=1e-5)


@pytest.mark.parametrize(
    "how", [dict(lr=0.1), dict(lr=0.02, optimizer="sgd", batch_size=1)], ids=["batches", "steps"]
)
def test_dense_nodes_learn(problem: Problem, how: dict) -> None:
    _, losses = train(problem, Config(link="loglog", epochs=30, dim=8, **how))
    assert losses[-1] < 0.7 * losses[0]


def test_models_of_the_link_are_trained_saved_and_loaded(tmp_path: Path) -> None:
    texts, labels = ["red apple", "green apple", "red fox", "brown fox"] * 5, [["a"], ["a"], ["b"], ["b"]] * 5
    model = labeltree.train(texts, labels, nodes="dense", link="loglog", dim=4, epochs=20, lr=0.1)
    assert [row[0][0] for row in model.predict(["green apple", "brown fox"], 1)] == ["a", "b"]
    model.save(tmp_path / "model")
    assert labeltree.load(tmp_path / "model").predict(texts[:4]) == model.predict(texts[:4])


@pytest.mark.parametrize("tree", BUILDERS)
def test_every_tree_goes_with_the_link(tree: str) -> None:
    """The learned tree moves labels by the link's probabilities."""
    how = with_effect(tree=tree, nodes="dense", link="loglog", arity=3, dim=8, epochs=15, batch_size=16)
    model = labeltree.train(TRAIN.texts, TRAIN.Y, **how, lr=0.1)
    assert labeltree.train(TRAIN.texts, TRAIN.Y, **how, lr=0.1).label_trees == model.label_trees
    found = [row[0][0] for row in model.predict(TRAIN.texts, 1)]
    n_right = sum(label in labels for label, labels in zip(found, TRAIN.Y, strict=True))
    assert n_right > 0.7 * len(found)


@pytest.mark.parametrize(("nodes", "C"), [("sparse", 0.0), ("sparse", 1.0), ("both", 0.0)])
def test_sparse_nodes_refuse_the_link_before_the_data_is_read(nodes: str, C: float, tmp_path: Path) -> None:
    message = "sparse nodes cannot be trained with link 'loglog'; use nodes='dense'"
    for call in (labeltree.train, estimate):
        with pytest.raises(ParameterError, match=message):
            call(tmp_path / "missing", nodes=nodes, link="loglog", C=C)


def test_searches_find_what_the_link_says(problem: Problem) -> None:
    trained, _ = train(problem, Config(link="loglog", epochs=10, dim=8, lr=0.1))
    parameters, tree = quantize(trained), problem.tree
    search = TreeExpert(tree, "dense", parameters, problem.n_features, "loglog")
    features = [dict(example.features) for example in problem.examples]
    arrays = sparse_rows(features, problem.n_features)[:3]
    expected = np.array([marginals(tree, parameters.floats(), row) for row in features])
    asked = np.arange(tree.n_labels, dtype=np.int32)
    indptr = np.arange(len(features) + 1) * len(asked)
    found = search.score(arrays, (indptr, np.tile(asked, len(features))), make_query(1))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-7)
    for normalize in (False, True):  # the same, as the link has no other for it
        for how in ({}, {"search": "beam", "beam": tree.n_nodes}):
            ids = np.empty((len(features), 3), np.int32)
            probabilities = np.empty((len(features), 3), np.float32)
            search.topk(arrays, make_query(3, normalize=normalize, **how), ids, probabilities)
            best = np.sort(expected, axis=1)[:, :-4:-1]
            np.testing.assert_allclose(probabilities, best, rtol=1e-4, atol=1e-7)
            np.testing.assert_allclose(np.take_along_axis(expected, ids, axis=1), best, rtol=1e-4, atol=1e-7)
