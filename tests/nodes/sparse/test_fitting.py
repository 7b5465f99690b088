"""Training of sparse nodes: the kernels against the reference and liblinear, packing, odd data."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.problems import Problem, problems, random_problem
from support.sparse_problems import (
    EXACT,
    METHODS,
    Pushed,
    arrays_of,
    assert_close,
    fit,
    resolved,
    same_bytes,
    solve,
    sum_pushes,
)
from support.strategies import chain_tree

from labeltree import LabelTree
from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.experts.held_out import choose_rows
from labeltree.kernels.lanes import LANES
from labeltree.kernels.sparse.arrays import FEW_LANES
from labeltree.nodes.chunks import chunk_starts
from labeltree.nodes.kind import FitInput, FitProgress
from labeltree.nodes.sparse.fitting import fit_sparse
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.parallel import Pool
from labeltree.reference import sparse as reference
from labeltree.reference.sparse import BIAS, Weights
from labeltree.reference.training import Example, initial_bias
from labeltree.trees.shapes import build_flat


def seen_by(problem: Problem, node: int, config: Config) -> list[reference.NodeExample]:
    rows = reference.rows_of(problem.tree, node, problem.examples)
    return reference.examples_of(problem.tree, node, rows, problem.examples, config)


# The solvers


@settings(max_examples=80)
@given(
    problem=problems(),
    method=st.sampled_from(["squared-hinge", "active", "active-hinge", "sgd"]),
    n_passes=st.sampled_from([1, 2, 5]),
    bias=st.sampled_from([0.0, 0.2, 1.0]),
    l1=st.sampled_from([0.0, 0.1]),
    positive_weight=st.sampled_from([1.0, 3.0]),
    rare_weight=st.sampled_from([0.0, 5.0]),
    seed=st.integers(0, 99),
)
def test_agrees_with_the_reference(
    problem: Problem,
    method: str,
    n_passes: int,
    bias: float,
    l1: float,
    positive_weight: float,
    rare_weight: float,
    seed: int,
) -> None:
    config = Config(
        **METHODS[method], max_iterations=n_passes, epochs=n_passes, bias=bias, l1=l1, tolerance=0.0,
        positive_weight=positive_weight, rare_weight=rare_weight, eta=0.5, l2=0.01,
    )  # fmt: skip
    expected = reference.fit_weights(problem.tree, problem.examples, config, seed)
    assert_close(solve(problem, config, seed=seed), expected, 2e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["flat", "chain"])
def test_agrees_with_the_reference_on_more_rows(method: str, shape: str) -> None:
    tree = build_flat(70) if shape == "flat" else chain_tree(8)
    problem = random_problem(tree, 25, seed=5, n_features=25)
    config = Config(**METHODS[method], max_iterations=25, epochs=6, eta=0.5, **EXACT)
    expected = reference.fit_weights(tree, problem.examples, config, 7)
    assert_close(solve(problem, config, seed=7), expected, 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_held_out_rows_join_in_the_last_pass(method: str) -> None:
    problem = random_problem(build_flat(2), 520, seed=6, n_features=12)
    held_out = choose_rows(arrays_of(problem)[2]).tolist()
    assert len(held_out) >= 50
    config = Config(**METHODS[method], max_iterations=6, epochs=3, eta=0.1, C=0.02, **EXACT)
    expected = reference.fit_weights(problem.tree, problem.examples, config, 1, held_out)
    assert_close(solve(problem, config, seed=1), expected, 2e-3)


@settings(max_examples=60)
@example(  # the second label's two rows pull its one weight to both sides
    problem=Problem(
        build_flat(150),
        [
            Example({0: 2.0}, {64}),
            Example({}, {0}),
            Example({0: 2.0}, {0}, 3.0),
            Example({}, set()),
            Example({}, set()),
        ],
    ),
    loss="squared-hinge",
    C=4.0,
    bias=0.0,
    l1=0.0,
    rare_weight=0.0,
)
@given(
    problem=problems(),
    loss=st.sampled_from(["squared-hinge", "log"]),  # where a hinge bends, it has no slope
    C=st.sampled_from([0.1, 1.0, 4.0]),
    bias=st.sampled_from([0.0, 0.5]),
    l1=st.sampled_from([0.0, 0.05, 0.5]),
    rare_weight=st.sampled_from([0.0, 3.0]),
)
def test_the_solution_is_optimal(
    problem: Problem, loss: str, C: float, bias: float, l1: float, rare_weight: float
) -> None:
    """At the minimum 0 is in the subdifferential: w = shrink(-gradient of the losses)."""
    config = Config(
        loss=loss, C=C, bias=bias, l1=l1, rare_weight=rare_weight, max_iterations=5000, tolerance=1e-8
    )
    n_siblings = min(int(problem.tree.n_children.max()), 64)
    for node, weights in solve(problem, config).items():
        seen = [
            Pushed(one.features, push_of(loss, C, one, weights), C * one.weight)
            for one in seen_by(problem, node, config)
        ]
        # Without weights the losses sum up to all costs. They are no more at the minimum, and the variables
        # of a node are then no more than twice that. Positive examples of rarer siblings count for more.
        total = 2 * sum(one.cost for one in seen) * n_siblings * (1.0 + rare_weight)
        downhill, error = sum_pushes(seen, config, total)
        best = reference.shrink(downhill, l1)
        for feature, weight in weights.items():
            assert weight == pytest.approx(best[feature], abs=error[feature]), (node, feature)


def push_of(loss: str, C: float, one: reference.NodeExample, weights: Weights) -> float:
    """An example's dual variable, were it the best for these weights, times its sign."""
    features, sign, weight = one
    return -C * weight * sign * reference.slope(loss, sign * reference.score(weights, features))


