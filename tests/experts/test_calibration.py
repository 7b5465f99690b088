"""Calibration: the fitted map against a general optimiser, on odd data, and its gain on held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.problems import Problem, arrays_of, random_problem
from support.small_data import LABELS, empty_rows, make_toy, slow_marginals
from support.sparse_problems import fit
from support.strategies import sparse_rows

import labeltree
from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.experts.calibration import fit_map, map_of_rows
from labeltree.experts.held_out import LEAST_ROWS, HeldOut, hold_out
from labeltree.experts.tree_expert import TreeExpert
from labeltree.features.vectors import VectorFeatures
from labeltree.parallel import Pool
from labeltree.query import query_all
from labeltree.reference.sparse import calibrated, calibration_loss
from labeltree.trees.shapes import build_flat


def draw_pairs(n: int, seed: int, true_map: tuple[float, float, float]) -> tuple[NDArray, NDArray]:
    """Probabilities, and labels that are right as often as the map says."""
    random = np.random.default_rng(seed)
    p = random.beta(0.5, 1.5, n).astype(np.float32)
    probabilities = [calibrated(float(np.log(value)), true_map) for value in p]
    return p, random.random(n) < probabilities


@settings(max_examples=60)
@given(
    n=st.sampled_from([1, 3, 30, 300]),
    seed=st.integers(0, 999),
    true_map=st.sampled_from([(1.0, 1.0, 0.0), (0.2, 0.1, -1.0), (0.05, 3.0, 1.0), (3.0, 0.05, -2.0)]),
)
def test_the_map_is_the_most_likely_one(n: int, seed: int, true_map: tuple[float, float, float]) -> None:
    from scipy.optimize import minimize

    p, is_right = draw_pairs(n, seed, true_map)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = fit_map(p, is_right, np.ones(n, np.float32))
    best = minimize(
        calibration_loss,
        [1.0, 1.0, 0.0],
        (p.astype(np.float64), is_right),
        bounds=[(0.05, None), (0.05, None), (None, None)],
    )
    assert (found[:2] >= 0.05).all()
    assert calibration_loss(found.tolist(), p.astype(np.float64), is_right) <= best.fun + 1e-3 * (
        1 + best.fun
    )


def test_a_known_map_is_found() -> None:
    p, is_right = draw_pairs(20_000, 1, (0.7, 1.4, -0.5))
    found = fit_map(p, is_right, np.ones(20_000, np.float32))
    for log in np.log(np.linspace(0.01, 0.99, 50)):
        assert calibrated(log, found) == pytest.approx(calibrated(log, (0.7, 1.4, -0.5)), abs=0.02)


def test_a_weight_counts_as_so_many_pairs() -> None:
    p, is_right = draw_pairs(300, 2, (0.7, 1.4, -0.5))
    times = np.random.default_rng(3).integers(0, 5, 300)
    found = fit_map(p, is_right, times.astype(np.float32))
    repeated = np.repeat(p, times), np.repeat(is_right, times), np.ones(times.sum(), np.float32)
    np.testing.assert_allclose(found, fit_map(*repeated), rtol=1e-6)
    assert not np.allclose(found, fit_map(p, is_right, np.ones(300, np.float32)), rtol=0.01)


@pytest.mark.parametrize("p", [0.0, 1e-30, 1e-6, 0.5, 1.0 - 1e-7, 1.0])
@pytest.mark.parametrize("right", ["all", "none", "half"])
def test_odd_data_give_a_finite_rising_map(p: float, right: str) -> None:
    is_right = np.zeros(2000, bool)
    is_right[:: {"all": 1, "none": 3000, "half": 2}[right]] = right != "none"
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = fit_map(np.full(2000, p, np.float32), is_right, np.ones(2000, np.float32))
    assert np.isfinite(found).all()
    assert (found[:2] > 0).all()
    logs = [-np.inf, -50.0, -3.0, -0.1, -1e-6, 0.0]
    values = [calibrated(log, found) for log in logs]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 1.0)


def held_out_of(problem: Problem, rows: TrainingRows) -> HeldOut:
    """As vectors are: nothing of them is learned from other rows."""
    X = sparse_rows([dict(example.features) for example in problem.examples], problem.n_features)
    return hold_out(VectorFeatures(Config(), problem.n_features), rows._replace(X=X), Config())


def test_too_few_rows_change_nothing() -> None:
    data = make_toy(LEAST_ROWS - 1, seed=4)
    model = labeltree.train(data.X, data.Y, nodes="sparse")
    assert model.experts[0].parameters.calibration.tolist() == [1.0, 1.0, 0.0]
    assert not len(model.combination.map)


@pytest.mark.parametrize("n_labels", [2, 3, 9])
def test_held_out_rows_become_likelier(n_labels: int) -> None:
    """Features mean nothing, so what was learned is too sure of itself; threads change nothing."""
    problem = random_problem(build_flat(n_labels), 1500, seed=3)
    rows, config = arrays_of(problem), Config(C=30.0, rare_weight=0.0, max_iterations=30)
    fitted, _ = fit(problem, config)
    first = TreeExpert(problem.tree, "sparse", fitted.without_held_out, problem.n_features)
    held = held_out_of(problem, rows)
    with Pool(1) as one, Pool(3) as three:
        found = map_of_rows(first, held, one)
        assert found.tobytes() == map_of_rows(first, held, three).tobytes()

    held_out = held.numbers
    labels = np.arange(n_labels, dtype=np.int32)
    asked = (np.arange(len(held_out) + 1) * n_labels, np.tile(labels, len(held_out)))
    asked_rows = sparse_rows([dict(problem.examples[row].features) for row in held_out], problem.n_features)
    is_right = np.array([label in problem.examples[row].labels for row in held_out for label in labels])
    losses = []
    for calibration in ([1.0, 1.0, 0.0], found):
        parameters = fitted.without_held_out._replace(calibration=np.array(calibration, np.float32))
        search = TreeExpert(problem.tree, "sparse", parameters, problem.n_features)
        found_now = search.score(asked_rows[:3], asked, query_all()).astype(np.float64)
        found_now = np.clip(found_now, 1e-6, 1 - 1e-6)
        likelihoods = np.where(is_right, np.log(found_now), np.log(1 - found_now))
        losses.append(-np.average(likelihoods, weights=np.repeat(rows.weight[held_out], n_labels)))
    assert losses[1] < losses[0] - 0.01


@pytest.mark.parametrize(
    "parameters", [{}, {"loss": "log"}, {"solver": "sgd", "trees": 2}, {"nodes": "both"}]
)
def test_a_model_answers_with_calibrated_probabilities(parameters: dict[str, Any], tmp_path: Path) -> None:
    """In every call; and it is the same for any number of threads."""
    data, test = make_toy(600, seed=4), make_toy(60, seed=5)
    parameters = {"nodes": "sparse", "arity": 2, "max_leaves": 3, "neighbours": 0} | parameters
    model = labeltree.train(data.X, data.Y, threads=1, **parameters)
    maps = [
        search.parameters.calibration for search in model.experts if hasattr(search.parameters, "calibration")
    ]
    assert len(maps) == model.config.trees
    assert all(map.tolist() != [1.0, 1.0, 0.0] and (map[:2] >= 0.05).all() for map in maps)
    for X in (test.X, empty_rows("vectors")):
        expected = slow_marginals(model, X)
        found = model.probability(X, model.label_names)
        np.testing.assert_allclose(found, expected, rtol=5e-5, atol=1e-6)
        ids, best = model.predict_arrays(X, len(LABELS))
        np.testing.assert_allclose(best, np.take_along_axis(found, ids, 1), rtol=2e-6)
        for threshold in (0.02, 0.3, 0.8):
            above = model.predict_rows(X, threshold)
            assert len(above.indices) == pytest.approx(np.count_nonzero(expected >= threshold), abs=1)
            assert (above.values >= np.float32(threshold)).all()
            assert np.count_nonzero(model.predict_arrays(X, 12, threshold=threshold)[0] >= 0) == len(
                above.indices
            )
    for threads in (1, 2):
        labeltree.train(data.X, data.Y, threads=threads, **parameters).save(tmp_path / f"{threads}")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert labeltree.load(tmp_path / "1").predict(test.X) == model.predict(test.X)
