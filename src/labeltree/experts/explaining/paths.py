"""How a label tree shares out a label's probability among the entries of a row, exactly."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, read_only
from labeltree.errors import ParameterError
from labeltree.experts.explaining.contribution import Contribution, Path, PathWeights
from labeltree.kernels.explain.paths import share_logistics
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.cosines import nodes_of
from labeltree.nodes.shares import Ranges, share_logistic
from labeltree.tree import LabelTree

if TYPE_CHECKING:
    from labeltree.experts.tree_expert import TreeExpert

_STEP = 1e-5  # of a logarithm, between which a curve is taken for a line


def explain_paths(expert: TreeExpert, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
    """What the tree says of the labels for one row; all paths at once, as they are short."""
    link, kind = LINKS[expert.link], KINDS[expert.nodes]
    if link.share is None:
        raise ParameterError(f"link {expert.link} does not say how it shares out what it predicts")
    start, end = arrays[0].tolist()
    paths = [path_to(expert.tree, label) for label in labels]
    if link.share is share_logistic:
        row = arrays[1][start:end], arrays[2][start:end]
        return [_of_path(expert, _share_alone(expert, path, *row)) for path in paths]
    asked = _scores_of(expert.tree, paths, together=link.needs_siblings)
    weights = kind.weights(expert.search, asked.first, asked.n_nodes, arrays[1][start:end])
    products = weights.astype(np.float64) * arrays[2][start:end]
    at_empty = _biases(expert.parameters.bias, asked, together=link.needs_siblings)
    scores = at_empty + products.sum(axis=1)
    shared = link.share(scores.tolist(), at_empty.tolist(), asked.ranges)
    products *= np.array(shared.coefficients)[:, None]
    table = np.add.reduceat(products, asked.ranges.starts, axis=0) if link.needs_siblings else products
    contributions, first = [], 0
    for path in paths:
        part = slice(first, first + len(path))
        logs = shared.log_probability[part], shared.at_empty[part]
        contributions.append(_of_path(expert, Path(expert.tree, path, *logs, table[part])))
        first = part.stop
    return contributions


def _share_alone(
    expert: TreeExpert, path: list[int], columns: NDArray[np.int32], values: NDArray[np.float32]
) -> Path:
    """Each node by its own score, by a kernel: a single row has no time for many small arrays."""
    nodes = np.array(path, np.int32)
    weights = KINDS[expert.nodes].weights(expert.search, nodes, np.ones(len(path), np.int32), columns)
    logs, shares = np.empty((2, len(path))), np.empty((len(path), len(columns)))
    given = np.ascontiguousarray(weights, np.float32), values, expert.parameters.bias, nodes
    share_logistics(*map(read_only, given), logs, shares)
    log, at_empty = logs.tolist()
    return Path(expert.tree, path, log, at_empty, shares)


def _of_path(expert: TreeExpert, path: Path) -> Contribution:
    """What a path's logarithms sum to becomes a probability by a curve, which is taken as a line."""
    kind, logs = KINDS[expert.nodes], (sum(path.log_probability), sum(path.at_empty))
    probability_of = functools.partial(kind.label_probability, expert.parameters)
    own, first_own = probability_of(logs[0]), probability_of(logs[1])
    shares = np.add.reduce(path.shares)
    shares *= slope(probability_of, logs, (own, first_own))
    return Contribution(own, first_own, shares, path=path)


def path_to(tree: LabelTree, label: int) -> list[int]:
    """The nodes from the root to a label's leaf."""
    parent, node = tree.parent, int(tree.leaf_of_label[label])
    path = []
    while node >= 0:
        path.append(node)
        node = int(parent[node])
    return path[::-1]


class _Asked(NamedTuple):
    """The nodes whose scores are needed: ranges of siblings."""

    first: NDArray[np.int32]
    n_nodes: NDArray[np.int32]
    ranges: Ranges


def _scores_of(tree: LabelTree, paths: Sequence[list[int]], *, together: bool) -> _Asked:
    """Those of the paths' nodes, or with each of these its siblings; the root has none."""
    nodes = np.array([node for path in paths for node in path], np.int32)
    if not together:
        return _Asked(nodes, np.ones(len(nodes), np.int32), Ranges([], []))
    above = np.maximum(tree.parent[nodes], 0)
    is_root = nodes == 0
    first = np.where(is_root, nodes, tree.first_child[above])
    count = np.where(is_root, np.int32(1), tree.n_children[above])
    return _Asked(first, count, Ranges((np.cumsum(count) - count).tolist(), (nodes - first).tolist()))


def _biases(bias: NDArray[np.float32], asked: _Asked, *, together: bool) -> NDArray[np.float64]:
    nodes = nodes_of(asked.first, asked.n_nodes) if together else asked.first
    return bias[nodes].astype(np.float64)


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


def weights_of_path(expert: TreeExpert, label: int, columns: NDArray[np.int32]) -> PathWeights | None:
    """None where siblings count too."""
    link, kind = LINKS[expert.link], KINDS[expert.nodes]
    if link.share is None or link.needs_siblings:
        return None
    nodes = np.array(path_to(expert.tree, label), np.int32)
    weights = kind.weights(expert.search, nodes, np.ones(len(nodes), np.int32), columns)
    map_of_labels = kind.map_of_labels(expert.parameters)
    return PathWeights(
        np.ascontiguousarray(weights, np.float32), expert.parameters.bias[nodes], map_of_labels
    )


def pulls_of_path(expert: TreeExpert, label: int, place: int | None) -> NDArray[np.float64]:
    """How log P of a label rises with each feature, from the empty row: over its path, or at one node."""
    link, kind = LINKS[expert.link], KINDS[expert.nodes]
    path = path_to(expert.tree, label)
    asked = _scores_of(expert.tree, [path], together=link.needs_siblings)
    bias = _biases(expert.parameters.bias, asked, together=link.needs_siblings).tolist()
    total = np.zeros(expert.n_features)
    if link.share is None:
        return total
    coefficients = np.array(link.share(bias, bias, asked.ranges).coefficients)
    ends = np.cumsum(asked.n_nodes)
    for number in range(len(path)) if place is None else [place]:
        part = coefficients[ends[number] - asked.n_nodes[number] : ends[number]]
        total += kind.combined_weights(expert.search, int(asked.first[number]), part)
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
