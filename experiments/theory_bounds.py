"""Theorems 1 and 2: the two regret bounds, both sides exact, on many distributions with wrong estimates.

A bound that is only never violated may still be a wrong one, too large by a factor. So each check also has
cases in which the bound as printed is reached, and fails if it is not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments import theory_exact as exact
from experiments import theory_trees as trees
from experiments.theory_checks import N_LABELS, Check, random_probabilities
from experiments.theory_exact import Array
from labeltree.tree import LabelTree

SLACK = 1e-7  # regrets are differences, rounded at 1e-16, and their roots are taken
REACHED = 0.999  # of a bound, where its proof has equality (for logistic and exponential loss in the limit)
CASES_PER_TREE = 50


def wrong_estimates(random: np.random.Generator, tree: LabelTree, truth: Array) -> Iterator[Array]:
    """(n_cases, n_nodes) estimates of the nodes' conditionals that miss the truth in six ways."""
    noise = random.random(truth.shape)
    yield noise
    yield np.clip(truth + 0.1 * (noise - 0.5), 0.0, 1.0)
    yield np.clip(truth + 0.02, 0.0, 1.0)  # all on one side: errors along a path add up
    yield np.clip(truth - 0.02, 0.0, 1.0)
    yield np.where(noise < 0.5, 1e-9, 1.0 - 1e-9)  # sure, and often wrong
    one_node = np.arange(tree.n_nodes) == random.integers(0, tree.n_nodes, (len(truth), 1))
    yield np.where(one_node, noise, truth)


def random_cases(seed: int, n_cases: int) -> Iterator[tuple[LabelTree, Array, Array]]:
    """Trees with node probabilities and estimates, (cases, n_nodes) each; at least ``n_cases`` in all."""
    random = np.random.default_rng(seed)
    done = 0
    while done < n_cases:
        n_labels = int(random.choice(N_LABELS))
        tree = trees.random_tree(random, n_labels)
        indicator = exact.node_indicator(tree, exact.all_label_sets(n_labels))
        node_probability = random_probabilities(random, n_labels, CASES_PER_TREE) @ indicator
        truth = exact.conditionals(tree, node_probability)
        for estimates in wrong_estimates(random, tree, truth):
            yield tree, node_probability, estimates
            done += CASES_PER_TREE


def largest_ratio(left: Array, right: Array) -> float:
    """Of what is bounded to its bound; infinite where the bound is broken, or is not a number."""
    if not np.all(left <= right + SLACK):
        return float("inf")
    counts = (right > 1e-4) & np.isfinite(right)
    return float((left[counts] / right[counts]).max(initial=0.0))


def reached_marginal_bounds() -> dict[str, float]:
    """Theorem 1 where only leaves err, by a little around 1/2: the bound is the error itself.

    Two labels, 0.3 each, never both; no label at all with 0.4, so that P(z^{i-1}) matters.
    """
    tree = trees.label_tree((0, 1))
    node_probability = np.array([0.6, 0.3, 0.3])
    estimates = np.array([0.6, 0.51, 0.49])
    error = np.abs(exact.path_products(tree, estimates) - [0.3, 0.3])
    bounds = {
        loss.name: exact.marginal_bound(loss, tree, node_probability, estimates) for loss in exact.LOSSES
    }
    return {name: float((error / bound).min()) for name, bound in bounds.items()}


def check_theorem_1(n_cases: int) -> Check:
    """The error of a marginal against the regrets of the classifiers on its path."""
    ratios = {loss.name: 0.0 for loss in exact.LOSSES}
    n_done, n_bounds = 0, 0
    for tree, node_probability, estimates in random_cases(11, n_cases):
        eta = node_probability[:, tree.leaf_of_label]
        error = np.abs(eta - exact.path_products(tree, estimates))
        n_done, n_bounds = n_done + len(eta), n_bounds + error.size * len(exact.LOSSES)
        for loss in exact.LOSSES:
            bound = exact.marginal_bound(loss, tree, node_probability, estimates)
            ratios[loss.name] = max(ratios[loss.name], largest_ratio(error, bound))
    reached = reached_marginal_bounds()
    return Check(
        "Theorem 1: marginals",
        "|eta_j - estimate| is at most the sum over j's path of P(parent) sqrt(2 / lambda) sqrt(regret of "
        "the node's classifier), for strongly proper losses (lambda: logistic 4, exponential 4, squared 8).",
        (
            f"{n_done} random cases (tree, distribution, estimates), {n_bounds} bounds; largest error / "
            "bound: " + ", ".join(f"{name} {ratio:.6f}" for name, ratio in ratios.items()),
            "where only leaves err, by 0.01 around 1/2, error / bound is "
            + ", ".join(f"{name} {ratio:.6f}" for name, ratio in reached.items()),
        ),
        all(ratio <= 1 + 1e-6 for ratio in ratios.values())
        and all(REACHED <= ratio <= 1 + SLACK for ratio in reached.values()),
    )


def reached_precision_bound(k: int) -> float:
    """Theorem 2 where the k best labels are a little underrated and k others overrated as much."""
    eta = np.repeat([0.6, 0.4], k)
    estimates = np.repeat([0.5 - 1e-7, 0.5 + 1e-7], k)
    bound, _ = exact.precision_bounds(eta, estimates, k)
    return float(exact.regret_of_marginals(eta, estimates, k) / bound)


def check_theorem_2(n_cases: int) -> Check:
    """The regret of precision@k against errors of marginals, and through Theorem 1 against node regrets."""
    by_largest = by_mean = by_nodes = 0.0
    n_done = n_regrets = 0
    logistic = exact.LOSSES[0]
    for tree, node_probability, estimates in random_cases(12, n_cases):
        eta, estimated = node_probability[:, tree.leaf_of_label], exact.path_products(tree, estimates)
        of_nodes = 2 * exact.marginal_bound(logistic, tree, node_probability, estimates).max(axis=-1)
        n_done += len(eta)
        for k in range(1, tree.n_labels + 1):
            lost = exact.regret_of_marginals(eta, estimated, k)
            largest, mean = exact.precision_bounds(eta, estimated, k)
            n_regrets += int((lost > SLACK).sum())
            by_largest = max(by_largest, largest_ratio(lost, largest))
            by_mean = max(by_mean, largest_ratio(lost, mean))
            by_nodes = max(by_nodes, largest_ratio(lost, of_nodes))
    reached = [reached_precision_bound(k) for k in (1, 2, 3)]
    shown = ", ".join(f"{ratio:.6f}" for ratio in reached)
    return Check(
        "Theorem 2: precision@k",
        "The regret of precision@k is at most twice the largest error of a marginal; with Theorem 1, at most "
        "twice the largest sum of its node regrets.",
        (
            f"{n_done} random cases, every k, {n_regrets} with regret; largest regret / bound: by the "
            f"largest error {by_largest:.6f}, by the mean errors of the proof {by_mean:.6f}, by the "
            f"nodes' logistic regrets {by_nodes:.6f}",
            f"k good labels underrated, k others overrated as much: regret / bound {shown} for k = 1, 2, 3",
        ),
        max(by_largest, by_mean, by_nodes) <= 1 + 1e-6
        and n_regrets > n_done // 10
        and all(REACHED <= ratio <= 1 + SLACK for ratio in reached),
    )
