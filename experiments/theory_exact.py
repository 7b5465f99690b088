"""The quantities of the paper's theory, from their definitions, on distributions small enough to list.

A distribution is a list of label sets with probabilities, that of one ``x``. Nothing is estimated here: every
probability, precision and regret is a finite sum in float64. Trees are those of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree

Array = NDArray[np.float64]


class Distribution(NamedTuple):
    """P(y | x) of one x."""

    labels: NDArray[np.bool_]  # (n_sets, n_labels)
    probability: Array  # (n_sets,)


def all_label_sets(n_labels: int) -> NDArray[np.bool_]:
    """(2^n_labels, n_labels) every label vector, the empty one first."""
    return (np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) % 2 == 1


def independent(eta: Array) -> Distribution:
    """Labels that do not depend on each other, with these marginals."""
    labels = all_label_sets(len(eta))
    return Distribution(labels, np.where(labels, eta, 1.0 - eta).prod(axis=1))


def marginals(distribution: Distribution) -> Array:
    """eta_j = P(y_j = 1)."""
    return distribution.probability @ distribution.labels


def pick_one(distribution: Distribution) -> Array:
    """eta'_j, the paper's equation (2): the probability that label j is the one picked.

    They sum to the probability that there is any label to pick.
    """
    size = np.maximum(distribution.labels.sum(axis=1), 1)
    return (distribution.probability / size) @ distribution.labels


def copies(distribution: Distribution) -> Distribution:
    """The multi-class rows of pick-one-label: each set of s labels as s rows of weight 1/s."""
    row, label = np.nonzero(distribution.labels)
    size = distribution.labels.sum(axis=1)
    single = np.arange(distribution.labels.shape[1]) == label[:, None]
    return Distribution(single, (distribution.probability / np.maximum(size, 1))[row])


def top(values: Array, k: int) -> NDArray[np.int64]:
    """(..., k) the labels of the k largest values; of equal ones the lower label."""
    return np.argsort(-values, axis=-1, kind="stable")[..., :k]


def expected_precision(distribution: Distribution, chosen: Sequence[int] | NDArray[np.int64]) -> float:
    """Precision@k of predicting these k labels, by its definition: the mean over all label sets."""
    hits = distribution.labels[:, list(chosen)].sum(axis=1)
    return float(distribution.probability @ hits) / len(chosen)


def best_precision(distribution: Distribution, k: int) -> float:
    """The Bayes-optimal precision@k: of all sets of k labels the best."""
    n_labels = distribution.labels.shape[1]
    return max(expected_precision(distribution, chosen) for chosen in combinations(range(n_labels), k))


def regret(distribution: Distribution, values: Array, k: int) -> float:
    """What predicting the k labels of the largest values loses against the best k labels."""
    return best_precision(distribution, k) - expected_precision(distribution, top(values, k))


def regret_of_marginals(eta: Array, values: Array, k: int) -> Array:
    """(...,) the same regret by the paper's formula, which needs marginals only; many cases at once."""
    best = np.take_along_axis(eta, top(eta, k), axis=-1)
    chosen = np.take_along_axis(eta, top(values, k), axis=-1)
    return (best.sum(axis=-1) - chosen.sum(axis=-1)) / k


def node_indicator(tree: LabelTree, labels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n_sets, n_nodes) whether the set has a label below the node."""
    below = np.zeros((len(labels), tree.n_nodes), np.bool_)
    below[:, tree.leaf_of_label] = labels
    for node in range(tree.n_nodes - 1, 0, -1):  # children stand after their parents
        below[:, tree.parent[node]] |= below[:, node]
    return below


def of_parent(tree: LabelTree, node_probability: Array) -> Array:
    """(..., n_nodes) P(z^{i-1}): the probability of each node's parent, 1 above the root."""
    above = node_probability[..., np.maximum(tree.parent, 0)]
    return np.where(tree.parent < 0, 1.0, above)


def conditionals(tree: LabelTree, node_probability: Array) -> Array:
    """(..., n_nodes) P(z_i | z^{i-1}); 0 where the parent never is positive."""
    above = of_parent(tree, node_probability)
    ratio = np.divide(node_probability, above, out=np.zeros_like(node_probability), where=above > 0)
    return np.minimum(ratio, 1.0)  # a sum may be rounded above its parent's


