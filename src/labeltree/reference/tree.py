"""Trees the slow way: Huffman by a heap, cost by its definition, profiles by dictionaries, dense k-means.

Each function is the twin of a kernel or a builder and shares no code with it but :class:`LabelTree`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree


def huffman(label_counts: Sequence[int], arity: int) -> LabelTree:
    """Join the ``arity`` lightest nodes, padding with empty leaves so that only the first join is smaller."""
    by_count = sorted(range(len(label_counts)), key=lambda label: (label_counts[label], label))
    heap = [(label_counts[label], node) for node, label in enumerate(by_count)]
    parent, label = [-1] * len(by_count), list(by_count)
    n_padding = -(len(by_count) - 1) % (arity - 1)
    size = arity - n_padding
    while len(heap) > 1:
        joined = [heapq.heappop(heap) for _ in range(size)]
        for _, node in joined:
            parent[node] = len(parent)
        heapq.heappush(heap, (sum(weight for weight, _ in joined), len(parent)))
        parent.append(-1)
        label.append(-1)
        size = arity
    return LabelTree.from_parents(np.array(parent), np.array(label))


def cheapest_binary_cost(label_counts: Sequence[int]) -> float:
    """The least cost of any binary tree on rows with one label each: every way to cut every set in two."""
    best: dict[frozenset[int], int] = {}

    def total(labels: frozenset[int]) -> int:
        if len(labels) == 1:
            return 0
        if labels not in best:
            first, *others = sorted(labels)
            cuts = [frozenset((first, *some)) for n in range(len(others)) for some in combinations(others, n)]
            weight = 2 * sum(label_counts[label] for label in labels)
            best[labels] = weight + min(total(cut) + total(labels - cut) for cut in cuts)
        return best[labels]

    return 1 + total(frozenset(range(len(label_counts)))) / sum(label_counts)


def labels_below(tree: LabelTree, node: int) -> set[int]:
    """The labels of the leaves of a subtree."""
    if tree.n_children[node] == 0:
        return {int(tree.label[node])}
    first = int(tree.first_child[node])
    return set().union(*(labels_below(tree, child) for child in range(first, first + tree.n_children[node])))


def collapse(tree: LabelTree, n: int) -> LabelTree:
    """Climb from each node that stays to the first one above it that stays too."""
    depth = [0]
    for node in range(1, tree.n_nodes):
        depth.append(depth[tree.parent[node]] + 1)

    def stays(node: int) -> bool:
        first, n_children = int(tree.first_child[node]), int(tree.n_children[node])
        has_only_leaves = all(tree.label[child] >= 0 for child in range(first, first + n_children))
        return has_only_leaves or depth[node] % (n + 1) == 0

    kept = [node for node in range(tree.n_nodes) if stays(node)]
    parents = []
    for node in kept:
        above = int(tree.parent[node])
        while above >= 0 and not stays(above):
            above = int(tree.parent[above])
        parents.append(-1 if above < 0 else kept.index(above))
    return LabelTree.from_parents(np.array(parents), tree.label[kept])


def cost(tree: LabelTree, label_sets: Sequence[set[int]]) -> float:
    """1 + the sum over inner nodes of (fraction of rows with a label below) x (number of children)."""
    result = 1.0
    for node in range(tree.n_nodes):
        if tree.n_children[node] > 0:
            below = labels_below(tree, node)
            n_rows = sum(1 for labels in label_sets if labels & below)
            result += n_rows / len(label_sets) * int(tree.n_children[node])
    return result


def profiles(
    rows: Sequence[dict[int, float]], label_sets: Sequence[set[int]], n_labels: int
) -> list[dict[int, float]]:
    """The mean row of each label's rows, scaled to length 1; empty if there is nothing to scale."""
    result: list[dict[int, float]] = []
    for label in range(n_labels):
        mean: dict[int, float] = {}
        members = [row for row, labels in zip(rows, label_sets, strict=True) if label in labels]
        for row in members:
            for feature, value in row.items():
                mean[feature] = mean.get(feature, 0.0) + value / len(members)
        norm = math.sqrt(sum(value * value for value in mean.values()))
        result.append({feature: value / norm for feature, value in mean.items()} if norm > 0.0 else {})
    return result


