"""The same trees with node classifiers solved in double precision by Newton's method.

An independent check of what training and its bytes for weights do to predictions, and quick
enough for the many readings: a node has as many weights as features and one more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree

Array = NDArray[np.float64]
MOST_STEPS = 100


def predict_exactly(
    tree: LabelTree, X: NDArray[np.float32], Y: NDArray[np.bool_], cost: float, link: str,
    X_test: NDArray[np.float32],
) -> Array:  # fmt: skip
    """The log of each label's probability in each test row, (n_test, n_labels), of a tree of this link."""
    train, test = with_constant(X), with_constant(X_test)
    n_below = labels_below(tree, Y)
    solve = _solve_plt if link == "plt" else _solve_hsm
    return solve(tree, train, n_below, cost, test)[:, tree.leaf_of_label]


def with_constant(X: NDArray[np.float32]) -> Array:
    return np.column_stack([X.astype(np.float64), np.ones(len(X))])


def labels_below(tree: LabelTree, Y: NDArray[np.bool_]) -> Array:
    """(n_rows, n_nodes) how many labels of a row are below a node."""
    found = np.zeros((len(Y), tree.n_nodes))
    found[:, tree.leaf_of_label] = Y
    for node in range(tree.n_nodes - 1, 0, -1):  # children stand after their parents
        found[:, tree.parent[node]] += found[:, node]
    return found


def _solve_plt(tree: LabelTree, X: Array, n_below: Array, cost: float, X_test: Array) -> Array:
    """Each node on the rows that are positive for its parent, the root on all."""
    logs = np.zeros((len(X_test), tree.n_nodes))
    for node in range(tree.n_nodes):
        parent = tree.parent[node]
        rows = slice(None) if parent < 0 else n_below[:, parent] > 0
        positive = (n_below[rows, node] > 0).astype(np.float64)
        weights = minimise(X[rows], positive, 1.0 - positive, cost)
        above = 0.0 if parent < 0 else logs[:, parent]
        logs[:, node] = above if weights is None else above - np.logaddexp(0.0, -(X_test @ weights))
    return logs


def _solve_hsm(tree: LabelTree, X: Array, n_below: Array, cost: float, X_test: Array) -> Array:
    """One classifier per inner node. Of s copies of weight 1/s some go left, some right."""
    if not set(np.unique(tree.n_children)) <= {0, 2}:
        raise ValueError("only binary trees are solved here")
    logs = np.zeros((len(X_test), tree.n_nodes))
    copies = n_below / np.maximum(n_below[:, :1], 1.0)
    for node in np.flatnonzero(tree.n_children):
        left, right = tree.first_child[node], tree.first_child[node] + 1
        rows = n_below[:, node] > 0
        weights = minimise(X[rows], copies[rows, left], copies[rows, right], cost)
        scores = np.full(len(X_test), np.inf) if weights is None else X_test @ weights
        logs[:, left] = logs[:, node] - np.logaddexp(0.0, -scores)
        logs[:, right] = logs[:, node] - np.logaddexp(0.0, scores)
    return logs


def minimise(X: Array, positive: Array, negative: Array, cost: float) -> Array | None:
    """The w of least |w|²/2 + cost * (sum of positive * log(1 + e^-w·x) + negative * log(1 + e^w·x)).

    None if there is nothing negative: the constant 1.
    """
    if not negative.any():
        return None
    total = positive + negative

    def objective(weights: Array) -> float:
        scores = X @ weights
        losses = positive * np.logaddexp(0.0, -scores) + negative * np.logaddexp(0.0, scores)
        return float(cost * losses.sum() + 0.5 * weights @ weights)

    weights = np.zeros(X.shape[1])
    lowest = objective(weights)
    for _ in range(MOST_STEPS):
        probability = 1.0 / (1.0 + np.exp(-(X @ weights)))
        gradient = cost * (X.T @ (total * probability - positive)) + weights
        curvature = total * probability * (1.0 - probability)
        hessian = cost * (X.T @ (X * curvature[:, None])) + np.eye(X.shape[1])
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease <= 1e-10 * lowest:
            return weights - step  # so close that this step squares what is left
        while objective(weights - step) > lowest:
            step /= 2.0
        weights = weights - step
        lowest = objective(weights)
    raise ArithmeticError(f"Newton's method has not converged in {MOST_STEPS} steps")
