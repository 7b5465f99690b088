"""Direct nodes are sparse ones whose weights are kept as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import Problem, arrays_of, labelled, problems, random_problem
from support.sparse_problems import solve

import labeltree
from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.nodes import KINDS
from labeltree.nodes.direct import fitting
from labeltree.nodes.kind import Facts, Fit, FitInput
from labeltree.parallel import Pool
from labeltree.reference.sparse import BIAS
from labeltree.training.driver import estimate
from labeltree.tree import LabelTree
from labeltree.trees.shapes import build_complete

EXACT: dict[str, Any] = dict(nodes="direct", tolerance=0.0, max_iterations=3)
METHODS: dict[str, dict[str, Any]] = {
    "hinge": dict(loss="squared-hinge", C=0.7),
    "log": dict(loss="log", C=2.0, l1=0.05),
    "online": dict(solver="sgd", epochs=2),
}


def tree_of(n_labels: int, arity: int) -> LabelTree:
    return build_complete(np.ones(n_labels, np.int64), arity)


def fit(problem: Problem, config: Config, held_out: tuple[int, ...] = (), threads: int = 1) -> Fit:
    rows = arrays_of(problem)
    facts = Facts(rows.Y.n_labels, rows.Y.examples_per_label, len(rows.X.indices))
    with Pool(threads) as pool:
        own = KINDS["direct"].resolve(config, facts)
        numbers = np.array(held_out, np.int64)
        return KINDS["direct"].fit(FitInput(rows, problem.tree, own, 5, pool, held_out=numbers))


@pytest.mark.parametrize("link", ["plt", "hsm"])
@pytest.mark.parametrize("method", METHODS)
def test_weights_are_those_that_sparse_nodes_round(method: str, link: str) -> None:
    """Which are compared with the reference in their own tests."""
    config = Config(**(EXACT | METHODS[method] | {"link": link}))
    problem = labelled(random_problem(tree_of(9, 3), 40, seed=2))
    found, expected = fit(problem, config).parameters, solve(problem, config, seed=5)
    factor, summand = (3.0, 1.0) if (method, link) == ("hinge", "plt") else (1.0, 0.0)
    assert len(expected) > 5
    for node, weights in expected.items():
        bias = weights.pop(BIAS)
        dense = np.zeros(problem.n_features)
        dense[list(weights)] = list(weights.values())
        np.testing.assert_allclose(found.weights[node], factor * dense, rtol=1e-6)
        np.testing.assert_allclose(found.bias[node], factor * bias * config.bias + summand, rtol=1e-5)


@given(problems(), st.sampled_from(sorted(METHODS)))
def test_nodes_without_a_task_keep_their_bias(problem: Problem, method: str) -> None:
    found = fit(problem, Config(**(EXACT | METHODS[method]))).parameters
    of_sparse = fit_sparse(problem, Config(**(EXACT | METHODS[method] | {"nodes": "sparse"})))
    constant = np.isinf(of_sparse)
    assert np.array_equal(found.bias[constant], of_sparse[constant])
    assert not found.weights[constant].any()
    assert np.isfinite(found.bias[~constant]).all()


def fit_sparse(problem: Problem, config: Config) -> np.ndarray:
    rows = arrays_of(problem)
    with Pool(1) as pool:
        own = KINDS["sparse"].resolve(config, Facts(rows.Y.n_labels, 1.0, 1))
        return KINDS["sparse"].fit(FitInput(rows, problem.tree, own, 5, pool)).parameters.bias


def test_held_out_rows_join_last() -> None:
    problem = random_problem(tree_of(6, 2), 60, seed=1)
    config = Config(**(EXACT | METHODS["log"]))
    first, second = fit(problem, config, (0, 3, 17)), fit(problem, config)
    assert second.without_held_out is None
    assert not np.array_equal(first.without_held_out.weights, first.parameters.weights)


def test_threads_do_not_change_a_bit() -> None:
    problem = random_problem(tree_of(80, 4), 200, seed=3)
    one, three = (fit(problem, Config(nodes="direct"), threads=n).parameters for n in (1, 3))
    assert all(map(np.array_equal, one, three))


def test_more_memory_than_sensible_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_BYTES", 1000)
    with pytest.raises(TrainingError, match=r"direct nodes keep a number for each of 40 features.*sparse"):
        fit(random_problem(tree_of(6, 2), 10, seed=1), Config(nodes="direct"))
    with pytest.raises(TrainingError, match="direct nodes keep a number for each of 40 features"):
        estimate(np.eye(40, dtype=np.float32), [[f"{row % 20}"] for row in range(40)], nodes="direct")


def test_given_vectors_are_searched_as_they_are(tmp_path: Path) -> None:
    """Dense rows, negative values too: the model says what its weights say, before and after the file."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 20)).astype(np.float32)
    Y = (X[:, :9] > 0.8).astype(np.int8)
    how = dict(nodes="direct", row_norm="none", calibrate=False, neighbours=0)
    model = labeltree.train(X, Y, **how)
    model.save(tmp_path / "m")
    loaded = labeltree.load(tmp_path / "m")
    assert np.array_equal(loaded.probability(X, ["3"]), model.probability(X, ["3"]))
    _, best = loaded.predict_arrays(X, 9)
    np.testing.assert_allclose(best, -np.sort(-loaded.probability(X, loaded.label_names), 1), rtol=2e-6)
    assert loaded.test(X, Y, k=1)["p@1"] > 0.9 * (Y.sum(axis=1) > 0).mean()
