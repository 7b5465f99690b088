"""Algorithm 1 in mini-batches, the slow way: dictionaries, one example and one node at a time, in float64.

A node's classifier answers "has the example a label below this node?" among the examples of its parent::

    h(x) = sum over features f of x_f * embedding[f]
    P(node | parent, x) = sigmoid(weights[node] · h(x) + bias[node])

All gradients of a batch are taken at the parameters before the batch; then every row that was visited moves
once. Twin of the kernels in :mod:`labeltree.kernels.dense` and of :func:`labeltree.nodes.dense.fit_dense`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.nodes.dense import (
    EMBEDDING_RATES,
    INITIAL_BIAS_SQUARES,
    INITIAL_RANGE,
    POWERS,
    SMALLEST_SQUARES,
)
from labeltree.tree import LabelTree

LEAST_LIKELIHOOD = 1e-7  # a node's loss is at most -log of this, so that one example cannot drown the sum

Array = NDArray[np.float64]


class Example(NamedTuple):
    features: Mapping[int, float]
    labels: set[int]
    weight: float = 1.0


class Rows(NamedTuple):
    """Parameters in rows that move as a whole, and the sum of squared gradients of each row."""

    values: Array  # (n_rows, dim)
    squares: Array  # (n_rows,)


class Parameters(NamedTuple):
    embedding: Rows  # one row per feature
    weights: Rows  # one row per node
    bias: Rows  # one row of one number per node; infinite where the node is constant


class Gradients:
    """What the visits of a batch add up to, per row."""

    def __init__(self) -> None:
        self.total: dict[int, Array] = {}
        self.n_visits: dict[int, int] = {}

    def add(self, row: int, gradient: Array) -> None:
        self.total[row] = self.total.get(row, 0.0) + gradient
        self.n_visits[row] = self.n_visits.get(row, 0) + 1


def positive_nodes(tree: LabelTree, labels: set[int]) -> set[int]:
    """All nodes on the paths from the root to the labels, both ends included."""
    nodes: set[int] = set()
    for label in labels:
        node = int(tree.leaf_of_label[label])
        while node >= 0:
            nodes.add(node)
            node = int(tree.parent[node])
    return nodes


def negative_nodes(tree: LabelTree, positive: set[int]) -> set[int]:
    """The children of positive nodes that are not positive; the root for an example without labels."""
    if not positive:
        return {0}
    children = set()
    for node in positive:
        first = int(tree.first_child[node])
        children |= set(range(first, first + int(tree.n_children[node])))
    return children - positive


def initial_bias(tree: LabelTree, examples: Sequence[Example]) -> Array:
    """The log-odds of each node among the examples that train it.

    A node without positives is the constant 0, one with positives only is the constant 1.
    """
    positive_weight, negative_weight = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    for example in examples:
        positive = positive_nodes(tree, example.labels)
        positive_weight[list(positive)] += example.weight
        negative_weight[list(negative_nodes(tree, positive))] += example.weight
    bias = np.empty(tree.n_nodes)
    for node in range(tree.n_nodes):
        if positive_weight[node] == 0.0:
            bias[node] = -math.inf
        elif negative_weight[node] == 0.0:
            bias[node] = math.inf
        else:
            bias[node] = math.log(positive_weight[node] / negative_weight[node])
    return bias


def sigmoid(score: float) -> float:
    """1 / (1 + exp(-score)), of any score."""
    if score < 0.0:
        return math.exp(score) / (1.0 + math.exp(score))
    return 1.0 / (1.0 + math.exp(-score))


def hidden_vector(embedding: NDArray, features: Mapping[int, float]) -> Array:
    """h(x) = the sum of the embeddings of the features, each times its value."""
    hidden = np.zeros(embedding.shape[1])
    for feature, value in features.items():
        hidden += value * embedding[feature].astype(np.float64)
    return hidden


def train_batch(
    parameters: Parameters, tree: LabelTree, batch: Sequence[Example], rate: float, config: Config
) -> float:
    """Take one step on the batch; the loss of the batch before the step."""
    embedding, weights, bias = Gradients(), Gradients(), Gradients()
    loss = 0.0
    for example in batch:
        h = hidden_vector(parameters.embedding.values, example.features)
        h_gradient = np.zeros_like(h)
        positive = positive_nodes(tree, example.labels)
        for node in sorted(positive | negative_nodes(tree, positive)):
            w, b = parameters.weights.values[node], float(parameters.bias.values[node, 0])
            if math.isinf(b):
                continue  # a constant: nothing to learn, nothing to pay
            z = 1.0 if node in positive else 0.0
            p = sigmoid(float(np.sum(w * h)) + b)
            loss -= example.weight * math.log(max(p if z else 1.0 - p, LEAST_LIKELIHOOD))
            score_gradient = example.weight * (p - z)
            h_gradient += score_gradient * w
            weights.add(node, score_gradient * h)
            bias.add(node, np.array([score_gradient]))
        for feature, value in example.features.items():
            embedding.add(feature, value * h_gradient)
    embedding_power, node_power = POWERS[config.optimizer]
    embedding_rate = rate * EMBEDDING_RATES[config.optimizer]
    move(parameters.embedding, embedding, embedding_rate, embedding_power, config.l2)
    move(parameters.weights, weights, rate, node_power, config.l2)
    move(parameters.bias, bias, rate, node_power, 0.0)
    return loss


def move(rows: Rows, gradients: Gradients, rate: float, power: float, l2: float) -> None:
    """Adagrad with one accumulator per row; power 0 is plain SGD.

    The decay is not scaled by the accumulator, and happens once per visit: a row that many examples visit
    is pulled to 0 as often as it is pulled elsewhere.
    """
    for row, total in gradients.total.items():
        rows.squares[row] += float(np.mean(total**2))
        decay = max(0.0, 1.0 - rate * l2 * gradients.n_visits[row])
        rows.values[row] *= decay
        scale = 1.0 if power == 0.0 else (rows.squares[row] + SMALLEST_SQUARES) ** -power
        rows.values[row] -= rate * scale * total


def train_epoch(
    parameters: Parameters,
    tree: LabelTree,
    examples: Sequence[Example],
    epoch: int,
    config: Config,
) -> float:
    """One pass over the examples in the order given; the mean loss per example.

    The step falls linearly from ``lr`` at the first example of the first epoch to 0 after the last example
    of the last one; within a batch it stays what it was at the batch's first example.
    """
    loss = 0.0
    for start in range(0, len(examples), config.batch_size):
        n_seen = epoch * len(examples) + start
        rate = config.lr * (1.0 - n_seen / (config.epochs * len(examples)))
        loss += train_batch(parameters, tree, examples[start : start + config.batch_size], rate, config)
    return loss / len(examples)


def first_parameters(
    tree: LabelTree, examples: Sequence[Example], n_features: int, dim: int, random: np.random.Generator
) -> Parameters:
    """Small random embeddings, node weights 0, biases that give every example the nodes' frequencies."""
    uniform = random.random((n_features, dim), dtype=np.float32).astype(np.float64)
    return Parameters(
        Rows(INITIAL_RANGE * (2.0 * uniform - 1.0), np.zeros(n_features)),
        Rows(np.zeros((tree.n_nodes, dim)), np.zeros(tree.n_nodes)),
        Rows(initial_bias(tree, examples)[:, None], np.full(tree.n_nodes, INITIAL_BIAS_SQUARES)),
    )


def fit(
    tree: LabelTree, examples: Sequence[Example], n_features: int, config: Config, seed: int
) -> tuple[Parameters, list[float]]:
    """Train all nodes and embeddings; the parameters, and the mean loss of each epoch."""
    random = np.random.default_rng(seed)
    parameters = first_parameters(tree, examples, n_features, config.dim, random)
    losses = []
    for epoch in range(config.epochs):
        order = random.permutation(len(examples))
        losses.append(train_epoch(parameters, tree, [examples[row] for row in order], epoch, config))
    return parameters, losses
