"""PPDSparse: the minimum of its objective, by few examples and few weights, however many there are."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from support.problems import Problem, random_problem
from support.small_data import make_toy
from support.sparse_problems import fit, numbers_of, plan_of, same_bytes, solve

import labeltree
from labeltree.config import PRESETS, Config, make_config
from labeltree.nodes.sparse.active import _NOTHING, ActiveSet, _blank_work, _by_child, _by_feature
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.nodes.sparse.tasks import gather, train
from labeltree.reference import active as reference
from labeltree.reference import sparse
from labeltree.reference.sparse import BIAS, NodeExample, Weights
from labeltree.reference.training import Example
from labeltree.trees.shapes import build_flat

LOSSES = ("squared-hinge", "hinge")


def seen_by(problem: Problem, node: int, config: Config) -> list[NodeExample]:
    rows = sparse.rows_of(problem.tree, node, problem.examples)
    return sparse.examples_of(problem.tree, node, rows, problem.examples, config)


def gap(kind: str, weights: Weights, examples: list[NodeExample], C: float, l1: float) -> float:
    """How far above the minimum the weights are at most: any variables within their bounds tell."""
    margins = [example.sign * sparse.score(weights, example.features) for example in examples]
    best = [-C * e.weight * sparse.slope(kind, m) for e, m in zip(examples, margins, strict=True)]
    total: Weights = {}
    for example, dual in zip(examples, best, strict=True):
        for feature, value in example.features.items():
            total[feature] = total.get(feature, 0.0) + dual * example.sign * value
    size = sum(weight**2 for weight in reference.shrink_but_bias(total, l1).values()) / 2
    softness = sum(dual**2 / (4 * C * e.weight) for dual, e in zip(best, examples, strict=True))
    lower = sum(best) - size - (softness if kind == "squared-hinge" else 0.0)
    return reference.objective(kind, weights, examples, C, l1) - lower


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_the_objective_is_that_of_the_reference(loss: str, l1: float) -> None:
    """With more examples than come in at once, so that the active set grows, and rows of any weight."""
    problem = random_problem(build_flat(3), 700, seed=3, n_features=40)
    config = Config(
        solver="active", loss=loss, C=0.5, l1=l1, bias=1.0, tolerance=1e-6, max_iterations=400,
        rare_weight=0.0, calibrate=False,
    )  # fmt: skip
    found = solve(problem, config)
    assert len(found) == problem.tree.n_nodes
    for node, weights in found.items():
        seen = seen_by(problem, node, config)
        slow = reference.ActiveSet(loss, seen, config.C, l1)
        slow.begin([False] * len(seen), 5)  # other random numbers
        slow.train(400, 1e-6)
        ours, theirs = (reference.objective(loss, w, seen, config.C, l1) for w in (weights, slow.weights))
        assert ours == pytest.approx(theirs, rel=1e-4)
        if loss == "squared-hinge":  # whose variables its weights tell
            assert gap(loss, weights, seen, config.C, l1) < 1e-4 * theirs


def test_all_examples_find_the_same_as_few() -> None:
    """The dual solver, which visits every one; without an L1 term, of which the bias has none here."""
    problem = random_problem(build_flat(5), 240, seed=1)
    common: dict[str, Any] = dict(C=0.7, bias=0.5, tolerance=1e-7, max_iterations=2000)
    few, all_ = (solve(problem, Config(solver=solver, **common)) for solver in ("active", "dual"))
    for node, weights in all_.items():
        seen = seen_by(problem, node, Config(**common))
        expected = sparse.objective("squared-hinge", weights, seen, 0.7, 0.0)
        found = sparse.objective("squared-hinge", few[node], seen, 0.7, 0.0)
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_l1_term_spares_the_bias() -> None:
    problem = random_problem(build_flat(3), 200, seed=4)
    found = solve(problem, Config(solver="active", l1=1e5, bias=1.0, max_iterations=50))
    assert all(not any(w for f, w in weights.items() if f != BIAS) for weights in found.values())
    assert all(weights[BIAS] != 0.0 for weights in found.values())


def separable(n_rows: int, n_labels: int) -> Problem:
    """A word for each label, and noise: most rows are far beyond the margin of most labels."""
    random = np.random.default_rng(0)
    rows = [
        Example({i % n_labels: 1.0, n_labels + int(random.integers(500)): 0.3}, {i % n_labels})
        for i in range(n_rows)
    ]
    return Problem(build_flat(n_labels), rows, n_labels + 500)


def test_few_examples_have_a_part() -> None:
    config = Config(solver="active", C=1.0, l1=0.1, bias=1.0, max_iterations=60, calibrate=False)
    plan = plan_of(separable(3000, 60), config)
    task = gather(plan, numbers_of(plan)[-1], Scratch(plan))
    examples, features, positive_weight = task.material[:3]
    positive, first = _by_child(examples, len(positive_weight))
    columns, work = _by_feature(examples, len(features)), _blank_work(examples, len(features))
    way = solver_of(plan.config)
    assert isinstance(way, ActiveSet)
    for child in range(5):
        work.random[0] = child
        rows = positive[first[child] : first[child + 1]]
        found = way._solve(plan.config, examples, columns, rows, positive_weight[child], True, _NOTHING, work)
        assert len(rows) <= len(found.active) < 0.35 * len(examples.weight)
        assert 0 < len(found.weights) < 100
        # and nothing is left for the next child
        assert not any(array.any() for array in (work.total, work.dual, work.is_active, work.is_touched))
        assert (work.sign == -1.0).all()


def test_there_is_never_an_array_of_labels_times_features() -> None:
    """Of many features only those with a weight are handed on."""
    problem = separable(500, 64)
    wide = problem._replace(
        examples=[
            one._replace(features=one.features | {1000 + 40 * i + j: 0.01 for j in range(40)})
            for i, one in enumerate(problem.examples)
        ],
        n_features=1000 + 40 * len(problem.examples),
    )
    config = Config(solver="active", l1=0.2, bias=1.0, calibrate=False)
    plan = plan_of(wide, config)
    task = gather(plan, numbers_of(plan)[-1], Scratch(plan))
    list(train(task))  # compiled
    tracemalloc.start()
    *_, trained = train(task)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    n_features = len(task.material.features)
    assert n_features > 20_000
    assert len(trained.features) < 1000
    assert peak < 4 * n_features * 64 / 2


@pytest.mark.parametrize("loss", LOSSES)
def test_threads_do_not_change_a_bit_of_many_children(loss: str) -> None:
    problem = random_problem(build_flat(150), 400, seed=1)
    config = Config(solver="active", loss=loss, l1=0.05, bias=1.0)
    one, three = (fit(problem, config, threads=threads)[0] for threads in (1, 3))
    assert same_bytes(one.parameters, three.parameters)
    assert same_bytes(one.without_held_out, three.without_held_out)


def test_the_preset_is_ppdsparse() -> None:
    config = make_config(preset="ppdsparse")
    assert (config.tree, config.solver, config.bias, config.trees) == ("flat", "active", 1.0, 1)
    assert config.l1 > 0
    assert (config.rare_weight, config.neighbours, config.prune) == (0.0, 0, 0.0)
    toy = make_toy(200, seed=0)
    model = labeltree.train(toy.X, toy.Y, preset="ppdsparse")
    assert model.label_trees[0].depth().max() == 1
    assert model.test(toy.X, toy.Y)["p@1"] > 0.8


def test_the_preset_names_only_parameters_with_effect() -> None:
    make_config(PRESETS["ppdsparse"])
