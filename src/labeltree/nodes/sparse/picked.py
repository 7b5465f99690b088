"""Training of sparse nodes with a softmax over siblings, one label of each row picked (pick-one-label).

In batches a row with s labels counts as s rows with one label each, of weight 1/s. At a parent the copies
that go to the same child are one example: its weight is the part of the row's labels below that child. Online
each pass picks one label of each row at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import TrainingError
from labeltree.kernels.sparse.arrays import Gathered, OnlineSoftmax, SoftmaxLoss, State, padded
from labeltree.nodes.biases import softmax_bias
from labeltree.nodes.sparse.tasks import Scratch, Tasks, online_step

MOST_BYTES = 4 << 30  # that the weights and variables of one parent's children may take


class PickedTasks(Tasks):
    """One task per parent. Of two children only the first is learned: a softmax over s and 0 is a logistic.

    They are trained as two nodes with a logistic each are, which for rows of one label mirror each other.
    """

    def _constants(self, node_weight: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        from labeltree.kernels.sparse.passes import fill_shares

        tree, Y = self.tree, self.Y
        self.shares = np.empty(len(self.node_rows), np.float32)
        labels = (tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, self.rows.weight)
        fill_shares(*labels, self.node_indptr, self.shares)
        node_of_share = np.repeat(np.arange(tree.n_nodes), np.diff(self.node_indptr))
        weight = np.bincount(node_of_share, self.shares, tree.n_nodes).astype(np.float64)
        bias = softmax_bias(weight, tree)
        n_possible = np.zeros(tree.n_nodes, np.int64)  # children of each node with any example
        np.add.at(n_possible, tree.parent[1:], np.isfinite(bias[1:]))
        is_learned = np.isfinite(bias) & (n_possible[tree.parent] > 1)
        is_learned[tree.first_child[tree.n_children == 2] + 1] = False
        return bias, is_learned

    def _group_chunks(self) -> NDArray[np.int64]:
        parent = self.tree.parent[self.start[:-1]]
        return np.append(np.flatnonzero(np.diff(parent, prepend=-2)), len(parent))

    def _is_pair(self, task: int) -> bool:
        first, last = self.nodes_of(task)
        return last - first == 2

    def method_of(self, task: int) -> Any:
        if self._is_pair(task):
            return super().method_of(task)
        if self.config.solver == "sgd":
            return OnlineSoftmax(*online_step(self.config))
        return SoftmaxLoss(*self._cost_and_l1())

    def _gather(self, task: int, scratch: Scratch) -> tuple[Gathered, NDArray[np.int32]]:
        first, last = self.nodes_of(task)
        rows = self._positive_rows(first, last)
        order = np.argsort(rows, kind="stable")
        examples, features = self._gather_rows(rows[order], len(rows), scratch)
        n_rows = np.diff(self.node_indptr[first : last + 1])
        child = np.repeat(np.arange(last - first, dtype=np.int32), n_rows)
        examples.positive_indptr[:] = np.arange(len(rows) + 1)
        examples.positive[:] = child[order]
        counts = super()._positive_weight(first, last)[examples.positive]
        if self.config.solver != "sgd":  # online the picks do what the shares do here
            examples.weight[:] = self.shares[self.node_indptr[first] : self.node_indptr[last]][order]
        examples.weight[:] *= counts.astype(np.float32)
        return examples, features

    def _first_state(self, task: int, examples: Gathered, n_features: int) -> State:
        first, last = self.nodes_of(task)
        n_columns = int(padded(last - first))
        n_duals = 0 if self.config.solver == "sgd" else len(examples.squares)
        n_bytes = 4 * n_columns * (n_features + n_duals)
        if n_bytes > MOST_BYTES:
            raise TrainingError(
                f"link hsm trains the {last - first:,} children of a node together, which needs "
                f"{n_bytes / 1e9:.0f} GB here; use a tree with fewer children per node, or dense nodes"
            )
        state = super()._first_state(task, examples, n_features)
        if not self._is_pair(task):
            state.positive_weight[last - first :] = 0.0
            if self.config.solver != "sgd":
                state.dual[:] = 0.0
                state.dual[np.arange(len(examples.positive)), examples.positive] = 1.0
        return state

    def _positive_weight(self, first: int, last: int) -> NDArray[np.float64]:
        """What a positive example counts is in its weight already; a child without one has no part."""
        is_pair = last - first == 2
        return (self.is_learned[first:last] | is_pair).astype(np.float64)

    def _train(self, task: int, examples: Gathered, state: State, n_passes: int, with_held_out: bool) -> int:
        if self.config.solver != "sgd":
            return super()._train(task, examples, state, n_passes, with_held_out)
        from labeltree.kernels.sparse.passes import mark_picked

        first, last = self.nodes_of(task)
        tree, Y = self.tree, self.Y
        order = np.argsort(self._positive_rows(first, last), kind="stable")
        is_picked = np.empty(len(order), np.bool_)
        before = self.config.epochs - 1 if with_held_out and np.any(examples.held_out) else 0
        for number in range(before, before + n_passes):
            mark_picked(
                tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, self.seed % 2**63, number,
                self.node_indptr, self.node_rows, first, last, is_picked,
            )  # fmt: skip
            visited = state._replace(order=np.flatnonzero(is_picked[order]))
            super()._train(task, examples, visited, 1, with_held_out)
        return n_passes
