"""Sparse nodes the slow way: dictionaries, one node and one example at a time, in float64.

It specifies what a sparse node is trained to (a linear model w of the examples of its parent, y = +-1)::

    dual  minimise |w|²/2 + l1 |w| + sum over the examples of cost * loss(y w·x)
          cost = C * weight, and for positive examples * positive_weight * (1 + rare_weight / n_positives)
          loss(m) = max(0, 1 - m)² (squared-hinge), max(0, 1 - m) (hinge) or log(1 + exp(-m)) (log)
    sgd   w = (1 - rate l2) w + rate * weight * sigmoid(-y w·x) y x at the t-th example
          rate = eta * (1/t)^power
    active  is in :mod:`labeltree.reference.active`

where every x has one more feature, the bias; how weights become bytes; and how a label's path becomes its
probability. Twin of :mod:`labeltree.kernels.sparse.passes`, :mod:`labeltree.kernels.sparse.chunk`,
:mod:`labeltree.nodes.sparse.fitting` and :mod:`labeltree.experts.calibration`. What only saves time there is
not here: stopping at the tolerance, resting examples, Newton's steps instead of a variable's exact value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.nodes.chunks import chunk_starts
from labeltree.nodes.kind import Facts
from labeltree.nodes.sparse.defaults import choose_cost
from labeltree.nodes.sparse.fitting import SparseParameters
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.reference.training import (
    BITS,
    RANDOM_STEP,
    Example,
    initial_bias,
    positive_nodes,
    random_at,
    sigmoid,
)
from labeltree.tree import LabelTree

BIAS = -1  # the feature that every example has
STEPS = 127  # of a node's largest weight

Array = NDArray[np.float64]
Weights = dict[int, float]


class NodeExample(NamedTuple):
    """An example as one node sees it."""

    features: Mapping[int, float]  # with the bias
    sign: float  # 1 if it has a label below the node, else -1
    weight: float  # what it counts


class FittedNode(NamedTuple):
    """What a node's log-odds are made of; ``weights`` is empty and ``bias`` infinite if it is constant."""

    weights: Weights
    bias: float


def score(weights: Mapping[int, float], features: Mapping[int, float]) -> float:
    return sum(value * weights.get(feature, 0.0) for feature, value in features.items())


def shrink(weights: Mapping[int, float], l1: float) -> Weights:
    """What an L1 term leaves: weights closer to 0 by l1, or 0."""
    return {f: math.copysign(max(abs(weight) - l1, 0.0), weight) for f, weight in weights.items()}


def loss(kind: str, margin: float) -> float:
    if kind != "log":
        return max(0.0, 1.0 - margin) ** (2 if kind == "squared-hinge" else 1)
    return max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))


def slope(kind: str, margin: float) -> float:
    """The derivative of the loss."""
    if kind == "hinge":
        return -1.0 if margin < 1.0 else 0.0
    return -2.0 * max(0.0, 1.0 - margin) if kind == "squared-hinge" else -sigmoid(-margin)


def objective(
    kind: str, weights: Mapping[int, float], examples: Sequence[NodeExample], C: float, l1: float
) -> float:
    """What the dual solver minimises."""
    sizes = sum(weight**2 / 2 + l1 * abs(weight) for weight in weights.values())
    losses = (
        example.weight * loss(kind, example.sign * score(weights, example.features)) for example in examples
    )
    return sizes + C * sum(losses)


def best_dual(kind: str, old: float, margin: float, squares: float, cost: float) -> float:
    """An example's variable that is best while all others stay; ``margin`` is y w·x at the old one.

    At the minimum over w each variable is -cost * slope(y w·x): so the best one is where this rising function
    is 0.
    """
    if kind == "squared-hinge":
        softness = 0.5 / cost
        return max(0.0, old - (margin - 1.0 + old * softness) / (squares + softness))
    if kind == "hinge":
        return min(max(0.0, old - (margin - 1.0) / squares), cost)
    low, high = -800.0, 800.0  # logits of variable / cost
    for _ in range(100):
        t = (low + high) / 2
        too_high = squares * (cost * sigmoid(t) - old) + margin + t > 0.0
        low, high = (low, t) if too_high else (t, high)
    return cost * sigmoid(low)


