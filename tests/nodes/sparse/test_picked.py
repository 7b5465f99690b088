"""Sparse nodes with a softmax over siblings: against the reference, scikit-learn and logistics; odd data."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.problems import Problem, arrays_of, labelled, problems, random_problem
from support.sparse_problems import EXACT, Pushed, assert_close, fit, same_bytes, solve, sum_pushes
from support.sparse_problems import marginals as plt_marginals
from support.strategies import chain_tree, grow_tree

import labeltree
from labeltree import LabelTree
from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.experts.held_out import LEAST_ROWS, choose_rows
from labeltree.experts.tree_expert import TreeExpert
from labeltree.nodes.sparse import picked as sparse_picked
from labeltree.query import query_all
from labeltree.reference import picked as reference
from labeltree.reference.search import marginals
from labeltree.reference.sparse import BIAS, decode, rounded
from labeltree.reference.training import Example, children_of, softmax_bias
from labeltree.trees.shapes import build_complete, build_flat

SOLVERS: dict[str, dict[str, Any]] = {
    "dual": dict(link="hsm"),
    "sgd": dict(link="hsm", solver="sgd"),
}


def mixed_tree(n_labels: int = 12) -> LabelTree:
    """A root of three children, below it pairs, a single leaf, and a wide node."""
    return grow_tree(
        list(range(n_labels)), [(0, 2), (1, 2), (2, n_labels - 6), (3, 2), (0, 2), (1, 2), (0, 2)]
    )


# The solvers


@settings(max_examples=80)
@given(
    problem=problems(least_labels=1),
    solver=st.sampled_from(list(SOLVERS)),
    n_passes=st.sampled_from([1, 2, 5]),
    bias=st.sampled_from([0.0, 0.2, 1.0]),
    l1=st.sampled_from([0.0, 0.1]),
    positive_weight=st.sampled_from([1.0, 3.0]),
    rare_weight=st.sampled_from([0.0, 5.0]),
    seed=st.one_of(st.integers(0, 99), st.integers(0, 2**64 - 1)),
)
def test_agrees_with_the_reference(
    problem: Problem,
    solver: str,
    n_passes: int,
    bias: float,
    l1: float,
    positive_weight: float,
    rare_weight: float,
    seed: int,
) -> None:
    """All of it where more than two siblings are; of two only one is solved, by Newton's steps in batches."""
    config = Config(
        **SOLVERS[solver], max_iterations=n_passes, epochs=n_passes, bias=bias, l1=l1, tolerance=0.0,
        positive_weight=positive_weight, rare_weight=rare_weight, eta=0.5, l2=0.01, C=1.0,
    )  # fmt: skip
    expected = reference.fit_weights(problem.tree, problem.examples, config, seed)
    found = solve(problem, config, seed=seed)
    assert found.keys() == expected.keys()
    if solver == "dual":
        in_pair = {node for node in found if problem.tree.n_children[problem.tree.parent[node]] == 2}
        found, expected = (
            {node: weights[node] for node in weights if node not in in_pair} for weights in (found, expected)
        )
    assert_close(found, expected, 2e-4)


