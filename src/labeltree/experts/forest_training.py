"""How a forest is grown: tree by tree, each from all rows and a seed of its own.

Held-out rows are kept from a tree at first, then led to its leaves, and leaves that get too large by that are
split further: one training makes the forest that is judged and the one that is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, pointers, read_only, take_rows
from labeltree.experts.expert import Trained
from labeltree.experts.forest import ForestExpert
from labeltree.experts.job import ExpertNeeds, TrainingJob, stage
from labeltree.experts.tree_training import tree_seed
from labeltree.kernels.forest.arrays import HALF_BITS, Examples, L1Split, L2Split, Nodes, Trees
from labeltree.kernels.forest.growing import fill_leaves, grow_nodes

_BIAS = 1.0  # of a feature that every row has
_COSTS = {"l1": 2.0, "l2": 0.1}
_L1_TOLERANCE, _L1_STEPS = 0.1, 5
_L2_TOLERANCE, _L2_PASSES = 0.05, 20


class GrownTree(NamedTuple):
    """A tree by itself: its root is node 0."""

    first_child: NDArray[np.int32]
    bias: NDArray[np.float32]
    scale: NDArray[np.float32]
    start: NDArray[np.int64]
    ids: NDArray[np.int32]
    amount: NDArray[np.int8]


class _Growth(NamedTuple):
    """Where a tree stands: nodes with their rows, and the weights of inner nodes."""

    nodes: Nodes
    n_nodes: int
    ids: NDArray[np.int32]
    amount: NDArray[np.int8]


class Grower:
    """Grows trees from rows. Its methods may be called from many threads at once."""

    def __init__(self, rows: TrainingRows, config: Config) -> None:
        self.config, self.n_columns, self.n_labels = config, rows.X.n_columns, rows.Y.n_labels
        self.X = rows.X
        self.examples = make_examples(rows.X, rows.Y, rows.weight)
        self.method = make_method(config)
        self.used = np.flatnonzero(rows.weight > 0).astype(np.int32)

    def grow(self, number: int, held_out: NDArray[np.int64]) -> tuple[GrownTree, GrownTree | None]:
        """Tree ``number``; and, where rows are held out, as it is without them."""
        seed = tree_seed(self.config.seed, number)
        first = np.setdiff1d(self.used, held_out).astype(np.int32)
        growth = self._go_on(_sown(len(self.used), first), np.zeros(1, np.int32), seed)
        tree = self._finished(growth)
        if not len(held_out):
            return tree, None
        later = np.intersect1d(self.used, held_out).astype(np.int32)
        growth = self._with_rows(growth, tree, later)
        leaves = np.flatnonzero(growth.nodes.first_child[: growth.n_nodes] == 0).astype(np.int32)
        return self._finished(self._go_on(growth, leaves, seed)), tree

    def expert(self, trees: Sequence[GrownTree]) -> ForestExpert:
        joined = join_trees(trees, self.n_columns, self.n_labels)
        return ForestExpert(joined, self.n_labels, self.n_columns)

    def _go_on(self, growth: _Growth, queue: NDArray[np.int32], seed: int) -> _Growth:
        n_nodes, ids, amount = grow_nodes(
            self.method, self.examples, growth.nodes, growth.n_nodes, read_only(queue), self.n_columns,
            self.config.forest_leaf, np.uint64(seed), growth.ids, growth.amount,
        )  # fmt: skip
        return _Growth(growth.nodes, n_nodes, ids, amount)

    def _finished(self, growth: _Growth) -> GrownTree:
        nodes, n = growth.nodes, growth.n_nodes
        leaves = np.flatnonzero(nodes.first_child[:n] == 0)
        leaf_start, scale = np.zeros(len(leaves) + 1, np.int64), nodes.scale[:n].copy()
        of_leaves = np.empty(len(leaves), np.float32)
        ids, amount = fill_leaves(
            self.examples, nodes, read_only(leaves), self.config.forest_labels, leaf_start, of_leaves
        )
        scale[leaves] = of_leaves
        begin, lengths = nodes.entry_begin[:n].copy(), (nodes.entry_end - nodes.entry_begin)[:n]
        begin[leaves], lengths[leaves] = len(growth.ids) + leaf_start[:-1], np.diff(leaf_start)
        start = pointers(lengths)
        entries = np.repeat(begin - start[:-1], lengths) + np.arange(start[-1])
        return GrownTree(
            nodes.first_child[:n].copy(), nodes.bias[:n].copy(), scale, start,
            np.concatenate([growth.ids, ids])[entries], np.concatenate([growth.amount, amount])[entries],
        )  # fmt: skip

    def _with_rows(self, growth: _Growth, tree: GrownTree, rows: NDArray[np.int32]) -> _Growth:
        """The same tree with more rows in its leaves."""
        new_leaves = self.expert([tree]).leaves(take_rows(self.X[:3], rows.astype(np.int64)))[:, 0]
        nodes, n = growth.nodes, growth.n_nodes
        leaves = np.flatnonzero(nodes.first_child[:n] == 0)
        order = np.argsort(nodes.begin[leaves], kind="stable")  # leaves share out the rows, in some order
        sizes = (nodes.end - nodes.begin)[leaves[order]]
        n_old = int(sizes.sum())
        leaf_of = np.concatenate([np.repeat(leaves[order], sizes), new_leaves])
        members = np.concatenate([nodes.members[:n_old], rows])
        members = members[np.lexsort((members, leaf_of))]
        counts = pointers(np.bincount(leaf_of, minlength=n))
        grown = _sown(len(self.used), members).nodes
        for name in ("first_child", "bias", "scale", "entry_begin", "entry_end"):
            getattr(grown, name)[:n] = getattr(nodes, name)[:n]
        grown.begin[:n], grown.end[:n] = counts[:-1], counts[1:]
        return growth._replace(nodes=grown)


def _sown(n_rows: int, members: NDArray[np.int32]) -> _Growth:
    """A root with some of the rows, and room for all nodes that can come of it."""
    most = max(1, 2 * n_rows)
    nodes = Nodes(
        np.zeros(most, np.int32), np.zeros(most, np.float32), np.zeros(most, np.float32),
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64),
        np.zeros(most, np.int64), members,
    )  # fmt: skip
    nodes.end[0] = len(members)
    return _Growth(nodes, 1, np.empty(0, np.int32), np.empty(0, np.int8))


def make_examples(X: SparseRows, Y: LabelRows, weight: NDArray[np.float32]) -> Examples:
    """Rows for the kernels."""
    lengths = np.diff(Y.indptr)
    discount = 1.0 / np.log2(np.arange(Y.n_labels) + 2.0)
    ideal = np.concatenate([[np.inf], np.cumsum(discount)])[lengths]
    arrays = *X[:3], *Y[:2], weight, 1.0 / ideal, discount
    return Examples(*map(read_only, arrays))


def make_method(config: Config) -> L1Split | L2Split:
    cost = config.forest_cost or _COSTS[config.forest_split]
    if config.forest_split == "l1":
        return L1Split(cost, _BIAS, _L1_TOLERANCE, _L1_STEPS)
    return L2Split(cost, _BIAS, _L2_TOLERANCE, _L2_PASSES, config.forest_prune)


def join_trees(trees: Sequence[GrownTree], n_columns: int, n_labels: int) -> Trees:
    """All trees one after another, as a model file has them."""
    root = pointers([len(tree.first_child) for tree in trees])[:-1].astype(np.int32)
    children = [
        np.where(tree.first_child, tree.first_child + first, 0)
        for tree, first in zip(trees, root, strict=True)
    ]
    ids = np.concatenate([tree.ids for tree in trees])
    low = (ids & (1 << HALF_BITS) - 1).astype(np.uint16)
    is_wide = max(n_columns, n_labels) > 1 << HALF_BITS
    high = (ids >> HALF_BITS).astype(np.uint16) if is_wide else np.empty(0, np.uint16)
    lengths = np.concatenate([np.diff(tree.start) for tree in trees])
    return Trees(
        root,
        np.concatenate(children).astype(np.int32),
        np.concatenate([tree.bias for tree in trees]),
        np.concatenate([tree.scale for tree in trees]),
        pointers(lengths),
        low,
        high,
        np.concatenate([tree.amount for tree in trees]),
    )


def train_forest(job: TrainingJob) -> list[Trained]:
    """One expert of all trees."""
    config, done, lock = job.config, 0, threading.Lock()
    grower, held_out = Grower(job.rows, config), job.held_out.numbers
    job.report(stage("forest", config, 0.0))

    def grow(number: int) -> tuple[GrownTree, GrownTree | None]:
        nonlocal done
        grown = grower.grow(number, held_out)
        with lock:
            done += 1
            job.report(stage("forest", config, done / config.forest))
        return grown

    grown = job.pool.map(grow, range(config.forest))
    without = [tree for _, tree in grown if tree is not None]
    judged = grower.expert(without) if without else None
    return [Trained(grower.expert([tree for tree, _ in grown]), judged)]


def needs_of_forest(job: TrainingJob, *, closely: bool) -> ExpertNeeds:
    """Closely a tree is grown."""
    config, (X, Y, _) = job.config, job.rows
    n_nodes = X.n_rows // 4
    n_entries = 2 * X.n_rows + len(Y.indices) // 2
    seconds = _SECONDS_PER_ENTRY * (len(X.indices) + 3 * len(Y.indices)) * np.log2(X.n_rows + 2.0)
    if closely:
        grower, began = Grower(job.rows, config), time.thread_time()
        tree, _ = grower.grow(0, job.held_out.numbers)
        n_nodes, n_entries, seconds = len(tree.bias), len(tree.ids), time.thread_time() - began
    wide = max(X.n_columns, Y.n_labels) > 1 << HALF_BITS
    kept = config.forest * ((5 if wide else 3) * n_entries + _BYTES_PER_NODE * n_nodes)
    of_tree = _BYTES_PER_ROW * X.n_rows + 8 * len(X.indices) + 40 * (X.n_columns + Y.n_labels)
    # Those that are judged are as large as those that are kept.
    judged = kept if len(job.held_out.numbers) else 0
    return ExpertNeeds(kept, kept, judged + job.pool.threads * of_tree, config.forest * seconds)


_SECONDS_PER_ENTRY = 8e-9
_BYTES_PER_NODE = 20
_BYTES_PER_ROW = 200  # of a task
