"""Sparse nodes with a softmax over siblings (hsm) the slow way, one label of a row picked (pick-one-label).

In batches (dual) a row of s labels counts as s copies of one label each, of weight 1/s. At a parent the
copies that go to the same child are one, and the children's weights w solve together::

    minimise  sum over children of |w|²/2 + l1 |w|  -  sum over copies of cost * log softmax(w·x)[its child]
    cost = C * weight * (labels below the child / labels) * positive_weight * (1 + rare_weight / n_copies)

Online (sgd) a row has, in each pass, only the copy of a label picked at random, and counts in full::

    w = (1 - rate l2) w + rate * cost * (1 or 0 - softmax(w·x)) x    for each child

Of two children only the first has weights: a softmax over its score and 0 is a logistic, which is trained as
those of :mod:`labeltree.reference.sparse` are. Twin of :mod:`labeltree.nodes.sparse.picked`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labeltree.config import Config
from labeltree.nodes.chunks import chunk_starts
from labeltree.nodes.sparse.defaults import choose_cost
from labeltree.reference import sparse
from labeltree.reference.sparse import BIAS, NodeExample, Weights, score
from labeltree.reference.training import Example, children_of, pick_one, positive_nodes, share_below, softmax
from labeltree.tree import LabelTree

ChildWeights = dict[int, Weights]


class Copy(NamedTuple):
    """What of a row's labels goes to one child."""

    row: int
    child: int
    features: Mapping[int, float]  # with the bias
    weight: float  # what it counts


def copies_of(tree: LabelTree, parent: int, examples: Sequence[Example], config: Config) -> list[Copy]:
    copies = []
    for row, (features, labels, weight) in enumerate(examples):
        for child in children_of(tree, parent):
            share = share_below(tree, child, labels)
            if share > 0.0 and weight > 0.0:
                with_bias = dict(features) | ({BIAS: config.bias} if config.bias > 0 else {})
                copies.append(
                    Copy(row, child, with_bias, weight * (1.0 if config.solver == "sgd" else share))
                )
    n_copies = {child: sum(copy.child == child for copy in copies) for child in children_of(tree, parent)}
    return [
        copy._replace(
            weight=copy.weight * config.positive_weight * (1 + config.rare_weight / n_copies[copy.child])
        )
        for copy in copies
    ]


def fit_dual(copies: Sequence[Copy], orders: Sequence[Sequence[int]], C: float, l1: float) -> ChildWeights:
    """Steps of the dual variables towards the softmax (Shalev-Shwartz and Zhang 2013).

    A copy's variables are probabilities of the children, at first that of its own; at the minimum they are
    the softmax. The weights are sums of cost * (1 or 0 - variable) * x.
    """
    children = sorted({copy.child for copy in copies})  # one that has no copy has no part
    total: ChildWeights = {child: {} for child in children}  # from which the L1 term takes its part
    dual = [{child: float(child == copy.child) for child in children} for copy in copies]
    for order in orders:
        for i in order:
            features, cost = copies[i].features, C * copies[i].weight
            squares = max(sum(value**2 for value in features.values()), 1e-12)
            p = softmax({child: score(sparse.shrink(total[child], l1), features) for child in children})
            part = 1.0 / (1.0 + 0.5 * cost * squares)
            for child in children:
                step = part * (p[child] - dual[i][child])
                dual[i][child] += step
                for feature, value in features.items():
                    total[child][feature] = total[child].get(feature, 0.0) - cost * step * value
    return {child: sparse.shrink(weights, l1) for child, weights in total.items()}


def fit_online(copies: Sequence[Copy], orders: Sequence[Sequence[int]], config: Config) -> ChildWeights:
    """Steps along the gradient of -log softmax; the features of a copy decay when it is visited."""
    children = sorted({copy.child for copy in copies})
    weights: ChildWeights = {child: {} for child in children}
    visits = (i for order in orders for i in order)
    for t, i in enumerate(visits, start=1):
        rate = config.eta * t**-config.eta_power
        p = softmax({child: score(weights[child], copies[i].features) for child in children})
        for child in children:
            step = rate * copies[i].weight * (float(child == copies[i].child) - p[child])
            for feature, value in copies[i].features.items():
                kept = max(0.0, 1.0 - rate * config.l2) * weights[child].get(feature, 0.0)
                weights[child][feature] = kept + step * value
    return weights


def objective(weights: ChildWeights, copies: Sequence[Copy], C: float, l1: float) -> float:
    """What the dual solver minimises."""
    sizes = sum(w**2 / 2 + l1 * abs(w) for of_child in weights.values() for w in of_child.values())
    losses = []
    for copy in copies:
        scores = [score(of_child, copy.features) for of_child in weights.values()]
        own = score(weights[copy.child], copy.features)
        losses.append(copy.weight * (np.logaddexp.reduce(scores) - own))
    return sizes + C * float(sum(losses))


def orders_of(
    tree: LabelTree, copies: Sequence[Copy], examples: Sequence[Example], config: Config, seed: int,
    chunk: int, held_out: Sequence[int],
) -> list[list[int]]:  # fmt: skip
    """The copies that each pass visits, in order. Rows that are held out join in the last pass."""
    waits = [copy.row in set(held_out) for copy in copies]
    n_passes = config.epochs if config.solver == "sgd" else config.max_iterations
    n_first, n_last = sparse.split_passes(n_passes, any(waits))
    state = sparse.first_state(seed, chunk)
    if config.solver == "sgd":
        draw, orders = sparse.random_numbers(state), []
        numbers = [*range(n_first), *range(n_passes - n_last, n_passes)]
        for number in numbers:
            picked = [
                pick_one(e.labels, seed, number * len(examples) + row) for row, e in enumerate(examples)
            ]
            order = [
                i for i, copy in enumerate(copies) if copy.child in positive_nodes(tree, {picked[copy.row]})
            ]
            sparse.shuffle(order, draw)
            orders.append(order)
    else:
        orders = sparse.make_orders(len(copies), n_first + n_last, state)
    return [[i for i in order if number >= n_first or not waits[i]] for number, order in enumerate(orders)]


def fit_weights(
    tree: LabelTree, examples: Sequence[Example], config: Config, seed: int, held_out: Sequence[int] = ()
) -> ChildWeights:
    """The weights of each node that is learned, all passes of the config done. Every example has a label."""
    starts = chunk_starts(tree).tolist()
    cost = config.C or choose_cost(config, sparse.facts_of(tree, examples))
    fitted: ChildWeights = {}
    for parent in np.flatnonzero(tree.n_children).tolist():
        children = children_of(tree, parent)
        copies = copies_of(tree, parent, examples, config)
        if len({copy.child for copy in copies}) < 2:
            continue  # one is certain, the others are impossible
        chunk = starts.index(children[0])
        orders = orders_of(tree, copies, examples, config, seed, chunk, held_out)
        if len(children) == 2:
            signs = [1.0 if copy.child == children[0] else -1.0 for copy in copies]
            seen = [NodeExample(c.features, sign, c.weight) for c, sign in zip(copies, signs, strict=True)]
            fitted[children[0]] = (
                sparse.fit_online(seen, orders, config)
                if config.solver == "sgd"
                else sparse.fit_dual("log", seen, orders, cost, config.l1)
            )
        elif config.solver == "sgd":
            fitted |= fit_online(copies, orders, config)
        else:
            fitted |= fit_dual(copies, orders, cost, config.l1)
    return fitted
