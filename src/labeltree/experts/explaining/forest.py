"""How a forest shares out a label's votes among the entries of a row, exactly.

On the way from the empty row to the row, its entries growing together, each node of a tree changes its mind
at most once: where its score, a line, is 0. There the row comes to another leaf and the probability jumps, by
what the entries did that moved the score. These are integrated gradients of a function of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays
from labeltree.experts.explaining.contribution import Contribution, Leaves
from labeltree.kernels.forest.arrays import HALF_BITS, Tail, Trees

if TYPE_CHECKING:
    from labeltree.experts.forest import ForestExpert

_NEVER = math.inf


class _Jump(NamedTuple):
    """At this part of the way a node sends the row from one leaf to another."""

    time: float
    old_leaf: int
    new_leaf: int
    node: int


def explain_forest(
    expert: ForestExpert, arrays: Arrays, labels: Sequence[int], sharpness: float
) -> list[Contribution]:
    """What the forest says of the labels for one row."""
    walker = _Walker(expert.forest, expert.parents, arrays, expert.n_columns)
    ends = expert.leaves(arrays)[0].tolist()
    starts, jumps = list[int](), list[_Jump]()
    for root, end in zip(expert.forest.root.tolist(), ends, strict=True):
        jumps += walker.follow(root, end)
        starts.append(walker.first_leaf)
    jumps.sort(key=lambda jump: jump.time)
    return [_share_jumps(walker, expert, label, starts, ends, jumps, sharpness) for label in labels]


class _Walker:
    """One row on its way through the trees."""

    def __init__(self, trees: Trees, parents: NDArray[np.int32], arrays: Arrays, n_columns: int) -> None:
        start, end = arrays[0].tolist()
        self.trees, self.parents, self.n_entries = trees, parents, end - start
        columns, values = arrays[1][start:end], arrays[2][start:end]
        known = columns < n_columns  # trees know the first ones
        self.place = np.full(n_columns, -1, np.int64)  # of a column among the entries
        self.place[columns[known]] = np.flatnonzero(known)
        self.values = values.astype(np.float64)
        length = float(np.sqrt(np.square(self.values[known]).sum()))
        self.length = length or 1.0
        self.first_leaf = -1

    def products(self, arrays: Trees | Tail, number: int) -> NDArray[np.float64]:
        """(n_entries,) the row times the weights of a node, or a label's mean row, by the list of that."""
        part = slice(*arrays.start[number : number + 2].tolist())
        place = self.place[_ids(arrays, part)]
        found = place >= 0
        products = np.zeros(self.n_entries)
        weights = arrays.amount[part][found].astype(np.float64) * float(arrays.scale[number])
        products[place[found]] = weights * self.values[place[found]]
        return products

    def follow(self, root: int, end: int) -> list[_Jump]:
        """The jumps in one tree; ``end`` is the leaf that the row comes to, however sums are rounded."""
        wanted = self._turns(root, end)
        path = self._walk(root, -1.0, wanted)
        self.first_leaf = path[-1][0]
        jumps = list[_Jump]()
        while True:
            time, place = min((path[place][1], place) for place in range(len(path)))
            if time == _NEVER:
                return jumps
            node, leaf = path[place][0], path[-1][0]
            path = path[:place] + self._walk(node, time, wanted)
            jumps.append(_Jump(time, leaf, path[-1][0], node))

    def _turns(self, root: int, end: int) -> dict[int, int]:
        """The child that each node above a leaf leads to."""
        turns = dict[int, int]()
        while end != root:
            above = int(self.parents[end])
            turns[above] = end
            end = above
        return turns

    def _walk(self, node: int, time: float, wanted: dict[int, int]) -> list[tuple[int, float]]:
        """From a node down to a leaf: the nodes, and when each will change its mind after this time."""
        path = []
        while (child := int(self.trees.first_child[node])) != 0:
            bias = float(self.trees.bias[node]) * self.length
            change = float(self.products(self.trees, node).sum())
            before, after = child + (bias < 0.0), child + (bias + change < 0.0)
            after = wanted.get(node, after)
            when = _NEVER
            if before != after:
                when = min(max(-bias / change, 0.0), 1.0) if change else 1.0
            has_changed = when <= time
            path.append((node, _NEVER if has_changed else when))
            node = after if has_changed else before
        return [*path, (node, _NEVER)]


