"""What search finds, the slow way: the probability of every label, then sorting. And Algorithm 2 as printed.

    P(label | x) = product over the path from the root to the leaf of P(node | parent, x), the root's included

Twin of the kernels in :mod:`labeltree.kernels.search.exact` and of :mod:`labeltree.experts.tree_expert`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.nodes.sparse.fitting import SparseParameters
from labeltree.reference import sparse
from labeltree.reference.training import children_of, hidden_vector
from labeltree.tree import LabelTree

Array = NDArray[np.float64]
Parameters = DenseParameters | SparseParameters


def log_sigmoid(score: float) -> float:
    """log(1 / (1 + exp(-score))), of any score."""
    if score == -math.inf:
        return -math.inf
    return min(score, 0.0) - math.log1p(math.exp(-abs(score)))


def node_scores(tree: LabelTree, parameters: Parameters, features: Mapping[int, float]) -> Array:
    """(n_nodes,) the log-odds of each node among the examples of its parent."""
    if isinstance(parameters, SparseParameters):
        return sparse.scores(tree, parameters, features)
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


def top_k(probabilities: Array, k: int, threshold: float = 0.0) -> tuple[list[int], list[float]]:
    """The k most probable labels that reach the threshold, best first, of equal ones the lower label first.

    Where there are fewer the label is -1 and its probability 0.
    """
    order = sorted(range(len(probabilities)), key=lambda label: (-probabilities[label], label))
    best = [label for label in order if probabilities[label] >= threshold][:k]
    n_missing = k - len(best)
    return best + [-1] * n_missing, [float(probabilities[label]) for label in best] + [0.0] * n_missing


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


def beam_search(tree: LabelTree, conditionals: Array, k: int, beam: int) -> list[tuple[int, float]]:
    """The k most probable of the labels met when of each level only the ``beam`` best inner nodes are opened.

    Equal nodes and equal labels: the lower ones. Leaves take no places of the beam.
    """
    met: list[tuple[float, int]] = []
    level = [(-conditionals[0], 0)]
    while level:
        met += [(cost, int(tree.label[node])) for cost, node in level if tree.n_children[node] == 0]
        inner = sorted((cost, node) for cost, node in level if tree.n_children[node] > 0)
        level = []
        for cost, node in inner[:beam]:
            level += [(cost - conditionals[child], child) for child in children_of(tree, node)]
    return [(label, math.exp(-cost)) for cost, label in sorted(met)[:k]]
