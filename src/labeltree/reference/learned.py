"""The Learned Tree the slow way, in float64: which child of a node each of its labels is sent to, and when.

At a node, among the weight of the rows of its labels (a row counts once for each of these)::

    q_i   the part of label i
    p_ij  the mean probability of child j for the rows of label i
    p_j   the sum over labels i of q_i p_ij
    J     2 / children * sum over labels i and children j of q_i |p_ij - p_j|

    dJ / d log p_ij = 2 / children * q_i p_ij (sign(p_ij - p_j) - sum over labels k of q_k sign(p_kj - p_j))

Label and child of the largest derivative are joined first, while the child has room. Twin of the kernels in
:mod:`labeltree.kernels.dense.learned` and of :mod:`labeltree.trees.learned`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labeltree.config import Config
from labeltree.nodes.dense.fitting import PART_EXAMPLES
from labeltree.reference.training import (
    Array,
    Example,
    Parameters,
    children_of,
    first_parameters,
    hidden_vector,
    node_score,
    pick_one,
    sigmoid,
    softmax,
    train_batch,
)
from labeltree.tree import LabelTree
from labeltree.trees.learned import LARGEST_BIAS, LAST_MOVE, MOST_ROWS, MOVES_PER_EPOCH

ROUNDING = 1e-9  # a mean probability that differs by less is the same

Pair = tuple[int, int]  # a label and a child


class Votes(NamedTuple):
    """What the rows of a node say of its labels; labels without rows are missing."""

    share: Mapping[int, float]  # q_i
    probabilities: Mapping[int, Mapping[int, float]]  # p_ij


def child_probabilities(
    tree: LabelTree, node: int, parameters: Parameters, features: Mapping[int, float], link: str
) -> dict[int, float]:
    """The probability of each child of the node."""
    h = hidden_vector(parameters.embedding.values, features)
    scores = {child: node_score(parameters, child, h) for child in children_of(tree, node)}
    if link == "hsm":
        return softmax(scores)
    return {child: sigmoid(score) for child, score in scores.items()}


def measure(
    tree: LabelTree,
    node: int,
    labels: Collection[int],
    parameters: Parameters,
    examples: Sequence[Example],
    link: str,
) -> Votes:
    """Where the node sends the rows of these labels now."""
    weight: dict[int, float] = {}
    sums: dict[int, dict[int, float]] = {}
    for example in examples:
        for label in example.labels & set(labels):
            if example.weight == 0.0:
                continue
            weight[label] = weight.get(label, 0.0) + example.weight
            of_label = sums.setdefault(label, {})
            probabilities = child_probabilities(tree, node, parameters, example.features, link)
            for child, probability in probabilities.items():
                of_label[child] = of_label.get(child, 0.0) + example.weight * probability
    total = sum(weight.values())
    return Votes(
        {label: weight[label] / total for label in weight},
        {label: {c: sum_ / weight[label] for c, sum_ in sums[label].items()} for label in sums},
    )


def mean_probabilities(votes: Votes) -> dict[int, float]:
    """p_j: the probability of each child for all rows."""
    means: dict[int, float] = {}
    for label, probabilities in votes.probabilities.items():
        for child, probability in probabilities.items():
            means[child] = means.get(child, 0.0) + votes.share[label] * probability
    return means


def objective(votes: Votes) -> float:
    """J: 0 if all labels are sent alike; at most 4 / children * (1 - 1 / children) with a softmax."""
    means, total = mean_probabilities(votes), 0.0
    for label, probabilities in votes.probabilities.items():
        for child, probability in probabilities.items():
            total += votes.share[label] * abs(probability - means[child])
    return 2.0 / len(means) * total if means else 0.0


def sign(difference: float) -> float:
    return 0.0 if abs(difference) < ROUNDING else math.copysign(1.0, difference)


def derivatives(votes: Votes) -> dict[Pair, float]:
    """dJ / d log p_ij of each label i and child j: p_j moves with p_ij, by q_i times as much."""
    means = mean_probabilities(votes)
    found = {}
    for child, mean in means.items():
        balance = sum(
            votes.share[label] * sign(probabilities[child] - mean)
            for label, probabilities in votes.probabilities.items()
        )
        for label, probabilities in votes.probabilities.items():
            of_probability = votes.share[label] * (sign(probabilities[child] - mean) - balance)
            found[label, child] = 2.0 / len(means) * probabilities[child] * of_probability
    return found


def fill(labels: Collection[int], room: Mapping[int, int], wishes: Mapping[Pair, float]) -> dict[int, int]:
    """The child of each label: the largest wish first, of equal ones the lower label, then the lower child.

    ``room`` is how many labels each child takes. Labels without wishes take what the others leave.
    """
    free, child_of = dict(room), {}
    pairs = itertools.product(labels, room)
    for label, child in sorted(pairs, key=lambda pair: (-wishes.get(pair, -math.inf), pair)):
        if label not in child_of and free[child] > 0:
            child_of[label] = child
            free[child] -= 1
    return child_of


def leaves_below(tree: LabelTree, node: int) -> int:
    return sum(leaves_below(tree, child) for child in children_of(tree, node)) or 1


def assign(tree: LabelTree, parameters: Parameters, examples: Sequence[Example], link: str) -> LabelTree:
    """The tree with its labels where these examples would have them, from the root down."""
    labels_of: dict[int, list[int]] = {0: list(range(tree.n_labels))}
    for node in range(tree.n_nodes):  # parents stand before their children
        room = {child: leaves_below(tree, child) for child in children_of(tree, node)}
        labels_of |= {child: [] for child in room}
        if room:
            votes = measure(tree, node, labels_of[node], parameters, examples, link)
            for label, child in sorted(fill(labels_of[node], room, derivatives(votes)).items()):
                labels_of[child].append(label)
    label_of_leaf = [-1 if tree.n_children[node] else labels_of[node][0] for node in range(tree.n_nodes)]
    return LabelTree(tree.parent, np.array(label_of_leaf, np.int32))


def limited_bias(tree: LabelTree, bias: Array, link: str) -> Array:
    """No node but the root is constant, because its labels may change; of a pair the second's score is 0."""
    limited = np.clip(bias, -LARGEST_BIAS, LARGEST_BIAS)
    limited[0] = bias[0]
    for siblings in (children_of(tree, int(parent)) for parent in np.flatnonzero(tree.n_children)):
        if link == "hsm" and len(siblings) == 2:
            first, second = siblings
            limited[first], limited[second] = limited[first] - limited[second], 0.0
    return limited


