"""The Learned Tree (Jernite, Choromanska and Sontag 2017): labels move while dense nodes are trained.

The shape of the tree stays: a complete one, so it is balanced. Now and then its labels are put where the
nodes send their examples already. The tree that this ends with is the result; these nodes are forgotten, and
those of the model, of any kind, are fitted on it as on any other tree. At a node, q_i is the part of label i
among the labels of its examples, p_ij the mean probability that it gives child j for those of label i, and
p_j that for all. The objective

    J = 2/M * sum over labels i and children j of q_i |p_j - p_ij|

rewards children that are likely for some labels and unlikely for others. From the root down, the label and
child of the largest derivative of J by log p_ij are joined first, then the next, while the child has room for
as many labels as it has leaves below it. Slow twin: :mod:`labeltree.reference.learned`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.kernels.dense.arrays import Chunks
from labeltree.nodes.dense.buffers import aligned_zeros
from labeltree.nodes.dense.fitting import Trainer, diverged
from labeltree.nodes.dense.kind import DENSE
from labeltree.nodes.kind import FitInput
from labeltree.tree import LabelTree, Shape
from labeltree.trees.builder import TreeBuilder, TreeInput
from labeltree.trees.shapes import COMPLETE, build_shuffled

MOVES_PER_EPOCH = 4  # about: between two batches
LAST_MOVE = 0.35  # of all epochs: what is left of them would train nodes, but move no label
MOST_ROWS = 20_000  # that tell where labels go
LARGEST_BIAS = 10.0  # where a node has no examples yet: it may get some


class _Learned(TreeBuilder):
    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        tree = build_shuffled(given.rows.Y.n_labels, given.config.arity, seed)
        return learn_tree(given, tree, seed)

    def working_bytes(self, rows: TrainingRows, config: Config) -> int:
        return DENSE.needs(rows, self.guess_shape(config, rows.Y.n_labels), config, None).training_bytes

    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        return COMPLETE.guess_shape(config, n_labels)


LEARNED = _Learned()


def learn_tree(given: TreeInput, tree: LabelTree, seed: int) -> LabelTree:
    """Train dense nodes on a tree as far as its labels move, and return the tree that it became."""
    config, n_rows = given.config, given.rows.X.n_rows
    trainer = _LearnedTrainer(FitInput(given.rows, tree, config, seed, given.pool))
    next_move, last_move = 0.0, LAST_MOVE * trainer.n_total  # in examples seen
    for epoch, n_seen, part in trainer.short_parts():
        if n_seen >= next_move:
            if 0 < n_seen <= last_move:  # at first all scores are the same
                trainer.move_labels(trainer.random.permutation(n_rows)[:MOST_ROWS])
            next_move = n_seen + n_rows / MOVES_PER_EPOCH
            if next_move > last_move:
                break
        if not np.isfinite(trainer.train(part, n_seen)):
            raise diverged(config, epoch)
        given.report(min((n_seen + len(part)) / last_move, 1.0))
    return trainer.tree


class _LearnedTrainer(Trainer):
    """A training run whose labels may move between two calls of the kernel."""

    def short_parts(self) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """The rows of all epochs, a call for each move: epoch, how many came before in all, rows."""
        n_rows = self.n_total // self.config.epochs
        most = -(-n_rows // (MOVES_PER_EPOCH * self.batch_size)) * self.batch_size  # whole batches
        for epoch, start, rows in self.parts():
            for first in range(0, len(rows), most):
                yield epoch, epoch * n_rows + start + first, rows[first : first + most]

    def move_labels(self, rows: NDArray[np.int64]) -> None:
        """Put each label where these rows say."""
        label = assign_labels(self, np.sort(rows))
        self.tree = LabelTree(self.tree.parent, label)
        self.chunks = self.chunks._replace(leaf_of_label=self.tree.leaf_of_label)

    def _prepare(self) -> tuple[Chunks, NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
        """No node but the root is constant, and an example may need as many visits as on any tree."""
        chunks, bias, n_visits, n_positives = super()._prepare()
        chunks.is_constant[1:] = False
        bias[1:] = np.clip(bias[1:], -LARGEST_BIAS, LARGEST_BIAS)
        if chunks.picks_label:  # of two siblings the second's score stays 0, also where one was constant
            pair = self.tree.first_child[self.tree.n_children == 2]
            bias[pair] -= bias[pair + 1]
            bias[pair + 1] = 0.0
            return chunks, bias, n_visits, n_positives
        n_labels, depth = np.diff(self.examples.y_indptr), int(self.tree.depth_of_leaves.max())
        most_chunks = int((chunks.last - chunks.first).max()) + 1
        return chunks, bias, 1 + n_labels * depth * most_chunks, n_labels * (depth + 1)


def assign_labels(trainer: Trainer, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """(n_nodes,) the label of each leaf, as these rows would have it."""
    from labeltree.kernels.dense.learned import fill_children, measure_children

    tree, examples, parameters = trainer.tree, trainer.examples, trainer.parameters
    n_labels, arity = tree.n_labels, int(tree.n_children.max())
    capacity = _leaves_below(tree)
    node_of_label = np.zeros(n_labels, np.int32)
    hidden = aligned_zeros((1, trainer.config.dim))
    while np.any(tree.n_children[node_of_label] > 0):
        probabilities, count = np.zeros((n_labels, arity)), np.zeros(n_labels)
        measure_children(
            examples, rows, tree.first_child, tree.n_children, node_of_label, parameters, trainer.chunks.link,
            hidden, probabilities, count,
        )  # fmt: skip
        node_of_label = fill_children(
            probabilities, count, tree.first_child, tree.n_children, node_of_label, capacity
        )
    label = np.full(tree.n_nodes, -1, np.int32)
    label[node_of_label] = np.arange(n_labels, dtype=np.int32)
    return label


def _leaves_below(tree: LabelTree) -> NDArray[np.int64]:
    """(n_nodes,) 1 for a leaf."""
    n_leaves = (tree.n_children == 0).astype(np.int64)
    for node in range(tree.n_nodes - 1, 0, -1):
        n_leaves[tree.parent[node]] += n_leaves[node]
    return n_leaves