def _ids(arrays: Trees | Tail, part: slice) -> NDArray[np.int64]:
    ids = arrays.low[part].astype(np.int64)
    return ids | arrays.high[part].astype(np.int64) << HALF_BITS if len(arrays.high) else ids


def _share_jumps(
    walker: _Walker,
    expert: ForestExpert,
    label: int,
    starts: Sequence[int],
    ends: Sequence[int],
    jumps: Sequence[_Jump],
    sharpness: float,
) -> Contribution:
    trees, shares, rest = walker.trees, np.zeros(walker.n_entries), 0.0
    similar = _Similarity(walker, expert.tail, expert.share, label, sharpness)
    votes, total = sum(_votes(trees, leaf, label) for leaf in starts), _total(trees, starts)
    level, time = similar.level(votes, total), 0.0
    first = level * similar.factor(0.0)
    for jump in jumps:
        shares += level * (similar.factor(jump.time) - similar.factor(time)) * similar.parts
        votes += _votes(trees, jump.new_leaf, label) - _votes(trees, jump.old_leaf, label)
        total += float(trees.bias[jump.new_leaf]) - float(trees.bias[jump.old_leaf])
        change = similar.level(votes, total) - level
        parts, is_moved = _parts(walker.products(trees, jump.node))
        shares += change * similar.factor(jump.time) * parts
        rest += 0.0 if is_moved else change * similar.factor(jump.time)
        level, time = level + change, jump.time
    shares += level * (similar.factor(1.0) - similar.factor(time)) * similar.parts
    n_with_label = sum(_votes(trees, leaf, label) > 0.0 for leaf in ends)
    leaves = Leaves(len(ends), n_with_label)
    return Contribution(level * similar.factor(1.0), first, shares, rest, leaves=leaves)


def _votes(trees: Trees, leaf: int, label: int) -> float:
    part = slice(*trees.start[leaf : leaf + 2].tolist())
    return float(trees.scale[leaf]) * float(trees.amount[part][_ids(trees, part) == label].sum())


def _total(trees: Trees, leaves: Sequence[int]) -> float:
    return float(trees.bias[list(leaves)].sum(dtype=np.float64))


def _parts(products: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """What part of a sum is due to each summand; False where the sum is 0."""
    total = float(products.sum())
    return (products / total, True) if total else (np.zeros(len(products)), False)


class _Similarity:
    """What a forest's votes are ranked by besides: factors that grow with the row."""

    def __init__(
        self, walker: _Walker, tail: Tail | None, share: float, label: int, sharpness: float
    ) -> None:
        self.share, self.sharpness = (share if tail is not None else 0.0), sharpness
        self.weight = 1.0 if tail is None else float(tail.weight[label])
        products = walker.products(tail, label) if tail is not None else np.zeros(walker.n_entries)
        self.cosine = float(products.sum()) / walker.length
        self.parts, _ = _parts(products)

    def level(self, votes: float, total: float) -> float:
        """What votes count, without the similarity."""
        if votes <= 1e-12:  # what sums that are taken back leave
            return 0.0
        return (min(1.0, votes / total) * self.weight) ** (1.0 - self.share)

    def factor(self, time: float) -> float:
        """Of the similarity of the label's mean row with so much of the row."""
        if not self.share:
            return 1.0
        distance = 1.0 - time * self.cosine
        return math.exp(-self.share * math.log1p(math.exp(self.sharpness * distance)))
