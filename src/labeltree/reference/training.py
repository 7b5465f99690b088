"""Algorithm 1 in mini-batches, the slow way: dictionaries, one example and one node at a time, in float64.

A node's classifier answers "has the example a label below this node?" among the examples of its parent::

    h(x) = sum over features f of x_f * embedding[f]
    score(node) = weights[node] · h(x) + bias[node]
    plt  P(node | parent, x) = sigmoid(score)
    hsm  P(node | parent, x) = exp(score) / sum over the siblings of exp(their scores)

With the link hsm each example has one label, picked at random each time that it is seen (pick-one-label), and
of two siblings the second's score is always 0: a softmax over s and 0 is sigmoid(s).

All gradients of a batch are taken at the parameters before the batch; then every row that was visited moves
once. Twin of the kernels in :mod:`labeltree.kernels.dense.batches` and :mod:`labeltree.kernels.dense.steps`,
and of :func:`labeltree.nodes.dense.fitting.fit_dense`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.nodes.dense.fitting import INITIAL_BIAS_SQUARES, OPTIMIZERS, SMALLEST_SQUARES
from labeltree.tree import LabelTree

LEAST_LIKELIHOOD = 1e-7  # a node's loss is at most -log of this, so that one example cannot drown the sum
RANDOM_STEP = 0x9E3779B97F4A7C15
BITS = (1 << 64) - 1

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
    return {child for node in positive for child in children_of(tree, node)} - positive


def children_of(tree: LabelTree, node: int) -> range:
    first = int(tree.first_child[node])
    return range(first, first + int(tree.n_children[node]))


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


def share_below(tree: LabelTree, node: int, labels: set[int]) -> float:
    """The probability that a label picked of these is one below the node."""
    return sum(node in positive_nodes(tree, {label}) for label in labels) / len(labels)


def softmax_bias(tree: LabelTree, examples: Sequence[Example]) -> Array:
    """Scores whose softmax over siblings is how often each of them is expected to be picked.

    The root is certain. A node that is never picked is the constant 0.
    """
    bias = np.full(tree.n_nodes, -math.inf)
    bias[0] = math.inf
    picked = [sum(e.weight * share_below(tree, n, e.labels) for e in examples) for n in range(tree.n_nodes)]
    for node in range(1, tree.n_nodes):
        if picked[node] > 0.0:
            bias[node] = math.log(picked[node] / picked[int(tree.parent[node])])
    for first, *others in (children_of(tree, int(parent)) for parent in np.flatnonzero(tree.n_children)):
        if len(others) == 1 and picked[first] > 0.0 and picked[others[0]] > 0.0:
            bias[first], bias[others[0]] = math.log(picked[first] / picked[others[0]]), 0.0
    return bias


def random_at(seed: int, place: int, bound: int) -> int:
    """The number below a bound at a place of a seed's sequence (SplitMix64)."""
    mixed = (seed + RANDOM_STEP * (place + 1)) & BITS
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & BITS
    return (mixed ^ (mixed >> 31)) % bound


def pick_one(labels: set[int], seed: int, place: int) -> int:
    return sorted(labels)[random_at(seed % 2**63, place, len(labels))]


def sigmoid(score: float) -> float:
    """1 / (1 + exp(-score)), of any score."""
    if score < 0.0:
        return math.exp(score) / (1.0 + math.exp(score))
    return 1.0 / (1.0 + math.exp(-score))


def softmax(scores: Mapping[int, float]) -> dict[int, float]:
    """exp(score) / sum of exp(scores); at least one is finite, the others may be -inf."""
    largest = max(scores.values())
    total = sum(math.exp(score - largest) for score in scores.values())
    return {key: math.exp(score - largest) / total for key, score in scores.items()}


def hidden_vector(embedding: NDArray, features: Mapping[int, float]) -> Array:
    """h(x) = the sum of the embeddings of the features, each times its value."""
    hidden = np.zeros(embedding.shape[1])
    for feature, value in features.items():
        hidden += value * embedding[feature].astype(np.float64)
    return hidden


def node_score(parameters: Parameters, node: int, h: Array) -> float:
    return float(np.sum(parameters.weights.values[node] * h)) + float(parameters.bias.values[node, 0])


