"""How a label tree shares out a label's probability among the entries of a row, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays
from labeltree.errors import ParameterError
from labeltree.experts.explaining.contribution import Contribution, Path
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.shares import Ranges
from labeltree.tree import LabelTree

if TYPE_CHECKING:
    from labeltree.experts.tree_expert import TreeExpert

_STEP = 1e-5  # of a logarithm, between which a curve is taken for a line


def explain_paths(expert: TreeExpert, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
    """What the tree says of the labels for one row."""
    start, end = arrays[0].tolist()
    columns, values = arrays[1][start:end], arrays[2][start:end].astype(np.float64)
    return [_explain_path(expert, columns, values, label) for label in labels]


def _explain_path(
    expert: TreeExpert, columns: NDArray[np.int32], values: NDArray[np.float64], label: int
) -> Contribution:
    link, kind, parameters = LINKS[expert.link], KINDS[expert.nodes], expert.parameters
    if link.share is None:
        raise ParameterError(f"link {expert.link} does not say how it shares out what it predicts")
    path = path_to(expert.tree, label)
    first, count, ranges = _ranges(expert.tree, path, together=link.needs_siblings)
    products = kind.weights(expert.search, first, count, columns) * values
    at_empty = _biases(parameters.bias, first, count, together=link.needs_siblings)
    scores = at_empty + products.sum(axis=1)
    shared = link.share(scores.tolist(), at_empty.tolist(), ranges)
    products *= np.array(shared.coefficients)[:, None]
    table = np.add.reduceat(products, ranges.starts, axis=0) if link.needs_siblings else products
    logs = sum(shared.log_probability), sum(shared.at_empty)

    def probability_of(log: float) -> float:
        return kind.label_probability(parameters, log)

    own, first_own = probability_of(logs[0]), probability_of(logs[1])
    shares = table.sum(axis=0) * slope(probability_of, logs, (own, first_own))
    details = Path(expert.tree, path, shared.log_probability, shared.at_empty, table)
    return Contribution(own, first_own, shares, path=details)


def path_to(tree: LabelTree, label: int) -> list[int]:
    """The nodes from the root to a label's leaf."""
    parent, node = tree.parent, int(tree.leaf_of_label[label])
    path = []
    while node >= 0:
        path.append(node)
        node = int(parent[node])
    return path[::-1]


def _ranges(
    tree: LabelTree, path: list[int], *, together: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32], Ranges]:
    """The nodes whose scores are needed: those of the path, or with each of these its siblings."""
    nodes = np.array(path, np.int32)
    if not together:
        return nodes, np.ones(len(path), np.int32), Ranges([], [])
    above = nodes[:-1]
    first = np.concatenate([nodes[:1], tree.first_child[above]])
    count = np.concatenate([np.ones(1, np.int32), tree.n_children[above]])
    starts = np.cumsum(count) - count
    return first, count, Ranges(starts.tolist(), (nodes - first).tolist())


def _biases(
    bias: NDArray[np.float32], first: NDArray[np.int32], count: NDArray[np.int32], *, together: bool
) -> NDArray[np.float64]:
    if not together:
        return bias[first].astype(np.float64)
    ranges = zip(first.tolist(), count.tolist(), strict=True)
    return np.concatenate([bias[start : start + n] for start, n in ranges]).astype(np.float64)


def slope(
    function: Callable[[float], float], arguments: tuple[float, float], values: tuple[float, float]
) -> float:
    """Of the line between two points of a rising function of a logarithm; 0 where that is infinite."""
    if math.isinf(arguments[0]) or math.isinf(arguments[1]):
        return 0.0
    change = arguments[0] - arguments[1]
    if abs(change) > _STEP:
        return (values[0] - values[1]) / change
    middle = 0.5 * (arguments[0] + arguments[1])
    return (function(min(0.0, middle + _STEP)) - function(middle - _STEP)) / (
        min(0.0, middle + _STEP) - (middle - _STEP)
    )


def pulls_of_path(expert: TreeExpert, label: int, place: int | None) -> NDArray[np.float64]:
    """How log P of a label rises with each feature, from the empty row: over the path, or at one of its nodes."""
    link, kind = LINKS[expert.link], KINDS[expert.nodes]
    path = path_to(expert.tree, label)
    first, count, ranges = _ranges(expert.tree, path, together=link.needs_siblings)
    bias = _biases(expert.parameters.bias, first, count, together=link.needs_siblings).tolist()
    total = np.zeros(expert.n_features)
    if link.share is None:
        return total
    coefficients = np.array(link.share(bias, bias, ranges).coefficients)
    ends = np.cumsum(count)
    for number in range(len(path)) if place is None else [place]:
        part = coefficients[ends[number] - count[number] : ends[number]]
        total += kind.combined_weights(expert.search, int(first[number]), part)
    return total


def nearest_labels(expert: TreeExpert, label: int) -> list[tuple[int, float]]:
    """The siblings of a label that are labels too, by the cosine of their weights with its own."""
    tree = expert.tree
    leaf = int(tree.leaf_of_label[label])
    above = int(tree.parent[leaf])
    if above < 0:
        return []
    first, n = int(tree.first_child[above]), int(tree.n_children[above])
    cosines = KINDS[expert.nodes].likeness(expert.search, first, n, leaf)
    others = np.flatnonzero((tree.label[first : first + n] >= 0) & (np.arange(first, first + n) != leaf))
    order = others[np.lexsort((others, -cosines[others]))]
    return [(int(tree.label[first + place]), float(cosines[place])) for place in order]
