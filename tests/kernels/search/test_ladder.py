"""Bounds of probabilities hold, for any calibration and map."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from support.problems import random_problem
from support.sparse_problems import fit

from labeltree.config import Config
from labeltree.experts.tree_expert import TreeExpert
from labeltree.kernels.search.answer import mapped
from labeltree.kernels.search.exact import probability_of
from labeltree.kernels.search.ladder import (
    least_at,
    least_of_vote,
    make_ladder,
    most_at,
    most_with,
    rung_of,
)
from labeltree.kernels.search.sparse import nodes_at
from labeltree.kernels.search.weighted import Weights
from labeltree.trees.shapes import build_flat

SHARE = 0.7  # of the tree; the votes have the rest
MAPS = {"none": [], "smooth": [0.8, 1.3, -0.2], "bent": [1.1, 0.9, 0.3, -2.5, -1.0, -0.5, 0.1, 3.0]}


@numba.njit
def told(table, indices, values, map, logs, votes, out):
    """What bounds say of each log-probability and vote, and what is true."""
    nodes = nodes_at(table, indices, values)
    none = np.empty(0, np.float32)
    weights = Weights(none, none, np.empty((0, 0), np.float32), SHARE, 1.0, map, 0.0, 0.0, False)
    ladder = make_ladder(nodes, weights)
    for i in range(len(logs)):
        rung, evidence = rung_of(logs[i]), SHARE * probability_of(nodes, logs[i])
        out[i, 0], out[i, 1] = least_at(ladder, rung), mapped(map, np.float32(evidence))
        out[i, 2], out[i, 3] = most_at(ladder, rung), mapped(map, np.float32(evidence + votes[i]))
        out[i, 4] = most_with(ladder, rung, votes[i])
        out[i, 5], out[i, 6] = least_of_vote(ladder, votes[i]), mapped(map, np.float32(votes[i]))


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("calibration", [(1.0, 1.0, 0.0), (0.4, 0.6, -0.5), (0.7, 2.0, -2.0)])
def test_the_bounds_hold(name: str, calibration: tuple[float, ...]) -> None:
    tree = build_flat(5)
    problem = random_problem(tree, 30, seed=2, n_features=20)
    parameters = fit(problem, Config(nodes="sparse", max_iterations=3))[0].parameters
    parameters = parameters._replace(calibration=np.array(calibration, np.float32))
    expert, random = TreeExpert(tree, "sparse", parameters, 20), np.random.default_rng(0)
    edges = -np.arange(0, 120, dtype=np.float32) / 8
    logs = np.concatenate([-random.exponential(3.0, 500), edges, np.nextafter(edges, -1), [-np.inf, -90.0]])
    votes = random.uniform(0.0, 1.0 - SHARE, len(logs)) ** 2
    votes[:200] = (random.integers(0, 60, 200) / 128) ** 2
    votes = np.minimum(votes, 1.0 - SHARE)
    out = np.empty((len(logs), 7))
    rows = np.empty(0, np.int32), np.empty(0, np.float32)
    told(expert.table, *rows, np.array(MAPS[name]), logs.astype(np.float32), votes, out)
    assert np.isfinite(out).all()
    for low, high in ((0, 1), (1, 2), (3, 4), (5, 6)):
        assert (out[:, low] <= out[:, high]).all()
    near = logs > -11.0
    assert (out[near, 2] < 2.5 * out[near, 0]).all()