def test_the_tolerance_ends_training_near_the_minimum() -> None:
    problem = random_problem(build_flat(4), 200, seed=2)
    exact = solve(problem, Config(C=0.7, max_iterations=500, **EXACT))
    config = Config(C=0.7, max_iterations=500, tolerance=0.02, rare_weight=0.0)
    for node, weights in solve(problem, config).items():
        seen = seen_by(problem, node, config)
        best, found = (
            reference.objective("squared-hinge", w, seen, config.C, 0.0) for w in (exact[node], weights)
        )
        assert best <= found + 1e-4 * best
        assert found < 1.05 * best


@pytest.mark.parametrize("bias", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("method", ["squared-hinge", "log", "active", "active-hinge"])
def test_liblinear_finds_the_same_weights(method: str, bias: float) -> None:
    """scikit-learn's solvers of the same problem, with weights of rows and of positive examples."""
    problem = random_problem(build_flat(5), 120, seed=4, n_features=30)
    config = Config(
        **METHODS[method], bias=bias, C=0.8, positive_weight=2.5, prune=0.0, rare_weight=3.0,
        max_iterations=3000, tolerance=1e-7,
    )  # fmt: skip
    loss = config.loss
    raw, kept = solve(problem, config), reference.decode(problem.tree, fit(problem, config)[0].parameters)
    factor, summand = solver_of(config).log_odds
    assert len(raw) == problem.tree.n_nodes
    for node, weights in raw.items():
        coefficients, intercept = liblinear(loss, seen_by(problem, node, config), config, problem.n_features)
        assert weights.pop(BIAS, 0.0) * bias == pytest.approx(intercept, abs=2e-3)
        found = np.array([weights.get(feature, 0.0) for feature in range(problem.n_features)])
        np.testing.assert_allclose(found, coefficients, atol=2e-3)
        assert np.abs(coefficients).max() > 0.2
        # ... and what is kept of it in bytes
        half_step = np.abs(coefficients).max() / 127 / 2
        in_bytes = np.array([kept[node].weights.get(f, 0.0) for f in range(problem.n_features)]) / factor
        np.testing.assert_allclose(in_bytes, coefficients, atol=2e-3 + half_step)
        assert (kept[node].bias - summand) / factor == pytest.approx(intercept, abs=2e-3)


def liblinear(
    loss: str, seen: list[reference.NodeExample], config: Config, n_features: int
) -> tuple[NDArray[np.float64], float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    X = np.zeros((len(seen), n_features))
    for i, one in enumerate(seen):
        for feature, value in one.features.items():
            if feature != BIAS:
                X[i, feature] = value
    common: dict[str, Any] = dict(
        C=config.C, tol=1e-8, max_iter=100_000, fit_intercept=config.bias > 0,
        intercept_scaling=config.bias or 1.0, random_state=0,
    )  # fmt: skip
    if loss != "log":
        solver: Any = LinearSVC(loss=loss.replace("-", "_"), dual=True, **common)
    else:
        solver = LogisticRegression(solver="liblinear", **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver.fit(X, [one.sign for one in seen], [one.weight for one in seen])
    return solver.coef_[0], float(np.ravel(solver.intercept_)[0])


def test_an_l1_term_leaves_few_weights() -> None:
    problem = random_problem(build_flat(6), 150, seed=8)
    counts = []
    for l1 in (0.0, 2.0, 6.0):
        config = Config(l1=l1, prune=0.0, max_iterations=300, **EXACT)
        counts.append(
            sum(weight != 0.0 for weights in solve(problem, config).values() for weight in weights.values())
        )
        assert len(fit(problem, config)[0].parameters.entry) <= counts[-1]
    assert 0 < counts[2] < 0.5 * counts[1] < 0.5 * counts[0]


# What is kept


@settings(max_examples=60)
@given(
    problem=problems(),
    method=st.sampled_from(list(METHODS)),
    prune=st.sampled_from([0.0, 0.1, 0.5]),
    l1=st.sampled_from([0.0, 0.1]),
    bias=st.sampled_from([0.0, 0.3]),
)
def test_packed_weights_are_the_pruned_and_rounded_ones(
    problem: Problem, method: str, prune: float, l1: float, bias: float
) -> None:
    config = Config(**METHODS[method], prune=prune, l1=l1, bias=bias, max_iterations=5, epochs=2)
    parameters = fit(problem, config)[0].parameters
    factor, summand = solver_of(config).log_odds
    raw, kept = solve(problem, config), reference.decode(problem.tree, parameters)
    for node in range(problem.tree.n_nodes):
        if node not in raw:
            assert not kept[node].weights
            assert math.isinf(kept[node].bias)
            continue
        added = raw[node].pop(BIAS, 0.0) * bias
        assert kept[node].bias == pytest.approx(factor * added + summand, rel=1e-5, abs=1e-6)
        step = max(map(abs, raw[node].values()), default=0.0) / 127
        sure, possible = (
            reference.rounded(raw[node], (prune + step * 0.0001) * near) for near in (1.0001, 0.9999)
        )
        assert sure.keys() <= kept[node].weights.keys() <= (possible.keys() | sure.keys())
        for feature, weight in kept[node].weights.items():
            assert abs(raw[node][feature]) >= prune * 0.9999
            assert weight / factor == pytest.approx(raw[node][feature], abs=0.501 * step)


@settings(max_examples=40)
@given(problem=problems(), method=st.sampled_from(list(METHODS)))
def test_chunks_are_well_formed(problem: Problem, method: str) -> None:
    """Rows without entries and chunks without learned nodes take no place."""
    tree, config = problem.tree, Config(**METHODS[method], max_iterations=3, epochs=1)
    found = fit(problem, config)[0].parameters
    starts = chunk_starts(tree)
    assert starts[0] == 0
    assert starts[-1] == tree.n_nodes
    assert np.diff(starts).max() <= 64
    assert all(len(set(tree.parent[a:b].tolist())) == 1 for a, b in itertools.pairwise(starts))
    assert (found.length > 0).all()
    assert found.length.sum(dtype=np.int64) == len(found.entry) == found.chunk_entry[-1]
    for chunk in range(len(starts) - 1):
        features = found.feature[found.chunk_row[chunk] : found.chunk_row[chunk + 1]].tolist()
        assert len(set(features)) == len(features)
        n_buckets = int(found.chunk_bucket[chunk + 1] - found.chunk_bucket[chunk])
        assert (n_buckets == 0) == (not features)
        children = found.entry[found.chunk_entry[chunk] : found.chunk_entry[chunk + 1]] >> 8
        assert not len(children) or children.max() < starts[chunk + 1] - starts[chunk]
    assert found.calibration.tolist() == [1.0, 1.0, 0.0]


# Threads, weights, odd data


@pytest.mark.parametrize("method", METHODS)
def test_threads_do_not_change_a_bit(method: str) -> None:
    problem = random_problem(build_flat(200), 600, seed=1)
    config = Config(**METHODS[method], max_iterations=5, epochs=2)
    expected, heard = fit(problem, config)
    assert expected.without_held_out is not None
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    for threads in (2, 3):
        found, heard = fit(problem, config, threads=threads)
        assert same_bytes(found.parameters, expected.parameters)
        assert same_bytes(found.without_held_out, expected.without_held_out)
        assert heard[-1] == 1.0
    assert not same_bytes(fit(problem, config, seed=4)[0].parameters, expected.parameters)


def test_held_out_rows_are_not_seen_before_calibration() -> None:
    problem = random_problem(build_flat(4), 600, seed=9)
    config = Config(max_iterations=8)
    expected = fit(problem, config)[0]
    changed = list(problem.examples)
    for row in choose_rows(arrays_of(problem)[2]).tolist():
        features = {feature: -3.0 * value for feature, value in changed[row].features.items()}
        changed[row] = changed[row]._replace(features=features)
    found = fit(problem._replace(examples=changed), config)[0]
    assert same_bytes(found.without_held_out, expected.without_held_out)
    assert not same_bytes(found.parameters, expected.parameters)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_are_as_if_absent(method: str) -> None:
    problem = random_problem(build_flat(7), 80, seed=3)
    config = Config(**METHODS[method])
    wrong = [Example({1: 9.0}, {0, 6}, 0.0), Example({}, set(), 0.0)]
    mixed = [example for pair in zip(problem.examples, wrong * 40, strict=True) for example in pair]
    expected = fit(problem, config)[0].parameters
    assert same_bytes(fit(problem._replace(examples=mixed), config)[0].parameters, expected)


@pytest.mark.parametrize("loss", ["squared-hinge", "log"])
def test_a_weight_of_two_is_a_copy(loss: str) -> None:
    problem = random_problem(build_flat(4), 60, seed=3)
    weighted = [
        example._replace(weight=2.0 if i % 3 == 0 else 1.0) for i, example in enumerate(problem.examples)
    ]
    copied = [example._replace(weight=1.0) for example in weighted for _ in range(int(example.weight))]
    config = Config(loss=loss, max_iterations=2000, tolerance=1e-7, rare_weight=0.0)
    found = solve(problem._replace(examples=weighted), config)
    assert_close(found, solve(problem._replace(examples=copied), config), 3e-3)


@pytest.mark.parametrize("method", METHODS)
def test_constant_nodes_and_a_learned_root(method: str) -> None:
    """Label 2 has no rows; every row with a label has label 0; some rows have none."""
    examples = [Example({0: 1.0}, {0}), Example({1: 1.0}, {0, 1}), Example({2: 1.0}, set())] * 10
    problem = Problem(build_flat(4), examples)
    fitted = fit(problem, Config(**METHODS[method], prune=0.0))[0]
    assert fitted.without_held_out is None
    leaves = problem.tree.leaf_of_label
    bias, scale = fitted.parameters.bias, fitted.parameters.scale
    assert bias[leaves[0]] == np.inf
    assert bias[leaves[2]] == bias[leaves[3]] == -np.inf
    assert not scale[leaves[[0, 2, 3]]].any()
    nodes = reference.decode(problem.tree, fitted.parameters)
    assert np.isfinite(bias[[0, leaves[1]]]).all()
    scores = [reference.scores(problem.tree, fitted.parameters, {f: 1.0})[0] for f in range(3)]
    assert min(scores[:2]) > 0.0 > scores[2]
    assert nodes[leaves[1]].weights[1] > 0.0 > nodes[leaves[1]].weights[0]
    assert 2 not in nodes[leaves[1]].weights


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_learn(method: str) -> None:
    """Every node is constant; progress still comes to its end."""
    problem = Problem(build_flat(1), [Example({0: 1.0}, {0})] * 3)
    fitted, heard = fit(problem, Config(**METHODS[method]))
    assert (fitted.parameters.bias == np.inf).all()
    assert len(fitted.parameters.entry) == len(fitted.parameters.bucket) == 0
    assert heard == [1.0]


@pytest.mark.parametrize("method", METHODS)
def test_rows_without_features(method: str) -> None:
    """Their scores are those of the bias feature alone: above for frequent labels, below for rare ones."""
    rows = [Example({}, [{0, 1}, {0}, {0}, set()][i % 4]) for i in range(200)]
    problem = Problem(build_flat(2), rows)
    config = Config(**METHODS[method], bias=1.0, rare_weight=0.0, max_iterations=200)
    parameters = fit(problem, config)[0].parameters
    assert len(parameters.entry) == 0
    summand = solver_of(config).log_odds[1]
    assert parameters.bias[0] > summand > parameters.bias[problem.tree.leaf_of_label[1]]
    without = fit(problem, Config(**METHODS[method], bias=0.0))[0].parameters
    assert without.bias[0] == summand


@pytest.mark.parametrize("value", [1e-38, 1e-30, 1e10, 1e25, 3e38])
@pytest.mark.parametrize("method", METHODS)
def test_odd_values_give_finite_weights_or_a_named_error(method: str, value: float) -> None:
    random = np.random.default_rng(0)
    examples = [Example({int(f): value, 6: 1.0}, {int(f) % 3}) for f in random.integers(0, 6, 60)]
    examples += [Example({6: 1.0, 5: -value}, set())] * 5
    problem = Problem(build_flat(3), examples)
    try:
        parameters = fit(problem, Config(**METHODS[method], prune=0.0, bias=0.0))[0].parameters
    except TrainingError as error:
        message = str(error)
        named = "eta=" if method == "sgd" else "row_norm='l2'"
        if named not in message:
            raise
        return
    assert np.isfinite(parameters.bias).all()
    assert np.isfinite(parameters.scale).all()
    children = parameters.entry >> 8
    assert not len(children) or children.max() < 3


def test_steps_that_are_too_large_are_named() -> None:
    problem = random_problem(chain_tree(5), 50, seed=1)
    with pytest.raises(TrainingError, match=r"eta=3e\+38 is too large for this data; try"):
        fit(problem, Config(solver="sgd", eta=3e38, eta_power=0.0))


def test_what_the_report_raises_ends_all_threads() -> None:
    problem = random_problem(chain_tree(30), 300, seed=1)
    rows = arrays_of(problem)
    heard: list[float] = []
    config = resolved(Config(), rows.Y)

    def stop(done: FitProgress) -> None:
        heard.append(done.fraction)
        raise RuntimeError("enough")

    for threads in (1, 2, 4):
        heard.clear()
        with Pool(threads) as pool, pytest.raises(RuntimeError, match="enough"):
            fit_sparse(FitInput(rows, problem.tree, config, 1, pool, stop))
        assert len(heard) == 1, f"{threads} threads"


def test_columns_beyond_a_vector() -> None:
    """Chunks of 1, of whole vectors and of one more than that give each child its own solution."""
    for n_labels in (2, FEW_LANES, FEW_LANES + 1, LANES, LANES + 1, 64, 65):
        tree: LabelTree = build_flat(n_labels)
        problem = random_problem(tree, 25, seed=n_labels, n_features=12)
        config = Config(max_iterations=4, **EXACT)
        assert_close(solve(problem, config), reference.fit_weights(tree, problem.examples, config, 3), 2e-4)
        learned = np.isfinite(initial_bias(tree, problem.examples))
        assert np.array_equal(np.isfinite(fit(problem, config)[0].parameters.bias), learned)