def label_features(label_sets: Sequence[set[int]], n_labels: int) -> list[dict[int, float]]:
    """A row's labels as its features, weighted by 1 + ln(rows / rows with the label), of length 1."""
    n_rows = [sum(1 for labels in label_sets if label in labels) for label in range(n_labels)]
    result = []
    for labels in label_sets:
        row = {label: 1.0 + math.log(len(label_sets) / n_rows[label]) for label in labels}
        norm = math.sqrt(sum(value * value for value in row.values()))
        result.append({label: value / norm for label, value in row.items()})
    return result


def place_rows(scores: NDArray[np.floating]) -> list[int]:
    """Balanced parts by regret, in rounds: the rule in the docstring of the kernel ``place_rows``."""
    n_rows, n_parts = scores.shape
    members: list[list[int]] = [[] for _ in range(n_parts)]
    smaller, n_larger = divmod(n_rows, n_parts)

    def has_room(part: int) -> bool:
        n_full = sum(1 for rows in members if len(rows) > smaller)
        return len(members[part]) < smaller or (len(members[part]) == smaller and n_full < n_larger)

    waiting = list(range(n_rows))
    while waiting:
        is_open = [part for part in range(n_parts) if has_room(part)]
        wishes = {}
        for row in waiting:
            ranked = sorted(is_open, key=lambda part: (-scores[row, part], part))
            second = scores[row, ranked[1]] if len(ranked) > 1 else -np.inf
            wishes[row] = (ranked[0], scores[row, ranked[0]] - second)
        order = sorted(waiting, key=lambda row: -wishes[row][1])
        waiting = []
        for row in order:
            if has_room(wishes[row][0]):
                members[wishes[row][0]].append(row)
            else:
                waiting.append(row)
    return [part for row in range(n_rows) for part in range(n_parts) if row in members[part]]


def split_rows(
    rows: NDArray[np.float64],
    centroids: NDArray[np.float64],
    eps: float,
    max_iterations: int,
    balanced: bool = True,
) -> list[int]:
    """Spherical k-means of rows of length 1, from given first centroids (n_parts, n_features).

    Not balanced, rows go to the nearest centroid from the second time on.
    """
    n_parts = len(centroids)
    part: list[int] = []
    before = -1.0
    for iteration in range(max_iterations):
        scores = (rows[:, None, :] * centroids).sum(axis=2)
        if not balanced and iteration > 0:
            new_part = scores.argmax(axis=1).tolist()  # the first of equal ones
        elif n_parts == 2:
            order = sorted(range(len(rows)), key=lambda row: scores[row, 1] - scores[row, 0])
            first = set(order[: len(rows) - len(rows) // 2])
            new_part = [0 if row in first else 1 for row in range(len(rows))]
        else:
            new_part = place_rows(scores)
        sums = np.array([rows[np.array(new_part) == a].sum(axis=0) for a in range(n_parts)])
        norms = np.sqrt((sums * sums).sum(axis=1))
        similarity = float(norms.sum()) / len(rows)
        if similarity < before:
            break
        part = new_part
        if similarity < before + eps:
            break
        before = similarity
        centroids = sums / np.maximum(norms, 1e-300)[:, None]
    return part


def imbalances(tree: LabelTree, arity: int, max_leaves: int, balanced: bool = True) -> list[str]:
    """What contradicts the shape that :func:`labeltree.trees.kmeans.build_kmeans` promises."""
    found = []
    for node in range(tree.n_nodes):
        first, n_children = int(tree.first_child[node]), int(tree.n_children[node])
        sizes = [len(labels_below(tree, child)) for child in range(first, first + n_children)]
        if sum(sizes) > max(arity, max_leaves):
            is_even = n_children == arity and max(sizes) - min(sizes) <= 1
            is_fair = 2 <= n_children <= arity and max(sizes) <= 0.9 * sum(sizes)
            if not (is_even or (is_fair and not balanced)):
                found.append(f"node {node} is split into {sizes}")
        elif any(size > 1 for size in sizes):
            found.append(f"node {node} has {sum(sizes)} labels, but an inner child")
    return found