def plt_gradients(
    parameters: Parameters, tree: LabelTree, labels: set[int], h: Array
) -> tuple[dict[int, float], float]:
    """The derivatives of an example's loss by the scores of the nodes that it trains, and the loss."""
    gradients, loss = {}, 0.0
    positive = positive_nodes(tree, labels)
    for node in sorted(positive | negative_nodes(tree, positive)):
        if math.isinf(parameters.bias.values[node, 0]):
            continue  # a constant: nothing to learn, nothing to pay
        z = 1.0 if node in positive else 0.0
        p = sigmoid(node_score(parameters, node, h))
        loss -= math.log(max(p if z else 1.0 - p, LEAST_LIKELIHOOD))
        gradients[node] = p - z
    return gradients, loss


def hsm_gradients(
    parameters: Parameters, tree: LabelTree, label: int, h: Array
) -> tuple[dict[int, float], float]:
    """The same with a softmax over the children of each node above the label."""
    gradients, loss = {}, 0.0
    positive = positive_nodes(tree, {label})
    for parent in sorted(positive):
        children = children_of(tree, parent)
        if sum(math.isfinite(parameters.bias.values[child, 0]) for child in children) < 2:
            continue  # one is certain, the others are impossible
        p = softmax({child: node_score(parameters, child, h) for child in children})
        for child in children:
            if child in positive:
                loss -= math.log(max(p[child], LEAST_LIKELIHOOD))
            is_learned = math.isfinite(parameters.bias.values[child, 0])
            if is_learned and not (len(children) == 2 and child == children[1]):
                gradients[child] = p[child] - (child in positive)
    return gradients, loss


def train_batch(
    parameters: Parameters, tree: LabelTree, batch: Sequence[Example], rate: float, config: Config
) -> float:
    """Take one step on the batch; the loss of the batch before the step."""
    embedding, weights, bias = Gradients(), Gradients(), Gradients()
    loss = 0.0
    for example in batch:
        h = hidden_vector(parameters.embedding.values, example.features)
        h_gradient = np.zeros_like(h)
        if config.link == "hsm":
            (label,) = example.labels
            of_scores, example_loss = hsm_gradients(parameters, tree, label, h)
        else:
            of_scores, example_loss = plt_gradients(parameters, tree, example.labels, h)
        loss += example.weight * example_loss
        for node, of_score in of_scores.items():
            score_gradient = example.weight * of_score
            h_gradient += score_gradient * parameters.weights.values[node]
            weights.add(node, score_gradient * h)
            bias.add(node, np.array([score_gradient]))
        for feature, value in example.features.items():
            embedding.add(feature, value * h_gradient)
    embedding_power, node_power, relative = OPTIMIZERS[config.optimizer]
    embedding_rate = rate * relative
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
    tree: LabelTree, examples: Sequence[Example], n_features: int, config: Config, random: np.random.Generator
) -> Parameters:
    """Small random embeddings, node weights 0, biases that give every example the nodes' frequencies."""
    uniform = random.random((n_features, config.dim), dtype=np.float32).astype(np.float64)
    bias = softmax_bias(tree, examples) if config.link == "hsm" else initial_bias(tree, examples)
    return Parameters(
        Rows(config.initial_range * (2.0 * uniform - 1.0), np.zeros(n_features)),
        Rows(np.zeros((tree.n_nodes, config.dim)), np.zeros(tree.n_nodes)),
        Rows(bias[:, None], np.full(tree.n_nodes, INITIAL_BIAS_SQUARES)),
    )


def fit(
    tree: LabelTree, examples: Sequence[Example], n_features: int, config: Config, seed: int
) -> tuple[Parameters, list[float]]:
    """Train all nodes and embeddings; the parameters, and the mean loss of each epoch."""
    random = np.random.default_rng(seed)
    parameters = first_parameters(tree, examples, n_features, config, random)
    losses = []
    for epoch in range(config.epochs):
        seen = [examples[row] for row in random.permutation(len(examples))]
        if config.link == "hsm":
            first = epoch * len(seen)
            seen = [e._replace(labels={pick_one(e.labels, seed, first + i)}) for i, e in enumerate(seen)]
        losses.append(train_epoch(parameters, tree, seen, epoch, config))
    return parameters, losses
