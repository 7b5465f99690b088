"""Sparse nodes fitted to small problems, and how near the results are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from support.problems import Problem, arrays_of
from support.strategies import sparse_rows

from labeltree import LabelTree
from labeltree.config import Config
from labeltree.data.rows import LabelRows
from labeltree.experts.held_out import choose_rows
from labeltree.experts.tree_expert import TreeExpert
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes import KINDS
from labeltree.nodes.kind import Facts, Fit, FitInput
from labeltree.nodes.sparse.fitting import fit_sparse
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.plan import Plan, make_plan
from labeltree.nodes.sparse.tasks import gather, train
from labeltree.parallel import Pool
from labeltree.query import query_all
from labeltree.reference import sparse as reference
from labeltree.reference.sparse import BIAS, Weights

EXACT: dict[str, Any] = dict(tolerance=0.0, rare_weight=0.0)  # every pass is made


METHODS: dict[str, dict[str, Any]] = {
    "squared-hinge": dict(loss="squared-hinge"),
    "log": dict(loss="log"),
    "active": dict(solver="active"),
    "active-hinge": dict(solver="active", loss="hinge"),
    "sgd": dict(solver="sgd"),
}


def fit(problem: Problem, config: Config, *, seed: int = 3, threads: int = 1) -> tuple[Fit, list[float]]:
    rows = arrays_of(problem)
    heard: list[float] = []
    with Pool(threads) as pool:
        given = FitInput(rows, problem.tree, resolved(config, rows.Y), seed, pool)
        given = given._replace(held_out=choose_rows(rows.weight))
        fitted = fit_sparse(given._replace(report=lambda done: heard.append(done.fraction)))
    return fitted, heard


def resolved(config: Config, Y: LabelRows) -> Config:
    """As the driver hands it to sparse nodes."""
    return KINDS["sparse"].resolve(config, Facts(Y.n_labels, Y.examples_per_label, len(Y.indices)))


def plan_of(problem: Problem, config: Config, *, seed: int = 3) -> Plan:
    X, Y, weight = arrays_of(problem)
    held_out = choose_rows(weight)
    return make_plan(X, Y, problem.tree, resolved(config, Y), weight=weight, held_out=held_out, seed=seed)


def numbers_of(plan: Plan) -> list[int]:
    """The tasks with anything to learn."""
    return np.flatnonzero(plan.cost > 0).tolist()


def solve(problem: Problem, config: Config, *, seed: int = 3) -> dict[int, Weights]:
    """The weights of each learned node as the kernel leaves them, before they are pruned and rounded."""
    plan = plan_of(problem, config, seed=seed)
    scratch, found = Scratch(plan), {}
    for number in numbers_of(plan):
        task, first = gather(plan, number, scratch), int(plan.starts_of(number)[0])
        *_, (features, weights, l1) = train(task)
        names = features.tolist() + [BIAS] * (config.bias > 0)
        for child in np.flatnonzero(task.is_learned).tolist():
            column = dict(zip(names, weights[:, child].astype(float).tolist(), strict=True))
            found[first + child] = reference.shrink(column, l1)
    return found


def assert_close(found: dict[int, Weights], expected: dict[int, Weights], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for node in expected:
        features = sorted(found[node].keys() | expected[node].keys())
        np.testing.assert_allclose(
            [found[node].get(feature, 0.0) for feature in features],
            [expected[node].get(feature, 0.0) for feature in features],
            rtol=tolerance,
            atol=tolerance,
        )


def same_bytes(a: SparseParameters, b: SparseParameters) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


class Pushed(NamedTuple):
    """An example at the end of training."""

    features: Weights
    push: float  # its dual variable, with the sign of what it adds to the weights
    cost: float


def sum_pushes(seen: list[Pushed], config: Config, total: float) -> tuple[Weights, Weights]:
    """What the examples add to each weight, and how far from that float32 and the tolerance may leave it.

    ``total`` is what the dual variables of all siblings sum up to at most. Three things are not exact:

    * A variable moves until its next step is rounded away: when that is smaller than the last digit of the
      variable (at most the cost, or what the squared hinge makes of it), or that of the score.
    * In the last pass the variables of siblings moved by ``tolerance * total`` at most. That changed scores
      of examples that had been visited before by |x|² times as much.
    * Weights are the sum of all moves there were. Each was rounded, and the variable's may have been rounded
      otherwise.

    A variable follows its score by 2 * cost at most; steps of a softmax are that much shorter.
    """
    rounding = 2.0**-24  # of a float32 ...
    digit = 4 * rounding  # ... and a few on the way
    n_passes = config.max_iterations
    move = config.tolerance * total
    squares = max((sum(value**2 for value in one.features.values()) for one in seen), default=0.0)
    summed: Weights = {}
    error: Weights = {}
    for features, push, cost in seen:
        size = max(abs(push), cost)
        off = move + 2 * cost * (digit * (1.0 + squares * size) + squares * move) + n_passes * rounding * size
        for feature, value in features.items():
            summed[feature] = summed.get(feature, 0.0) + push * value
            error[feature] = error.get(feature, 0.0) + abs(value) * off
    for feature, weight in summed.items():
        error[feature] += n_passes * len(seen) * rounding * (0.1 + abs(weight))
    return summed, error


def marginals(
    tree: LabelTree, parameters: SparseParameters, rows: list[dict[int, float]], n_features: int
) -> NDArray[np.float32]:
    """(n_rows, n_labels) by the kernel."""
    labels = np.tile(np.arange(tree.n_labels, dtype=np.int32), len(rows))
    asked = (np.arange(len(rows) + 1) * tree.n_labels, labels)
    search = TreeExpert(tree, "sparse", parameters, n_features)
    return search.score(sparse_rows(rows, n_features)[:3], asked, query_all()).reshape(
        len(rows), tree.n_labels
    )
