"""What search finds, the slow way: the probability of every label, then sorting. And Algorithm 2 as printed.

    P(label | x) = product over the path from the root to the leaf of P(node | parent, x), the root's included

Twin of the kernels in :mod:`labeltree.kernels.search` and of :mod:`labeltree.experts.tree_expert`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.nodes.direct.tensors import DirectParameters
from labeltree.nodes.sparse.fitting import SparseParameters
from labeltree.reference import sparse
from labeltree.reference.bends import bent
from labeltree.reference.training import children_of, hidden_vector
from labeltree.tree import LabelTree

Array = NDArray[np.float64]
Parameters = DenseParameters | DirectParameters | SparseParameters


def log_sigmoid(score: float) -> float:
    """log(1 / (1 + exp(-score))), of any score."""
    if score == -math.inf:
        return -math.inf
    return min(score, 0.0) - math.log1p(math.exp(-abs(score)))


def node_scores(tree: LabelTree, parameters: Parameters, features: Mapping[int, float]) -> Array:
    """(n_nodes,) the log-odds of each node among the examples of its parent."""
    if isinstance(parameters, SparseParameters):
        return sparse.scores(tree, parameters, features)
    if isinstance(parameters, DirectParameters):
        columns, values = list(features), np.array(list(features.values()), np.float64)
        return (parameters.weights[:, columns] * values).sum(axis=1) + parameters.bias
    h = hidden_vector(parameters.embedding, features)
    return (parameters.weights.astype(np.float64) * h).sum(axis=1) + parameters.bias


def log_conditionals(
    tree: LabelTree,
    parameters: Parameters,
    features: Mapping[int, float],
    normalize: bool = False,
    link: str = "plt",
) -> Array:
    """(n_nodes,) log P(node | parent, x).

    Siblings that sum to less than 1 contradict each other: if the parent is positive, so is at least one of
    them. With ``normalize`` they are scaled to sum to 1, unless all are 0. With the link hsm they always sum
    to 1 (a softmax), unless all are impossible.
    """
    scores = node_scores(tree, parameters, features)
    result = np.array([log_sigmoid(float(score)) for score in scores])
    for parent in np.flatnonzero(tree.n_children):
        siblings = list(children_of(tree, int(parent)))
        if link == "hsm":
            result[siblings] = scores[siblings]
        log_total = np.logaddexp.reduce(result[siblings])
        if log_total > -math.inf and (link == "hsm" or (normalize and log_total < 0.0)):
            result[siblings] -= log_total
    return result


def log_marginals(tree: LabelTree, conditionals: Array) -> Array:
    """(n_labels,) log P(label | x): the conditionals summed along each path, from the root on."""
    log_probability = np.empty(tree.n_nodes)
    for node in range(tree.n_nodes):  # parents stand before their children
        above = log_probability[tree.parent[node]] if node > 0 else 0.0
        log_probability[node] = above + conditionals[node]
    return log_probability[tree.leaf_of_label]


def probabilities_of(parameters: Parameters, logs: Array) -> Array:
    """What paths of these log-probabilities mean for their labels; sparse nodes have a fitted map for it."""
    if isinstance(parameters, SparseParameters):
        return np.array([sparse.calibrated(float(log), parameters.calibration.tolist()) for log in logs])
    return np.exp(logs)


def marginals(
    trees: Sequence[tuple[LabelTree, Parameters]],
    features: Mapping[int, float],
    normalize: bool = False,
    link: str = "plt",
) -> Array:
    """(n_labels,) P(label | x): of one tree, or the average of several."""
    of_trees = []
    for tree, parameters in trees:
        logs = log_marginals(tree, log_conditionals(tree, parameters, features, normalize, link))
        of_trees.append(probabilities_of(parameters, logs))
    return np.mean(of_trees, axis=0)


def combined(of_experts: Sequence[Array], weights: Sequence[float], map: Sequence[float] = ()) -> Array:
    """(n_labels,) the probability of each label by several experts: their average, and what it is mapped to.

    The average counts as 32 bits, so that labels are equal which look equal.
    """
    total = np.sum([weight * own for weight, own in zip(weights, of_experts, strict=True)], axis=0)
    average = (total / sum(weights)).astype(np.float32).astype(np.float64)
    if not len(map):
        return average
    with np.errstate(divide="ignore"):
        log_odds = map[0] * np.log(average) - map[1] * np.log1p(-average) + map[2]
    return 1.0 / (1.0 + np.exp(-bent(log_odds, map[3:])))


def top_k(
    probabilities: Array, k: int, threshold: float = 0.0, allowed: Collection[int] | None = None
) -> tuple[list[int], list[float]]:
    """The k most probable labels that reach the threshold, best first, of equal ones the lower label first.

    Where there are fewer the label is -1 and its probability 0. With a mask only ``allowed`` labels count.
    """
    order = sorted(
        range(len(probabilities)) if allowed is None else allowed,
        key=lambda label: (-probabilities[label], label),
    )
    best = [label for label in order if probabilities[label] >= threshold][:k]
    n_missing = k - len(best)
    return best + [-1] * n_missing, [float(probabilities[label]) for label in best] + [0.0] * n_missing


def weighted(
    probabilities: Array, weights: Array, summands: Array, lowest: float, least: float, is_filled: bool
) -> Array:
    """(n_labels,) the value of each label to a rule: a·P + b.

    Labels that are less probable than ``lowest``, or worth no more than ``least``, have -1 / P, if they may
    fill a row that has too few others; or -inf.
    """
    values = []
    for p, weight, summand in zip(probabilities.tolist(), weights.tolist(), summands.tolist(), strict=True):
        value = weight * p + summand
        if p < lowest or not value > least:
            value = -1.0 / p if is_filled and p > 0.0 else -math.inf
        values.append(value)
    return np.array(values)


def labels_above(probabilities: Array, threshold: float) -> list[int]:
    """All labels that reach the threshold."""
    return [label for label, probability in enumerate(probabilities) if probability >= threshold]


def best_first(tree: LabelTree, conditionals: Array, k: int) -> list[tuple[int, float]]:
    """Algorithm 2: uniform-cost search for the k most probable labels.

    A node's probability is never above its parent's. So when a leaf is the best node in the queue, no label
    still below an inner node can be better: the leaf is the next label. At equal probability inner nodes go
    first, so that all equal labels are in the queue, then the lower label.
    """
    found: list[tuple[int, float]] = []
    queue = [(-conditionals[0], int(tree.label[0]), 0)]
    while queue and len(found) < k:
        cost, label, node = heapq.heappop(queue)
        if label >= 0:
            found.append((label, math.exp(-cost)))
            continue
        for child in children_of(tree, node):
            heapq.heappush(queue, (cost - conditionals[child], int(tree.label[child]), child))
    return found


def within_budget(
    tree: LabelTree, conditionals: Array, k: int, budget: int
) -> tuple[list[tuple[int, float]], bool]:
    """As :func:`best_first`, but ends with the k best labels met when ``budget`` nodes are open.

    Where fewer than k were met, it goes on, from each node to its best child that has children. Also returns
    whether the labels are proven to be the best ones: none that was not met can be as probable as the k-th.
    """
    met: list[tuple[float, int]] = []  # cost, label
    queue = [(-conditionals[0], 0)]
    n_opened = 0
    while queue:
        worst = sorted(met)[k - 1][0] if len(met) >= k else math.inf
        cost, node = heapq.heappop(queue)
        if cost > worst:
            break
        if n_opened >= budget and len(met) >= k:
            return _best_of(met, k), False
        while node >= 0:
            n_opened += tree.n_children[node] > 0
            children = [(cost - conditionals[child], child) for child in children_of(tree, node)]
            met += [(cost, int(tree.label[node]))] if not children else []
            inner = [pair for pair in children if tree.n_children[pair[1]] > 0]
            met += [(pair[0], int(tree.label[pair[1]])) for pair in children if pair not in inner]
            cost, node = min(inner) if n_opened > budget and inner else (0.0, -1)
            for pair in inner:
                if pair[1] != node:
                    heapq.heappush(queue, pair)
    return _best_of(met, k), True


def _best_of(met: list[tuple[float, int]], k: int) -> list[tuple[int, float]]:
    return [(label, math.exp(-cost)) for cost, label in sorted(met)[:k]]


def open_nodes(tree: LabelTree, allowed: Collection[int]) -> set[int]:
    """Nodes on the path of an allowed label: a mask leaves out all others."""
    nodes = set[int]()
    for label in allowed:
        node = int(tree.leaf_of_label[label])
        while node >= 0:
            nodes.add(node)
            node = int(tree.parent[node])
    return nodes


def beam_search(
    tree: LabelTree, conditionals: Array, k: int, beam: int, allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """The k most probable of the labels met when of each level only the ``beam`` best inner nodes are opened.

    Equal nodes and equal labels: the lower ones. Leaves take no places of the beam, nor do nodes that a mask
    leaves out.
    """
    met: list[tuple[float, int]] = []
    kept = open_nodes(tree, range(tree.n_labels) if allowed is None else allowed)
    level = [(-conditionals[0], 0)]
    while level:
        level = [(cost, node) for cost, node in level if node in kept]
        met += [(cost, int(tree.label[node])) for cost, node in level if tree.n_children[node] == 0]
        inner = sorted((cost, node) for cost, node in level if tree.n_children[node] > 0)
        level = []
        for cost, node in inner[:beam]:
            level += [(cost - conditionals[child], child) for child in children_of(tree, node)]
    return _best_of(met, k)
