"""Training of direct nodes: the tasks of sparse nodes, whose weights are kept as they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import TrainingError
from labeltree.nodes.direct.tensors import DirectParameters, are_usable
from labeltree.nodes.kind import Fit, FitInput
from labeltree.nodes.sparse.fitting import plan_and_solve
from labeltree.nodes.sparse.plan import Plan
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.nodes.sparse.tasks import Task, train

MOST_BYTES = 16 << 30  # of the weights of one tree


class _Floats(NamedTuple):
    """The weights of a task's siblings."""

    features: NDArray[np.int32]
    weights: NDArray[np.float32]  # (n_children, n_features) of these features
    bias: NDArray[np.float32]  # (n_children,)


def fit_direct(given: FitInput) -> Fit:
    """Train each chunk of siblings on the rows of their parent."""
    check_size(given.tree.n_nodes, given.rows.X.n_columns)
    plan, solved = plan_and_solve(given, _solve)
    whole = _assemble(plan, {number: found[-1] for number, found in solved.items()})
    if not np.any(plan.rows.held_out):
        return Fit(whole)
    return Fit(whole, _assemble(plan, {number: found[0] for number, found in solved.items()}))


def check_size(n_nodes: int, n_features: int) -> None:
    """Refuse weights that are too many to keep."""
    n_bytes = 4 * n_nodes * n_features
    if n_bytes > MOST_BYTES:
        raise TrainingError(
            f"direct nodes keep a number for each of {n_features:,} features and {n_nodes:,} nodes, "
            f"{n_bytes / 1e9:.0f} GB here; use nodes='sparse', which are made for many features"
        )


def _solve(task: Task) -> list[_Floats]:
    """Without the held-out rows, if there are any, and with all."""
    return [_floats(task, *trained) for trained in train(task)]


def _floats(task: Task, features: NDArray[np.int32], weights: NDArray[np.float32], l1: float) -> _Floats:
    """A copy, as training goes on with the weights; behind those of the features stands that of the bias."""
    n_features, n_children = len(features), len(task.is_learned)
    size = np.abs(weights[:, :n_children]) - np.float32(l1)
    shrunk = np.copysign(np.maximum(size, 0), weights[:, :n_children])
    if not are_usable(shrunk):
        raise task.solver.diverged(task.config)
    bias = shrunk[n_features:].sum(axis=0) * np.float32(task.config.bias)
    return _Floats(features, np.ascontiguousarray(shrunk[:n_features].T), bias)


def _assemble(plan: Plan, solved: dict[int, _Floats]) -> DirectParameters:
    """One matrix for all tasks; nodes of none keep their first bias."""
    factor, summand = (np.float32(number) for number in solver_of(plan.config).log_odds)
    weights = np.zeros((plan.tree.n_nodes, plan.n_features), np.float32)
    bias = plan.bias.copy()
    for number, found in solved.items():
        starts = plan.starts_of(number)
        learned = np.flatnonzero(plan.is_learned[starts[0] : starts[-1]])
        nodes = starts[0] + learned
        weights[np.ix_(nodes, found.features)] = factor * found.weights[learned]
        bias[nodes] = factor * found.bias[learned] + summand
    return DirectParameters(weights, bias)