def fit_dual(
    kind: str, examples: Sequence[NodeExample], orders: Sequence[Sequence[int]], C: float, l1: float
) -> Weights:
    """Coordinate descent in the dual (Hsieh et al. 2008): passes over the examples, each in its order."""
    total: Weights = {}  # sum of variable * y * x, from which the L1 term takes its part
    dual = [0.0] * len(examples)
    for order in orders:
        for i in order:
            features, sign, weight = examples[i]
            squares = max(sum(value**2 for value in features.values()), 1e-12)
            margin = sign * score(shrink(total, l1), features)
            new = best_dual(kind, dual[i], margin, squares, C * weight)
            for feature, value in features.items():
                total[feature] = total.get(feature, 0.0) + sign * (new - dual[i]) * value
            dual[i] = new
    return shrink(total, l1)


def fit_online(examples: Sequence[NodeExample], orders: Sequence[Sequence[int]], config: Config) -> Weights:
    """Steps along the gradient of the log loss; the features of an example decay when it is visited."""
    weights: Weights = {}
    visits = (i for order in orders for i in order)
    for t, i in enumerate(visits, start=1):
        features, sign, weight = examples[i]
        rate = config.eta * t**-config.eta_power
        step = sign * rate * weight * sigmoid(-sign * score(weights, features))
        for feature, value in features.items():
            weights[feature] = max(0.0, 1.0 - rate * config.l2) * weights.get(feature, 0.0) + step * value
    return weights


def random_numbers(state: int) -> Callable[[int], int]:
    """Numbers below a bound, one after another; twin of :mod:`labeltree.kernels.random`."""
    places = itertools.count()
    return lambda bound: random_at(state, next(places), bound)


def make_orders(n_examples: int, n_passes: int, state: int) -> list[list[int]]:
    """The order of each pass: a shuffle of the one before (Fisher and Yates)."""
    draw, order, orders = random_numbers(state), list(range(n_examples)), []
    for _ in range(n_passes):
        shuffle(order, draw)
        orders.append(list(order))
    return orders


def shuffle(order: list[int], draw: Callable[[int], int]) -> None:
    for i in range(len(order) - 1, 0, -1):
        other = draw(i + 1)
        order[i], order[other] = order[other], order[i]


def first_state(seed: int, chunk: int) -> int:
    """Of the random numbers of a chunk."""
    return (seed ^ ((chunk + 1) * RANDOM_STEP)) & BITS


def split_passes(n_passes: int, has_held_out: bool) -> tuple[int, int]:
    """How many passes are made without the held-out rows and with them; at least one of each."""
    return (max(1, n_passes - 1), 1) if has_held_out else (0, n_passes)


def examples_of(
    tree: LabelTree, node: int, rows: Sequence[int], examples: Sequence[Example], config: Config
) -> list[NodeExample]:
    """The rows of a node's parent as the node sees them."""
    is_positive = [node in positive_nodes(tree, examples[row].labels) for row in rows]
    positive_weight = config.positive_weight * (1 + config.rare_weight / max(1, sum(is_positive)))
    seen = []
    for row, positive in zip(rows, is_positive, strict=True):
        features = dict(examples[row].features) | ({BIAS: config.bias} if config.bias > 0 else {})
        weight = examples[row].weight * (positive_weight if positive else 1.0)
        seen.append(NodeExample(features, 1.0 if positive else -1.0, weight))
    return seen


def rows_of(tree: LabelTree, node: int, examples: Sequence[Example]) -> list[int]:
    """The rows that train a node: all that count for the root, else those positive for its parent."""
    parent = int(tree.parent[node])
    rows = [row for row, example in enumerate(examples) if example.weight > 0]
    if parent < 0:
        return rows
    return [row for row in rows if parent in positive_nodes(tree, examples[row].labels)]


def facts_of(tree: LabelTree, examples: Sequence[Example]) -> Facts:
    """What the weight of the loss depends on."""
    labels = [label for example in examples for label in example.labels]
    n_entries = sum(len(example.features) for example in examples)
    return Facts(tree.n_labels, len(labels) / max(1, len(set(labels))), n_entries)


