"""Training of dense nodes: the kernels against the reference, threads, constants, divergence, progress."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import Problem, arrays_of, labelled, problems, random_problem
from support.strategies import chain_tree

from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.nodes.dense import fitting as dense
from labeltree.nodes.dense.fitting import DenseParameters, fit_dense
from labeltree.nodes.kind import FitInput, FitProgress
from labeltree.parallel import Pool
from labeltree.reference import search as reference_search
from labeltree.reference import training as reference
from labeltree.reference.training import Example
from labeltree.trees.shapes import build_flat


def fit(
    problem: Problem, config: Config, *, seed: int = 3, threads: int = 1
) -> tuple[DenseParameters, list[FitProgress]]:
    reports: list[FitProgress] = []
    with Pool(threads) as pool:
        parameters = fit_dense(FitInput(arrays_of(problem), problem.tree, config, seed, pool, reports.append))
    return parameters, reports


def assert_agrees(found: DenseParameters, expected: reference.Parameters, tolerance: float) -> None:
    np.testing.assert_allclose(found.bias, expected.bias.values[:, 0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.weights, expected.weights.values, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.embedding, expected.embedding.values, rtol=tolerance, atol=tolerance)


def same_bytes(a: DenseParameters, b: DenseParameters) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def check_against_reference(problem: Problem, config: Config, seed: int, tolerance: float) -> list[float]:
    found, reports = fit(problem, config, seed=seed)
    expected, losses = reference.fit(problem.tree, problem.examples, problem.n_features, config, seed)
    assert_agrees(found, expected, tolerance)
    assert [report.epoch for report in reports] == list(range(1, config.epochs + 1))
    np.testing.assert_allclose([report.loss for report in reports], losses, rtol=1e-4, atol=1e-5)
    return losses


@settings(max_examples=120)
@given(
    problem=problems(),
    optimizer=st.sampled_from(["adagrad", "sgd"]),
    batch_size=st.sampled_from([1, 2, 3, 64]),
    epochs=st.sampled_from([1, 2]),
    dim=st.sampled_from([1, 4, 9]),
    l2=st.sampled_from([0.0, 0.01, 3.0]),
    seed=st.integers(0, 99),
)
def test_agrees_with_the_reference(
    problem: Problem, optimizer: str, batch_size: int, epochs: int, dim: int, l2: float, seed: int
) -> None:
    config = Config(optimizer=optimizer, batch_size=batch_size, epochs=epochs, dim=dim, l2=l2, lr=0.3)
    # Adagrad divides by the length of gradients, so where they nearly cancel rounding shows
    check_against_reference(problem, config, seed, 4e-3 if optimizer == "adagrad" else 1e-4)


@settings(max_examples=120)
@given(
    problem=problems(least_labels=1),
    optimizer=st.sampled_from(["adagrad", "sgd"]),
    batch_size=st.sampled_from([1, 2, 3, 64]),
    epochs=st.sampled_from([1, 2]),
    dim=st.sampled_from([1, 4, 9]),
    l2=st.sampled_from([0.0, 0.01, 3.0]),
    seed=st.one_of(st.integers(0, 99), st.integers(0, 2**64 - 1)),
)
def test_a_softmax_agrees_with_the_reference(
    problem: Problem, optimizer: str, batch_size: int, epochs: int, dim: int, l2: float, seed: int
) -> None:
    """Also which labels are picked: those of another row would change everything."""
    config = Config(
        link="hsm", optimizer=optimizer, batch_size=batch_size, epochs=epochs, dim=dim, l2=l2, lr=0.3
    )
    check_against_reference(problem, config, seed, 4e-3 if optimizer == "adagrad" else 1e-4)


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
@pytest.mark.parametrize("shape", ["flat", "chain"])
def test_agrees_with_the_reference_after_many_steps(optimizer: str, shape: str, link: str) -> None:
    tree = build_flat(200) if shape == "flat" else chain_tree(40)
    problem = random_problem(tree, 40, seed=5)
    config = Config(
        link=link, optimizer=optimizer, batch_size=8, epochs=5, dim=6, l2=1e-3, lr=0.2, initial_range=0.3
    )
    losses = check_against_reference(problem if link == "plt" else labelled(problem), config, 3, 1e-3)
    assert losses[-1] < losses[0] or link == "hsm"  # whose labels are others in each pass


@settings(max_examples=60)
@given(problem=problems(least_labels=1))
def test_the_first_biases_of_a_softmax(problem: Problem) -> None:
    """Without a step every label has the probability that it is picked."""
    tree, examples = problem.tree, problem.examples
    found, _ = fit(problem, Config(link="hsm", lr=0.0, epochs=1, dim=1))
    expected = reference.softmax_bias(tree, examples)
    np.testing.assert_allclose(found.bias, expected, rtol=1e-5, atol=1e-6)
    total = sum(example.weight for example in examples)
    picked = [
        sum(example.weight / len(example.labels) for example in examples if label in example.labels)
        for label in range(tree.n_labels)
    ]
    if total == 0.0:
        return
    conditionals = reference_search.log_conditionals(tree, found, {}, link="hsm")
    marginals = np.exp(reference_search.log_marginals(tree, conditionals))
    np.testing.assert_allclose(marginals, np.array(picked) / total, rtol=1e-4, atol=1e-7)


def test_labels_are_picked_evenly_and_anew() -> None:
    """A row of three labels and no other: each pass picks one, in the end each a third of the time."""
    problem = Problem(build_flat(3), [Example({0: 1.0}, {0, 1, 2})])
    config = Config(link="hsm", optimizer="sgd", epochs=3000, batch_size=1, dim=2, lr=0.02, l2=0.0)
    found, reports = fit(problem, config)
    conditionals = reference_search.log_conditionals(problem.tree, found, {0: 1.0}, link="hsm")
    np.testing.assert_allclose(np.exp(conditionals[1:]), 1 / 3, atol=0.02)
    assert len({round(report.loss, 9) for report in reports}) > 100
    assert np.mean([report.loss for report in reports]) == pytest.approx(math.log(3), rel=0.02)


def test_the_second_of_two_siblings_is_not_learned() -> None:
    problem = labelled(random_problem(chain_tree(9), 60, seed=3))
    found, _ = fit(problem, Config(link="hsm", epochs=3, batch_size=4, dim=5, lr=0.3))
    first = problem.tree.first_child[problem.tree.n_children == 2]
    assert found.weights[first].all()
    assert not found.weights[first + 1].any()
    assert not found.bias[first + 1].any()


def test_gradients_that_cancel_move_nothing() -> None:
    """The first biases are the best ones of all rows together: with no features there is nothing to gain."""
    weights = [1.0, 0.5, 3.0, 0.7, 0.1, 1.3]
    examples = [Example({}, {i % 3} if i != 3 else set(), weight) for i, weight in enumerate(weights)]
    problem = Problem(chain_tree(3), examples)
    found, _ = fit(problem, Config(optimizer="adagrad", batch_size=64, epochs=5, dim=2, lr=0.3))
    np.testing.assert_allclose(found.bias, reference.initial_bias(problem.tree, examples), atol=2e-3)


def test_learns_what_is_there_to_learn() -> None:
    """Feature f means label f, so after training that label has the highest score."""
    tree = chain_tree(6)
    problem = Problem(tree, [Example({label: 1.0}, {label}) for label in range(6)] * 5, 6)
    found, reports = fit(problem, Config(epochs=40, batch_size=4, dim=8, lr=0.5))
    for label in range(6):
        scores = found.weights @ found.embedding[label] + found.bias
        positive = reference.positive_nodes(tree, {label}) - {0}
        negative = reference.negative_nodes(tree, positive | {0})
        assert all(scores[node] > 0 for node in positive)
        assert all(scores[node] < 0 for node in negative)
    assert reports[-1].loss < 0.3 * reports[0].loss


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("batch_size", [24, 100])
@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
def test_threads_do_not_change_a_byte(optimizer: str, batch_size: int, link: str) -> None:
    problem = labelled(random_problem(build_flat(200), 150, seed=8))
    config = Config(link=link, optimizer=optimizer, batch_size=batch_size, epochs=3, dim=10, lr=0.2)
    one, reports = fit(problem, config, threads=1)
    for threads in (2, 3, 5):
        several, their_reports = fit(problem, config, threads=threads)
        assert same_bytes(one, several)
        assert [report.loss for report in reports] == [report.loss for report in their_reports]


def test_the_seed_decides() -> None:
    problem = random_problem(chain_tree(9), 30, seed=1)
    config = Config(epochs=2, batch_size=4, dim=5)
    first, again, other = (fit(problem, config, seed=seed)[0] for seed in (3, 3, 4))
    assert same_bytes(first, again)
    assert not same_bytes(first, other)


@settings(max_examples=100)
@given(
    problem=problems(least_labels=1),
    optimizer=st.sampled_from(["adagrad", "sgd"]),
    link=st.sampled_from(["plt", "hsm"]),
)
def test_constants_stay_constant(problem: Problem, optimizer: str, link: str) -> None:
    biases = reference.softmax_bias if link == "hsm" else reference.initial_bias
    first = biases(problem.tree, problem.examples)
    found, _ = fit(problem, Config(link=link, epochs=2, batch_size=3, dim=4, lr=0.3, optimizer=optimizer))
    constant = np.isinf(first)
    assert np.array_equal(found.bias[constant], first[constant])
    assert not found.weights[constant].any()
    assert np.isfinite(found.bias[~constant]).all()


def test_weights_of_any_size_make_no_false_constant() -> None:
    """All rows have labels, so the root is constant, however the sum of the weights is rounded."""
    weights = np.random.default_rng(0).random(1000).astype(np.float32) ** np.float32(30.0)
    examples = [Example({0: 1.0}, {i % 3}, float(weight)) for i, weight in enumerate(weights)]
    found, _ = fit(Problem(build_flat(3), examples), Config(epochs=1, dim=2))
    assert found.bias[0] == math.inf
    assert np.isfinite(found.bias[1:]).all()


@pytest.mark.parametrize(("link", "shape"), [("plt", "chain"), ("hsm", "chain"), ("hsm", "flat")])
@pytest.mark.parametrize("batch_size", [1, 4, 64])
@pytest.mark.parametrize("lr", [1e25, 1e38, 1e300])
def test_divergence_is_an_error_that_names_a_smaller_step(
    lr: float, batch_size: int, link: str, shape: str
) -> None:
    tree = build_flat(6) if shape == "flat" else chain_tree(6)
    problem = labelled(random_problem(tree, 30, seed=2))
    with pytest.raises(TrainingError, match="lr=") as caught:
        fit(problem, Config(link=link, optimizer="sgd", lr=lr, batch_size=batch_size, epochs=20, dim=4))
    assert f"lr={lr:g} is too large" in str(caught.value)
    assert f"try lr={min(lr / 10, Config().lr):g}" in str(caught.value)


def test_divergence_in_the_very_last_step_is_seen() -> None:
    """The loss of a batch is taken before its step, so the last step needs a look of its own."""
    problem = random_problem(chain_tree(6), 30, seed=2)
    with pytest.raises(TrainingError, match="try lr="):
        fit(problem, Config(optimizer="sgd", lr=1e300, batch_size=64, epochs=1, dim=4))


def test_divergence_is_seen_with_several_threads() -> None:
    problem = random_problem(chain_tree(6), 60, seed=2)
    with pytest.raises(TrainingError, match=r"try lr=0\.1"):
        fit(problem, Config(optimizer="sgd", lr=1e30, batch_size=16, epochs=20, dim=4), threads=3)


@pytest.mark.parametrize("parameters", [dict(batch_size=4), dict(batch_size=1, optimizer="sgd")])
def test_reports_within_an_epoch(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are for reports only: the steps are those of one chunk."""
    problem = random_problem(chain_tree(6), 30, seed=4)
    config = Config(**parameters, epochs=2, dim=4)
    whole, reports = fit(problem, config)
    monkeypatch.setattr(dense, "PART_EXAMPLES", 8)
    parts, part_reports = fit(problem, config)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    ends = [8 / 30, 16 / 30, 24 / 30, 1.0]
    fractions = [end / 2 for end in ends] + [0.5 + end / 2 for end in ends]
    assert [report.fraction for report in part_reports] == pytest.approx(fractions)
    assert [report.epoch for report in part_reports] == [1] * 4 + [2] * 4
    assert [report.loss for report in part_reports[3::4]] == pytest.approx([r.loss for r in reports])
    assert all(report.examples_per_second > 0 for report in part_reports)


def test_what_a_report_raises_ends_training() -> None:
    problem = random_problem(chain_tree(6), 30, seed=4)
    reached = []

    def stop(report: FitProgress) -> None:
        reached.append(report)
        raise KeyboardInterrupt

    config = Config(epochs=9, dim=3, batch_size=8)
    with Pool(2) as pool, pytest.raises(KeyboardInterrupt):
        fit_dense(FitInput(arrays_of(problem), problem.tree, config, 1, pool, stop))
    assert len(reached) == 1