def path_products(tree: LabelTree, factors: Array) -> Array:
    """(..., n_labels) the product of the factors on each label's path, the root's included."""
    product = factors.copy()
    for node in range(1, tree.n_nodes):
        product[..., node] *= product[..., tree.parent[node]]
    return product[..., tree.leaf_of_label]


def path_sums(tree: LabelTree, terms: Array) -> Array:
    """(..., n_labels) the sum of the terms on each label's path, the root's included."""
    total = terms.copy()
    for node in range(1, tree.n_nodes):
        total[..., node] += total[..., tree.parent[node]]
    return total[..., tree.leaf_of_label]


def plt_marginals(tree: LabelTree, distribution: Distribution) -> Array:
    """What a PLT with exact conditionals says: the paper's equation (3)."""
    node_probability = distribution.probability @ node_indicator(tree, distribution.labels)
    return path_products(tree, conditionals(tree, node_probability))


def hsm_probabilities(tree: LabelTree, distribution: Distribution) -> Array:
    """What hierarchical softmax with exact conditionals says when it is trained on one picked label each.

    Siblings' scores are the logarithms of their weights, made probabilities by a softmax. There is no
    classifier at the root, so rows without labels are not seen.
    """
    picked = copies(distribution)
    node_weight = picked.probability @ node_indicator(tree, picked.labels)
    share = np.ones(tree.n_nodes)
    for parent in np.flatnonzero((tree.n_children > 0) & (node_weight > 0)):
        first = int(tree.first_child[parent])
        siblings = slice(first, first + int(tree.n_children[parent]))
        with np.errstate(divide="ignore"):
            scores = np.log(node_weight[siblings])
        raised = np.exp(scores - scores.max())
        share[siblings] = raised / raised.sum()
    unseen = of_parent(tree, node_weight) == 0
    unseen[0] = False
    share[unseen] = 0.0
    return path_products(tree, share)


class Loss(NamedTuple):
    """A strongly proper composite loss: loss(z, f) for z = +-1 of a score f = link(probability)."""

    name: str
    strength: float  # the paper's lambda
    link: Callable[[Array], Array]
    loss: Callable[[float, Array], Array]


def _log_odds(probability: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)


def _exponential(z: float, score: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(-z * score)


LOSSES = (
    Loss("logistic", 4.0, _log_odds, lambda z, score: np.logaddexp(0.0, -z * score)),
    Loss("exponential", 4.0, lambda probability: _log_odds(probability) / 2, _exponential),
    Loss("squared", 8.0, lambda probability: 2 * probability - 1, lambda z, score: (1 - z * score) ** 2),
)


def risk(loss: Loss, probability: Array, score: Array) -> Array:
    """The expected loss of a score where z = 1 has this probability; what never happens costs nothing."""
    with np.errstate(invalid="ignore"):
        positive = np.where(probability > 0, probability * loss.loss(1.0, score), 0.0)
        negative = np.where(probability < 1, (1 - probability) * loss.loss(-1.0, score), 0.0)
    return positive + negative


def node_regret(loss: Loss, probability: Array, estimate: Array) -> Array:
    """The regret of a node's classifier among the rows of its parent; the best score is the truth's."""
    least = risk(loss, probability, loss.link(probability))
    return np.maximum(risk(loss, probability, loss.link(estimate)) - least, 0.0)


def marginal_bound(loss: Loss, tree: LabelTree, node_probability: Array, estimates: Array) -> Array:
    """(..., n_labels) the right side of Theorem 1; ``estimates`` are the nodes' estimated conditionals."""
    above = of_parent(tree, node_probability)
    regrets = node_regret(loss, conditionals(tree, node_probability), estimates)
    with np.errstate(invalid="ignore"):  # a node whose parent never is positive has no regret
        terms = np.where(above > 0, above * np.sqrt(2 / loss.strength) * np.sqrt(regrets), 0.0)
    return path_sums(tree, terms)


def precision_bounds(eta: Array, estimates: Array, k: int) -> tuple[Array, Array]:
    """(...,) the right side of Theorem 2, and the smaller one in its proof.

    That is the mean error of the k best labels plus that of the k chosen ones.
    """
    error = np.abs(eta - estimates)
    of_best = np.take_along_axis(error, top(eta, k), axis=-1).mean(axis=-1)
    of_chosen = np.take_along_axis(error, top(estimates, k), axis=-1).mean(axis=-1)
    return 2 * error.max(axis=-1), of_best + of_chosen