def learn_tree(
    tree: LabelTree, examples: Sequence[Example], n_features: int, config: Config, seed: int
) -> LabelTree:
    """Train dense nodes and move labels in between, as long as they move; the tree that it became."""
    random = np.random.default_rng(seed)
    parameters = first_parameters(tree, examples, n_features, config, random)
    parameters.bias.values[:, 0] = limited_bias(tree, parameters.bias.values[:, 0], config.link)
    n_rows, n_total = len(examples), len(examples) * config.epochs
    batch_size = min(config.batch_size, n_rows)
    n_at_once = max(1, PART_EXAMPLES // batch_size) * batch_size
    part = math.ceil(n_rows / (MOVES_PER_EPOCH * batch_size)) * batch_size
    next_move = 0.0
    for epoch in range(config.epochs):
        order = random.permutation(n_rows)
        for start in range(0, n_rows, batch_size):
            n_seen = epoch * n_rows + start
            if n_seen > LAST_MOVE * n_total:
                return tree
            if start % n_at_once % part == 0 and n_seen >= next_move:
                next_move = n_seen + n_rows / MOVES_PER_EPOCH
                if n_seen > 0:
                    asked = [examples[row] for row in random.permutation(n_rows)[:MOST_ROWS]]
                    tree = assign(tree, parameters, asked, config.link)
            batch = [examples[row] for row in order[start : start + batch_size]]
            if config.link == "hsm":
                batch = [
                    e._replace(labels={pick_one(e.labels, seed, n_seen + i)}) for i, e in enumerate(batch)
                ]
            train_batch(parameters, tree, batch, config.lr * (1.0 - n_seen / n_total), config)
    return tree