def test_weights_decay_where_the_softmax_is_sure() -> None:
    """A gradient that is 0 in 32 bits is still a visit."""
    rows = [Example({3: 2.0}, {1}, 500.0), Example({}, {0}), Example({}, {2})]
    problem = Problem(build_flat(3), rows)
    config = Config(link="hsm", solver="sgd", epochs=3, eta=0.5, l2=0.01, bias=0.0, rare_weight=0.0)
    expected = reference.fit_weights(problem.tree, rows, config, 3)
    assert_close(solve(problem, config), expected, 1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", ["flat", "chain", "mixed"])
def test_agrees_with_the_reference_on_more_rows(solver: str, shape: str) -> None:
    tree = {"flat": build_flat(70), "chain": chain_tree(8), "mixed": mixed_tree()}[shape]
    problem = labelled(random_problem(tree, 30, seed=5, n_features=25))
    config = Config(**SOLVERS[solver], max_iterations=25, epochs=6, eta=0.5, C=1.0, **EXACT)
    expected = reference.fit_weights(tree, problem.examples, config, 7)
    assert len(expected) >= 7
    assert_close(solve(problem, config, seed=7), expected, 1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("epochs", [1, 3])
def test_held_out_rows_join_in_the_last_pass(solver: str, n_labels: int, epochs: int) -> None:
    problem = labelled(random_problem(build_flat(n_labels), 1300, seed=6, n_features=12))
    held_out = choose_rows(arrays_of(problem)[2]).tolist()
    assert len(held_out) >= 50
    config = Config(**SOLVERS[solver], max_iterations=2 * epochs, epochs=epochs, eta=0.1, C=0.02, **EXACT)
    expected = reference.fit_weights(problem.tree, problem.examples, config, 1, held_out)
    assert_close(solve(problem, config, seed=1), expected, 2e-3)


@settings(max_examples=40)
@example(  # without weights both labels have their share: what is found is the rounding of all passes
    problem=Problem(build_flat(3), [Example({0: 1.5}, {0, 1})]), C=1.0, bias=0.0, l1=0.0, rare_weight=3.0
)
@given(
    problem=problems(least_labels=1),
    C=st.sampled_from([0.1, 1.0, 4.0]),
    bias=st.sampled_from([0.0, 0.5]),
    l1=st.sampled_from([0.0, 0.05, 0.5]),
    rare_weight=st.sampled_from([0.0, 3.0]),
)
def test_the_solution_is_optimal(
    problem: Problem, C: float, bias: float, l1: float, rare_weight: float
) -> None:
    """At the minimum 0 is in the subdifferential: w = shrink(-gradient of the losses)."""
    config = Config(
        link="hsm", C=C, bias=bias, l1=l1, rare_weight=rare_weight, max_iterations=5000, tolerance=1e-8
    )
    tree, found = problem.tree, solve(problem, config)
    for parent in {int(tree.parent[node]) for node in found}:
        children = children_of(tree, parent)
        weights = {child: found[child] for child in children if child in found}
        if len(children) == 2:
            weights[children[1]] = {}
        seen: dict[int, list[Pushed]] = {child: [] for child in weights}
        for copy in reference.copies_of(tree, parent, problem.examples, config):
            scores = {child: reference.score(weights[child], copy.features) for child in weights}
            for child, p in reference.softmax(scores).items():
                push = C * copy.weight * (float(child == copy.child) - p)
                seen[child].append(Pushed(copy.features, push, C * copy.weight))
        total = 2 * sum(one.cost for one in next(iter(seen.values())))
        for child in children:
            if child not in found:
                continue
            downhill, error = sum_pushes(seen[child], config, total)
            best = reference.sparse.shrink(downhill, l1)
            for feature, weight in found[child].items():
                assert weight == pytest.approx(best[feature], abs=error[feature]), (child, feature)


def test_the_tolerance_ends_training_near_the_minimum() -> None:
    problem = labelled(random_problem(build_flat(5), 250, seed=2))
    config = Config(link="hsm", C=0.7, max_iterations=1000, tolerance=0.02, rare_weight=0.0)
    copies = reference.copies_of(problem.tree, 0, problem.examples, config)
    exact = solve(problem, Config(link="hsm", C=0.7, max_iterations=2000, **EXACT))
    best, found = (
        reference.objective(weights, copies, config.C, 0.0) for weights in (exact, solve(problem, config))
    )
    assert best <= found + 1e-4 * best
    assert found < 1.02 * best


@pytest.mark.parametrize("bias", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("n_labels", [2, 3, 6])
def test_scikit_learn_finds_the_same_weights(n_labels: int, bias: float) -> None:
    """Its multinomial logistic regression on the same copies, with their weights."""
    tree = build_flat(n_labels)
    problem = labelled(random_problem(tree, 200, seed=4, n_features=30))
    examples = [
        e._replace(labels=e.labels | {0}) if i % 3 == 0 else e for i, e in enumerate(problem.examples)
    ]
    problem = problem._replace(examples=examples)
    config = Config(
        link="hsm", bias=bias, C=0.8, positive_weight=2.5, prune=0.0, rare_weight=3.0,
        max_iterations=10_000, tolerance=1e-7,
    )  # fmt: skip
    copies = reference.copies_of(tree, 0, problem.examples, config)
    assert len(copies) > len(examples)
    coefficients = multinomial(copies, config, problem.n_features)
    raw, kept = solve(problem, config), decode(tree, fit(problem, config)[0].parameters)
    if n_labels == 2:  # of the two classes scikit-learn's weights are those of the second
        coefficients = {1: -coefficients[2]}
    assert raw.keys() == coefficients.keys()
    for child, expected in coefficients.items():
        columns = [*range(problem.n_features), BIAS]
        np.testing.assert_allclose([raw[child].get(f, 0.0) for f in columns], expected, atol=2e-3)
        assert np.abs(expected).max() > 0.2
        # ... and what is kept of it in bytes
        in_bytes = [kept[child].weights.get(f, 0.0) for f in range(problem.n_features)]
        half_step = np.abs(expected[:-1]).max() / 127 / 2
        np.testing.assert_allclose(in_bytes, expected[:-1], atol=2e-3 + half_step)
        assert kept[child].bias == pytest.approx(expected[-1] * bias, abs=2e-3)


def multinomial(
    copies: list[reference.Copy], config: Config, n_features: int
) -> dict[int, NDArray[np.float64]]:
    """Each class' weights, that of the bias last."""
    from sklearn.linear_model import LogisticRegression

    X = np.zeros((len(copies), n_features + 1))
    for i, copy in enumerate(copies):
        for feature, value in copy.features.items():
            X[i, feature] = value  # BIAS is -1: the last column
    solver = LogisticRegression(C=config.C, solver="lbfgs", fit_intercept=False, tol=1e-9, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver.fit(X, [copy.child for copy in copies], [copy.weight for copy in copies])
    classes = solver.classes_.tolist()
    return dict(zip(classes[-len(solver.coef_) :], solver.coef_, strict=True))


# Against logistics


@pytest.mark.parametrize("n_rows", [LEAST_ROWS - 50, 700])
@pytest.mark.parametrize("n_labels", [2, 7, 16])
def test_for_rows_of_one_label_on_a_binary_tree_it_is_a_probabilistic_label_tree(
    n_rows: int, n_labels: int
) -> None:
    """The two children's problems mirror each other. With enough rows both are calibrated, too."""
    random = np.random.default_rng(n_labels)
    X, label = random.normal(size=(n_rows, 9)), random.integers(0, n_labels, n_rows)
    X[np.arange(n_rows), label % 9] += 1.0
    weight = random.choice([0.5, 1.0, 2.0], n_rows)
    same = Config(loss="log", tree="complete", arity=2, rare_weight=0.0, prune=0.01, neighbours=0)
    models = [
        labeltree.train(X, label[:, None].tolist(), sample_weight=weight, config=same, link=link)
        for link in ("plt", "hsm")
    ]
    plt, hsm = (model.probability(X, models[0].label_names) for model in models)
    np.testing.assert_allclose(hsm, plt, atol=1e-6)
    ids, expected_ids = (model.predict_arrays(X, k=1)[0][:, 0] for model in models)
    best = np.sort(plt, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-6
    assert np.array_equal(ids[clear], expected_ids[clear])
    assert np.std(plt) > 0.01
    is_calibrated = [
        search.parameters.calibration.tolist() != [1.0, 1.0, 0.0] for search in models[1].experts
    ]
    assert is_calibrated == [n_rows >= LEAST_ROWS]
    if n_rows < LEAST_ROWS:
        np.testing.assert_allclose(hsm.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_marginals_sum_to_one_and_are_those_of_the_reference(solver: str) -> None:
    tree = mixed_tree()
    problem = labelled(random_problem(tree, 120, seed=1, n_features=30))
    parameters = fit(problem, Config(**SOLVERS[solver]))[0].parameters
    rows = [dict(example.features) for example in problem.examples[:20]] + [{}]
    arrays = arrays_of(problem._replace(examples=[Example(row, {0}) for row in rows]))[0][:3]
    asked = (
        np.arange(len(rows) + 1) * tree.n_labels,
        np.tile(np.arange(tree.n_labels, dtype=np.int32), len(rows)),
    )
    search = TreeExpert(tree, "sparse", parameters, 30, "hsm")
    found = search.score(arrays, asked, query_all()).reshape(len(rows), -1)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
    expected = [marginals([(tree, parameters)], row, link="hsm") for row in rows]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_copies_count_by_the_share_of_their_labels(solver: str) -> None:
    """Equal rows of the labels {0}, {0, 1}, {2}: picked of them are 1/2, 1/6 and 1/3."""
    rows = [Example({0: 1.0}, labels) for labels in ({0}, {0, 1}, {2})] * 200
    for tree in (build_flat(3), chain_tree(3)):
        config = Config(
            **SOLVERS[solver], C=50.0, rare_weight=0.0, epochs=30, max_iterations=1000, tolerance=1e-5,
            eta=0.3, l2=0.0, prune=0.0,
        )  # fmt: skip
        parameters = fit(Problem(tree, rows), config)[0].parameters
        found = marginals([(tree, parameters)], {0: 1.0}, link="hsm")
        np.testing.assert_allclose(found, [1 / 2, 1 / 6, 1 / 3], atol=2e-3 if solver == "dual" else 0.03)


# What is kept, threads, weights, odd data


@settings(max_examples=40)
@given(
    problem=problems(least_labels=1),
    solver=st.sampled_from(list(SOLVERS)),
    prune=st.sampled_from([0.0, 0.1]),
    bias=st.sampled_from([0.0, 0.3]),
)
def test_packed_weights_are_the_pruned_and_rounded_ones(
    problem: Problem, solver: str, prune: float, bias: float
) -> None:
    """Also of siblings in several chunks; what is not learned is certain, impossible, or second of two."""
    config = Config(**SOLVERS[solver], prune=prune, bias=bias, max_iterations=5, epochs=2)
    tree, parameters = problem.tree, fit(problem, config)[0].parameters
    first = softmax_bias(tree, problem.examples)
    raw, kept = solve(problem, config), decode(tree, parameters)
    for node in range(tree.n_nodes):
        if node not in raw:
            assert not kept[node].weights
            assert parameters.scale[node] == 0.0
            if math.isinf(first[node]):
                assert kept[node].bias == first[node]
            else:
                assert kept[node].bias == pytest.approx(0.0, abs=1e-5)
            continue
        assert kept[node].bias == pytest.approx(raw[node].pop(BIAS, 0.0) * bias, rel=1e-5, abs=1e-6)
        step = max(map(abs, raw[node].values()), default=0.0) / 127
        sure, possible = (rounded(raw[node], (prune + step * 0.0001) * near) for near in (1.0001, 0.9999))
        assert sure.keys() <= kept[node].weights.keys() <= (possible.keys() | sure.keys())
        for feature, weight in kept[node].weights.items():
            assert weight == pytest.approx(raw[node][feature], abs=0.501 * step)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_do_not_change_a_bit(solver: str) -> None:
    problem = labelled(random_problem(build_complete(np.ones(40, np.int64), 3), 900, seed=1))
    config = Config(**SOLVERS[solver], max_iterations=5, epochs=2)
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


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_labels", [2, 5])
def test_held_out_rows_are_not_seen_before_calibration(solver: str, n_labels: int) -> None:
    problem = labelled(random_problem(build_flat(n_labels), 1300, seed=9))
    config = Config(**SOLVERS[solver], max_iterations=8, epochs=3)
    expected = fit(problem, config)[0]
    changed = list(problem.examples)
    for row in choose_rows(arrays_of(problem)[2]).tolist():
        features = {feature: -3.0 * value for feature, value in changed[row].features.items()}
        changed[row] = changed[row]._replace(features=features)
    found = fit(problem._replace(examples=changed), config)[0]
    assert same_bytes(found.without_held_out, expected.without_held_out)
    assert not same_bytes(found.parameters, expected.parameters)


@pytest.mark.parametrize("tree", [build_flat(7), chain_tree(7)], ids=["flat", "chain"])
def test_rows_of_weight_zero_are_as_if_absent(tree: LabelTree) -> None:
    """In batches to the last bit. (Online, other rows have other picks.)"""
    problem = labelled(random_problem(tree, 80, seed=3))
    wrong = [Example({1: 9.0}, {0, 6}, 0.0), Example({}, {2}, 0.0)] * len(problem.examples)
    mixed = [example for pair in zip(problem.examples, wrong, strict=False) for example in pair]
    expected = fit(problem, Config(link="hsm"))[0].parameters
    assert same_bytes(fit(problem._replace(examples=mixed), Config(link="hsm"))[0].parameters, expected)


@pytest.mark.parametrize("tree", [build_flat(4), chain_tree(4)], ids=["flat", "chain"])
def test_a_weight_of_two_is_a_copy(tree: LabelTree) -> None:
    problem = labelled(random_problem(tree, 60, seed=3))
    weighted = [
        example._replace(weight=2.0 if i % 3 == 0 else 1.0) for i, example in enumerate(problem.examples)
    ]
    copied = [example._replace(weight=1.0) for example in weighted for _ in range(int(example.weight))]
    config = Config(link="hsm", C=1.0, max_iterations=3000, tolerance=1e-7, rare_weight=0.0)
    found = solve(problem._replace(examples=weighted), config)
    assert_close(found, solve(problem._replace(examples=copied), config), 3e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_nodes(solver: str) -> None:
    """Labels 2 and 3 have no rows: of four children two have no part; of a pair the other one is sure."""
    rows = [Example({0: 1.0}, {0}), Example({1: 1.0}, {0, 1}), Example({1: 1.0}, {1})] * 10
    tree = build_flat(4)
    parameters = fit(Problem(tree, rows), Config(**SOLVERS[solver], prune=0.0))[0].parameters
    assert parameters.bias[tree.leaf_of_label[[2, 3]]].tolist() == [-math.inf] * 2
    assert np.isfinite(parameters.bias[tree.leaf_of_label[[0, 1]]]).all()
    found = marginals([(tree, parameters)], {1: 1.0}, link="hsm")
    assert found[2:].tolist() == [0.0, 0.0]
    assert found[1] > 0.6
    assert found.sum() == pytest.approx(1.0)
    tree = chain_tree(3)  # of the pairs ((0, 1), 2)
    only_one = [Example({0: 1.0}, {1}), Example({1: 1.0}, {2})] * 10
    parameters = fit(Problem(tree, only_one), Config(**SOLVERS[solver]))[0].parameters
    for features in ({0: 1.0}, {1: 1.0}, {}):
        found = marginals([(tree, parameters)], features, link="hsm")
        assert found[0] == 0.0
        assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_nothing_to_learn(solver: str, n_labels: int) -> None:
    """Every row has the same label: it is certain, and progress still comes to its end."""
    problem = Problem(build_flat(n_labels), [Example({0: 1.0}, {0})] * 3)
    fitted, heard = fit(problem, Config(**SOLVERS[solver]))
    assert len(fitted.parameters.entry) == 0
    assert heard == [1.0]
    assert marginals([(problem.tree, fitted.parameters)], {0: 1.0}, link="hsm")[0] == 1.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_without_features(solver: str) -> None:
    """Their scores are those of the bias feature alone: the more frequent label first."""
    problem = Problem(build_flat(3), [Example({}, [{0}, {0}, {0, 1}, {2}][i % 4]) for i in range(200)])
    config = Config(**SOLVERS[solver], bias=1.0, rare_weight=0.0, max_iterations=200)
    parameters = fit(problem, config)[0].parameters
    found = marginals([(problem.tree, parameters)], {}, link="hsm")
    np.testing.assert_allclose(found, [2.5 / 4, 0.5 / 4, 1 / 4], atol=0.05)
    without = fit(problem, Config(**SOLVERS[solver], bias=0.0))[0].parameters
    np.testing.assert_allclose(marginals([(problem.tree, without)], {}, link="hsm"), 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("value", [1e-38, 1e-30, 1e10, 1e25, 3e38])
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_odd_values_give_finite_weights_or_a_named_error(solver: str, n_labels: int, value: float) -> None:
    random = np.random.default_rng(0)
    examples = [Example({int(f): value, 6: 1.0}, {int(f) % n_labels}) for f in random.integers(0, 6, 60)]
    examples += [Example({6: 1.0, 5: -value}, {0, 1})] * 5
    problem = Problem(build_flat(n_labels), examples)
    try:
        parameters = fit(problem, Config(**SOLVERS[solver], prune=0.0, bias=0.0))[0].parameters
    except TrainingError as error:
        if ("eta=" if solver == "sgd" else "row_norm='l2'") not in str(error):
            raise
        return
    assert np.isfinite(parameters.bias[1:]).all()
    assert np.isfinite(parameters.scale).all()


@pytest.mark.parametrize("weight", [1e-37, 1e-30, 1e30])
@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("solver", SOLVERS)
def test_odd_weights(solver: str, n_labels: int, weight: float) -> None:
    problem = labelled(random_problem(build_flat(n_labels), 40, seed=1))
    examples = [example._replace(weight=weight) for example in problem.examples]
    try:
        parameters = fit(problem._replace(examples=examples), Config(**SOLVERS[solver]))[0].parameters
    except TrainingError:
        if weight < 1.0:
            raise
        return
    found = marginals([(problem.tree, parameters)], {0: 1.0}, link="hsm")
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("bias", [0.0, 0.2])
@pytest.mark.parametrize("tree", [chain_tree(5), build_flat(5)], ids=["chain", "flat"])
def test_steps_that_are_too_large_are_named(tree: LabelTree, bias: float) -> None:
    problem = labelled(random_problem(tree, 50, seed=1))
    with pytest.raises(TrainingError, match=r"eta=3e\+38 is too large for this data; try"):
        fit(problem, Config(link="hsm", solver="sgd", eta=3e38, eta_power=0.0, bias=bias))


@pytest.mark.parametrize("n_labels", [3, 4, 5, 16, 17, 64, 65, 130])
def test_columns_beyond_a_vector_and_siblings_beyond_a_chunk(n_labels: int) -> None:
    """All siblings are solved together, and then cut into chunks."""
    tree = build_flat(n_labels)
    problem = labelled(random_problem(tree, 25, seed=n_labels, n_features=12))
    config = Config(link="hsm", max_iterations=4, C=1.0, prune=0.0, **EXACT)
    expected = reference.fit_weights(tree, problem.examples, config, 3)
    assert_close(solve(problem, config), expected, 2e-4)
    parameters = fit(problem, config)[0].parameters
    kept = decode(tree, parameters)
    for node, weights in expected.items():
        step = max(abs(w) for f, w in weights.items() if f != BIAS) / 127
        for feature, weight in kept[node].weights.items():
            assert weight == pytest.approx(weights[feature], abs=0.51 * step + 2e-4)


def test_too_much_memory_is_named_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = labelled(random_problem(build_flat(40), 30, seed=1))
    monkeypatch.setattr(sparse_picked, "MOST_BYTES", 1000)
    with pytest.raises(TrainingError, match="40 children of a node together"):
        fit(problem, Config(link="hsm"))
    fit(problem, Config())


def test_a_softmax_is_not_a_logistic_each() -> None:
    """Rows of several labels: the probabilities of hsm share out 1, those of plt do not."""
    problem = Problem(build_flat(3), [Example({0: 1.0}, {0, 1}), Example({0: 1.0}, {0, 1, 2})] * 20)
    config: dict[str, Any] = dict(loss="log", C=50.0, rare_weight=0.0, max_iterations=500, tolerance=1e-5)
    plt = fit(problem, Config(**config))[0].parameters
    hsm = fit(problem, Config(link="hsm", **config))[0].parameters
    row = {0: 1.0}
    np.testing.assert_allclose(plt_marginals(problem.tree, plt, [row], 7)[0], [1.0, 1.0, 0.5], atol=0.01)
    found = marginals([(problem.tree, hsm)], row, link="hsm")
    np.testing.assert_allclose(found, [5 / 12, 5 / 12, 1 / 6], atol=0.01)