def fit_weights(
    tree: LabelTree, examples: Sequence[Example], config: Config, seed: int, held_out: Sequence[int] = ()
) -> dict[int, Weights]:
    """The weights of each node that is not constant, all passes of the config done.

    The nodes of a chunk see the examples in the same orders. Held-out rows join in the last pass; with an
    active set, which each node has for itself, in as many passes again.
    """
    from labeltree.reference import active  # which is made of parts of this module

    bias, starts = initial_bias(tree, examples), chunk_starts(tree).tolist()
    n_passes = config.epochs if config.solver == "sgd" else config.max_iterations
    cost = config.C or choose_cost(config, facts_of(tree, examples))
    fitted = {}
    for chunk, (first, last) in enumerate(itertools.pairwise(starts)):
        rows = rows_of(tree, first, examples)
        waits = [row in set(held_out) for row in rows]
        n_first, n_last = split_passes(n_passes, any(waits))
        orders = make_orders(len(rows), n_first + n_last, first_state(seed, chunk))
        orders[:n_first] = [[i for i in order if not waits[i]] for order in orders[:n_first]]
        for node in range(first, last):
            if math.isinf(bias[node]):
                continue
            seen = examples_of(tree, node, rows, examples, config)
            if config.solver == "active":
                random = active.child_state(first_state(seed, chunk), node - first)
                fitted[node] = active.fit_active(config, seen, cost, random, waits)
            elif config.solver == "sgd":
                fitted[node] = fit_online(seen, orders, config)
            else:
                fitted[node] = fit_dual(config.loss, seen, orders, cost, config.l1)
    return fitted


def rounded(weights: Mapping[int, float], prune: float) -> Weights:
    """What is kept of a node's weights: those of at least ``prune``, in steps of the largest / 127."""
    step = max((abs(weight) for weight in weights.values()), default=0.0) / STEPS
    if step == 0.0:
        return {}
    least = max(prune, step * 0.50001)
    return {f: round(weight / step) * step for f, weight in weights.items() if abs(weight) >= least}


def fit(
    tree: LabelTree, examples: Sequence[Example], config: Config, seed: int, held_out: Sequence[int] = ()
) -> list[FittedNode]:
    """Every node's log-odds: of its pruned weights and its bias; the prune is of weights, not of log-odds."""
    factor, summand = solver_of(config).log_odds
    nodes = [FittedNode({}, float(bias)) for bias in initial_bias(tree, examples)]
    for node, weights in fit_weights(tree, examples, config, seed, held_out).items():
        bias = weights.pop(BIAS, 0.0) * config.bias
        kept = rounded(weights, config.prune)
        nodes[node] = FittedNode({f: factor * w for f, w in kept.items()}, factor * bias + summand)
    return nodes


def decode(tree: LabelTree, parameters: SparseParameters) -> list[FittedNode]:
    """What the bytes stand for: row by row of each chunk, entry by entry of each row."""
    nodes = [FittedNode({}, float(bias)) for bias in parameters.bias]
    starts = chunk_starts(tree)
    for chunk in range(len(starts) - 1):
        place = int(parameters.chunk_entry[chunk])
        for row in range(int(parameters.chunk_row[chunk]), int(parameters.chunk_row[chunk + 1])):
            for entry in parameters.entry[place : place + int(parameters.length[row])].tolist():
                node = int(starts[chunk]) + (entry >> 8)
                weight = ((entry & 255) - 128) * float(parameters.scale[node])
                nodes[node].weights[int(parameters.feature[row])] = weight
            place += int(parameters.length[row])
    return nodes


def scores(tree: LabelTree, parameters: SparseParameters, features: Mapping[int, float]) -> Array:
    """(n_nodes,) the log-odds of each node."""
    nodes = decode(tree, parameters)
    return np.array([score(node.weights, features) + node.bias for node in nodes])


def calibrated(log_probability: float, calibration: Sequence[float]) -> float:
    """sigmoid(a log p - b log(1 - p) + c): beta calibration of a label's log-probability."""
    if log_probability in (0.0, -math.inf):
        return math.exp(log_probability)
    a, b, c = (float(number) for number in calibration)
    return sigmoid(a * log_probability - b * math.log(-math.expm1(log_probability)) + c)


def calibration_loss(
    calibration: Sequence[float], probabilities: Array, is_right: NDArray[np.bool_]
) -> float:
    """What a fitted map minimises: -log-likelihood, and half its squared distance from "no change"."""
    total = 0.0
    for probability, right in zip(probabilities.tolist(), is_right.tolist(), strict=True):
        p = min(max(probability, 1e-9), 1.0 - 1e-6)
        a, b, c = calibration
        log_odds = a * math.log(p) - b * math.log1p(-p) + c
        total += loss("log", log_odds if right else -log_odds)
    return (
        total + sum((number - start) ** 2 for number, start in zip(calibration, (1, 1, 0), strict=True)) / 2
    )
