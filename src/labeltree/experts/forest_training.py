"""How a forest is grown: tree by tree, each from all rows and a seed of its own.

Where rows are held out, a third as many trees are grown without them, to be judged by them: the first few
decide whether a forest pays beside the other experts.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import (
    LabelRows,
    SparseRows,
    TrainingRows,
    keep_entries,
    pointers,
    read_only,
)
from labeltree.experts.calibration import LABELS_PER_ROW
from labeltree.experts.expert import Trained
from labeltree.experts.forest import ForestExpert
from labeltree.experts.forest_tail import label_gains, make_tail, most_tail_entries
from labeltree.experts.job import ExpertNeeds, TrainingJob, stage
from labeltree.experts.tree_training import tree_seed
from labeltree.kernels.forest.arrays import HALF_BITS, Examples, L1Split, L2Split, Nodes, Trees, halves_of
from labeltree.kernels.forest.growing import fill_leaves, grow_nodes
from labeltree.parallel import Pool

_JUDGED_PART = 3  # of the trees: so many are grown without the held-out rows ...
_FIRST_PART = 3  # ... and of these first so many, to see whether it pays to go on
_BIAS = 1.0  # of a feature that every row has
_COSTS = {"l1": 1.0, "l2": 0.1}
_L1_TOLERANCE, _L1_STEPS = 0.1, 5
_L2_TOLERANCE, _L2_PASSES = 0.05, 20
_SECONDS_PER_ENTRY = 8e-9
_BYTES_PER_NODE = 20
_BYTES_PER_ROW = 200  # of a task


class GrownTree(NamedTuple):
    """A tree by itself: its root is node 0."""

    first_child: NDArray[np.int32]
    bias: NDArray[np.float32]
    scale: NDArray[np.float32]
    start: NDArray[np.int64]
    ids: NDArray[np.int32]
    amount: NDArray[np.int8]


class Grower:
    """Grows trees from rows. Its methods may be called from many threads at once.

    By the first ``n_columns`` columns, which say how similar rows are: with n-grams and pairs beside the
    words trees are no better, and take thrice as long. Of these columns all rows get length 1.
    """

    def __init__(self, rows: TrainingRows, config: Config, n_columns: int) -> None:
        self.config, self.n_columns, self.n_labels = config, n_columns, rows.Y.n_labels
        X = keep_entries(rows.X, rows.X.indices < n_columns)._replace(n_columns=n_columns)
        self.rows, self.method = rows._replace(X=_of_length_1(X)), make_method(config)
        self._count_rows()

    def _count_rows(self) -> None:
        """What follows from the weights of rows."""
        self.gains = label_gains(self.rows.Y, self.rows.weight, self.config)
        self.examples = make_examples(*self.rows, self.gains)
        self.used = np.flatnonzero(self.rows.weight > 0).astype(np.int32)

    def without(self, held_out: NDArray[np.int64]) -> Grower:
        """From the other rows, as if these were not there: what labels count does not know them either."""
        if not len(held_out):
            return self
        other, weight = copy.copy(self), self.rows.weight.copy()
        weight[held_out] = 0.0
        other.rows = self.rows._replace(weight=weight)
        other._count_rows()
        return other

    def grow(self, number: int) -> GrownTree:
        """Tree ``number``."""
        nodes = _sown(self.used.copy())
        n_nodes, ids, amount = grow_nodes(
            self.method, self.examples, nodes, self.n_columns, self.config.forest_leaf,
            np.uint64(tree_seed(self.config.seed, number)),
        )  # fmt: skip
        return self._finished(nodes, n_nodes, ids, amount)

    def expert(self, trees: Sequence[GrownTree], pool: Pool) -> ForestExpert:
        """Of trees that were grown here."""
        joined = join_trees(trees, self.n_columns, self.n_labels)
        tail = make_tail(self.rows, self.gains, self.config, pool)
        return ForestExpert(joined, self.n_labels, self.n_columns, tail, self.config.forest_tail)

    def _finished(self, nodes: Nodes, n: int, ids: NDArray[np.int32], amount: NDArray[np.int8]) -> GrownTree:
        """With the labels of leaves, and all entries in the order of their nodes."""
        leaves = np.flatnonzero(nodes.first_child[:n] == 0)
        leaf_start = np.zeros(len(leaves) + 1, np.int64)
        scale, bias = nodes.scale[:n].copy(), nodes.bias[:n].copy()
        of_leaves = np.empty(len(leaves), np.float32), np.empty(len(leaves), np.float32)
        labels, shares = fill_leaves(
            self.examples, nodes, read_only(leaves), self.config.forest_labels, leaf_start, *of_leaves
        )
        scale[leaves], bias[leaves] = of_leaves
        begin, lengths = nodes.entry_begin[:n].copy(), (nodes.entry_end - nodes.entry_begin)[:n]
        begin[leaves], lengths[leaves] = len(ids) + leaf_start[:-1], np.diff(leaf_start)
        start = pointers(lengths)
        entries = np.repeat(begin - start[:-1], lengths) + np.arange(start[-1])
        return GrownTree(
            nodes.first_child[:n].copy(), bias, scale, start,
            np.concatenate([ids, labels])[entries], np.concatenate([amount, shares])[entries],
        )  # fmt: skip


def _of_length_1(X: SparseRows) -> SparseRows:
    rows = np.repeat(np.arange(X.n_rows), np.diff(X.indptr))
    length = np.sqrt(np.bincount(rows, np.square(X.values, dtype=np.float64), X.n_rows))
    length[length == 0.0] = 1.0
    return X._replace(values=(X.values / length[rows]).astype(np.float32))


def _sown(members: NDArray[np.int32]) -> Nodes:
    """A root with these rows, and room for all nodes that can come of it."""
    most = max(1, 2 * len(members))
    nodes = Nodes(
        np.zeros(most, np.int32), np.zeros(most, np.float32), np.zeros(most, np.float32),
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64),
        np.zeros(most, np.int64), members,
    )  # fmt: skip
    nodes.end[0] = len(members)
    return nodes


def make_examples(
    X: SparseRows, Y: LabelRows, weight: NDArray[np.float32], gains: NDArray[np.float64]
) -> Examples:
    """Rows for the kernels; ``gains`` are what labels count."""
    row, own = np.repeat(np.arange(Y.n_rows), np.diff(Y.indptr)), gains[Y.indices]
    discount = 1.0 / np.log2(np.arange(Y.n_labels) + 2.0)
    best = own[np.lexsort((-own, row))]  # the order that gains the most
    ideal = np.bincount(row, best * discount[np.arange(len(row)) - Y.indptr[row]], minlength=Y.n_rows)
    of_first = 1.0 / np.cumsum(discount[:LABELS_PER_ROW])  # in nDCG@5
    leaf_gain = of_first[np.clip(np.diff(Y.indptr), 1, len(of_first)) - 1]
    arrays = *X[:3], *Y[:2], weight, own / ideal[row], leaf_gain, discount
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
    lengths = np.concatenate([np.diff(tree.start) for tree in trees])
    return Trees(
        root,
        np.concatenate(children).astype(np.int32),
        np.concatenate([tree.bias for tree in trees]),
        np.concatenate([tree.scale for tree in trees]),
        pointers(lengths),
        *halves_of(ids, max(n_columns, n_labels)),
        np.concatenate([tree.amount for tree in trees]),
    )


def train_forest(job: TrainingJob) -> list[Trained]:
    """One expert of all trees. Where rows are held out, first of trees that have not seen them: a few, and if
    these pay, more; and if these do too, all trees are grown."""
    planting = _Planting(job)
    grower = Grower(job.rows, job.config, job.n_compared)
    job.report(stage("forest", job.config, 0.0))
    if not len(job.held_out.numbers):
        return [Trained(planting.grow(grower, [], job.config.forest).expert)]
    unseen = grower.without(job.held_out.numbers)

    def whole(judged: _Grown, pays: bool) -> Trained | None:
        if not pays:
            planting.end()
            return None
        return Trained(planting.grow(grower, [], job.config.forest).expert, judged.expert)

    def more(first: _Grown, pays: bool) -> Trained | None:
        if not pays:
            planting.end()
            return None
        judged = planting.grow(unseen, first.trees, _n_judged(job))
        return Trained(judged.expert, judged.expert, partial(whole, judged))

    first = planting.grow(unseen, [], -(-_n_judged(job) // _FIRST_PART))
    return [Trained(first.expert, first.expert, partial(more, first))]


class _Grown(NamedTuple):
    trees: Sequence[GrownTree]
    expert: ForestExpert


class _Planting:
    """Grows trees by all threads, and tells how many of all that there may be are grown."""

    def __init__(self, job: TrainingJob) -> None:
        self.job, self.lock = job, threading.Lock()
        self.n_done, self.n_tasks = 0, job.config.forest + _n_judged(job)

    def grow(self, grower: Grower, trees: Sequence[GrownTree], n: int) -> _Grown:
        """These and others, up to n."""

        def grow_one(number: int) -> GrownTree:
            tree = grower.grow(number)
            with self.lock:
                self.n_done += 1
                self.job.report(stage("forest", self.job.config, self.n_done / self.n_tasks))
            return tree

        grown = [*trees, *self.job.pool.map(grow_one, range(len(trees), n))]
        return _Grown(grown, grower.expert(grown, self.job.pool))

    def end(self) -> None:
        """No more are grown."""
        self.job.report(stage("forest", self.job.config, 1.0))


def _n_judged(job: TrainingJob) -> int:
    return -(-job.config.forest // _JUDGED_PART) if len(job.held_out.numbers) else 0


def needs_of_forest(job: TrainingJob, *, closely: bool) -> ExpertNeeds:
    """Closely a tree is grown."""
    config, (X, Y, _) = job.config, job.rows
    n_nodes = X.n_rows // 4
    n_entries = 2 * X.n_rows + len(Y.indices) // 2
    seconds = _SECONDS_PER_ENTRY * (len(X.indices) + 3 * len(Y.indices)) * np.log2(X.n_rows + 2.0)
    if closely:
        grower = Grower(job.rows, config, job.n_compared).without(job.held_out.numbers)
        began, tree = time.thread_time(), grower.grow(0)
        n_nodes, n_entries, seconds = len(tree.bias), len(tree.ids), time.thread_time() - began
    wide = max(job.n_compared, Y.n_labels) > 1 << HALF_BITS
    kept = config.forest * ((5 if wide else 3) * n_entries + _BYTES_PER_NODE * n_nodes)
    kept += (5 if wide else 3) * most_tail_entries(job.rows, config)
    of_tree = _BYTES_PER_ROW * X.n_rows + 8 * len(X.indices) + 40 * (X.n_columns + Y.n_labels)
    n_judged = _n_judged(job)
    training = kept * n_judged // config.forest + job.pool.threads * of_tree
    return ExpertNeeds(kept, kept, training, (config.forest + n_judged) * seconds)
