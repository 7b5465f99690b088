"""Training of sparse nodes in tasks: siblings together, on the rows of their parent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows
from labeltree.errors import TrainingError
from labeltree.kernels.sparse.arrays import (
    LANES,
    Gathered,
    LogLoss,
    OnlineLogLoss,
    Rows,
    SquaredHinge,
    State,
    padded,
)
from labeltree.nodes.biases import initial_bias
from labeltree.nodes.dense.fitting import make_blocks
from labeltree.nodes.sparse.defaults import loss_of
from labeltree.nodes.sparse.packing import NotFinite, Solved, pack_chunk
from labeltree.tree import LabelTree

# The log-odds that a score stands for. A squared hinge's ones rank labels as exp(-max(0, 1 - s)³) does, the
# map of Parabel's successors, but are those of a probability.
LOG_ODDS = {"squared-hinge": (3.0, 1.0), "log": (1.0, 0.0)}  # factor, summand
# Times the tolerance: before the held-out rows join, weights need not be exact. Those of the log loss grow
# long after they rank well, and a map fitted to smaller ones would not suit them.
FIRST_TOLERANCE = {"squared-hinge": 4.0, "log": 1.0}
NO_DUAL = -30.0  # a variable of the log loss, as a logit, that is as good as 0


def chunk_starts(tree: LabelTree) -> NDArray[np.int32]:
    """(n_chunks + 1,) the first node of each chunk: the root's own, then up to 64 siblings each."""
    return make_blocks(tree, most=tree.n_nodes)[0]


class Scratch:
    """Room that the tasks of a thread share."""

    def __init__(self, n_features: int, n_rows: int) -> None:
        self.local_of_feature = np.full(n_features, -1, np.int32)
        self.place_of_row = np.empty(n_rows, np.int32)


class Tasks:
    """One task per chunk of siblings: gather their parent's rows, solve, prune."""

    def __init__(self, rows: Rows, Y: LabelRows, tree: LabelTree, config: Config, seed: int) -> None:
        from labeltree.kernels.sparse.passes import count_positive, fill_positive

        self.rows, self.Y, self.tree, self.seed = rows, Y, tree, seed
        self.config = config
        self.prune = _least_weight(config, rows)
        self.start = chunk_starts(tree)
        count, node_weight = np.zeros(tree.n_nodes + 1, np.int64), np.zeros(tree.n_nodes)
        labels = (tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, rows.weight)
        count_positive(*labels, count, node_weight)
        self.node_indptr = np.cumsum(count)
        self.node_rows = np.empty(self.node_indptr[-1], np.int32)
        fill_positive(*labels, self.node_indptr, self.node_rows)
        self.all_rows = np.flatnonzero(rows.weight > 0).astype(np.int32)
        self.bias, self.is_learned = self._constants(node_weight)
        self.task_chunk = self._group_chunks()  # (n_tasks + 1,) the first chunk of each task
        self.cost = self._costs()

    @property
    def loss(self) -> str:
        """What the scores are those of."""
        return loss_of(self.config)

    @property
    def log_odds(self) -> tuple[float, float]:
        return LOG_ODDS[self.loss]

    def _constants(self, node_weight: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The bias of each node that is not learned, and which ones are."""
        # One after another, as the kernel adds: a root that is always positive must have exactly this weight.
        total = float(np.cumsum(self.rows.weight, dtype=np.float64)[-1])
        bias = initial_bias(node_weight, self.tree, total)
        return bias, np.isfinite(bias)

    def _group_chunks(self) -> NDArray[np.int64]:
        return np.arange(len(self.start))

    def _costs(self) -> NDArray[np.float64]:
        """Entries of the parent's rows times columns of each task; 0 where there is nothing to learn."""
        entries = np.diff(self.rows.indptr) + 1
        sums = np.concatenate([[0], np.cumsum(entries[self.node_rows])])
        of_node = np.append(np.diff(sums[self.node_indptr]), entries[self.all_rows].sum())
        first = self.start[self.task_chunk]
        cost = of_node[self.tree.parent[first[:-1]]] * padded(np.diff(first)).astype(np.float64)  # -1: all
        return cost * np.logical_or.reduceat(self.is_learned, first[:-1])

    def nodes_of(self, task: int) -> tuple[int, int]:
        """The first node, and the one behind the last."""
        first, last = self.start[self.task_chunk[task : task + 2]]
        return int(first), int(last)

    def solve(self, task: int, scratch: Scratch) -> tuple[list[Solved], list[Solved]]:
        """The task's chunks trained without the held-out rows, and then with them."""
        examples, features = self._gather(task, scratch)
        state = self._first_state(task, examples, len(features))
        n_passes = self.config.epochs if self.config.solver == "sgd" else self.config.max_iterations
        first = None
        if np.any(examples.held_out):
            n_done = self._train(task, examples, state, max(1, n_passes - 1), False)
            first = self._pack_task(task, state.weights, features)
            n_passes = max(1, n_passes - n_done)
            state.is_active[:] = True
        self._train(task, examples, state, n_passes, True)
        final = self._pack_task(task, state.weights, features)
        return first or final, final

    def method_of(self, task: int) -> Any:
        """What the kernel does with an example, and its parameters."""
        if self.config.solver == "sgd":
            return OnlineLogLoss(*online_step(self.config))
        kind = SquaredHinge if self.loss == "squared-hinge" else LogLoss
        return kind(*self._cost_and_l1())

    def _cost_and_l1(self) -> tuple[np.float32, np.float32]:
        return np.float32(self.config.C), np.float32(self.config.l1)

    def _train(self, task: int, examples: Gathered, state: State, n_passes: int, with_held_out: bool) -> int:
        """At most so many passes; how many there were."""
        from labeltree.kernels.sparse.passes import train_passes

        tolerance = self._tolerance(with_held_out, state.weights.shape[1])
        return train_passes(self.method_of(task), examples, state, n_passes, tolerance, with_held_out)

    def _tolerance(self, with_held_out: bool, n_columns: int) -> np.float32:
        if self.config.solver == "sgd":
            return np.float32(0.0)
        # Columns that only pad are settled soon and count as well: without them a pass seems to change more.
        few = min(1.0, n_columns / LANES)
        return np.float32(
            self.config.tolerance * few * (1.0 if with_held_out else FIRST_TOLERANCE[self.loss])
        )

    def _gather(self, task: int, scratch: Scratch) -> tuple[Gathered, NDArray[np.int32]]:
        from labeltree.kernels.sparse.passes import gather_positive

        first, last = self.nodes_of(task)
        parent = int(self.tree.parent[first])
        chosen = self.all_rows if parent < 0 else self._positive_rows(parent, parent + 1)
        n_positive = len(self._positive_rows(first, last))
        examples, features = self._gather_rows(chosen, n_positive, scratch)
        gather_positive(
            self.node_indptr, self.node_rows, first, last - first, chosen, scratch.place_of_row,
            examples.positive_indptr, examples.positive,
        )  # fmt: skip
        return examples, features

    def _gather_rows(
        self, chosen: NDArray[np.int32], n_positive: int, scratch: Scratch
    ) -> tuple[Gathered, NDArray[np.int32]]:
        """The chosen rows as examples, with room for their positive children; and their features."""
        from labeltree.kernels.sparse.passes import gather_examples

        n, bias = len(chosen), np.float32(self.config.bias)
        n_entries = int((self.rows.indptr[chosen + 1] - self.rows.indptr[chosen]).sum())
        n_features = min(n_entries, len(scratch.local_of_feature))
        n_entries += n * bool(bias)
        examples = Gathered(
            np.empty(n + 1, np.int64), np.empty(n_entries, np.int32), np.empty(n_entries, np.float32),
            np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.bool_),
            np.empty(n + 1, np.int64), np.empty(n_positive, np.int32),
        )  # fmt: skip
        features = np.empty(n_features, np.int32)
        n_features = gather_examples(self.rows, chosen, bias, scratch.local_of_feature, examples, features)
        return examples, features[:n_features]

    def _positive_rows(self, first: int, last: int) -> NDArray[np.int32]:
        return self.node_rows[self.node_indptr[first] : self.node_indptr[last]]

    def _first_state(self, task: int, examples: Gathered, n_features: int) -> State:
        n, (first, last) = len(examples.squares), self.nodes_of(task)
        n_columns = int(padded(last - first))
        weights = np.zeros((n_features + (self.config.bias > 0), n_columns), np.float32)
        shape = (0, 0) if self.config.solver == "sgd" else (n, n_columns)
        dual = np.full(shape, NO_DUAL if self.loss == "log" else 0.0, np.float32)
        chunk = int(self.task_chunk[task])
        random = np.array([self.seed], np.uint64) ^ np.uint64((chunk + 1) * 0x9E3779B97F4A7C15 % 2**64)
        positive_weight = np.ones(n_columns, np.float32)
        positive_weight[: last - first] = self._positive_weight(first, last)
        return State(
            weights, dual, positive_weight, np.arange(n), np.ones(n, np.bool_), random, np.zeros(1, np.int64)
        )

    def _positive_weight(self, first: int, last: int) -> NDArray[np.float64]:
        n_positive = np.maximum(1, np.diff(self.node_indptr[first : last + 1]))
        return self.config.positive_weight * (1 + self.config.rare_weight / n_positive)

    def _pack_task(
        self, task: int, weights: NDArray[np.float32], features: NDArray[np.int32]
    ) -> list[Solved]:
        chunks = range(self.task_chunk[task], self.task_chunk[task + 1])
        if len(chunks) == 1:
            return [self.pack(chunks[0], weights, features)]
        columns = self.start[chunks[0] : chunks[-1] + 2] - self.start[chunks[0]]
        return [
            self.pack(chunk, np.ascontiguousarray(weights[:, begin:end]), features)
            for chunk, begin, end in zip(chunks, columns[:-1], columns[1:], strict=True)
        ]

    def pack(self, chunk: int, weights: NDArray[np.float32], features: NDArray[np.int32]) -> Solved:
        is_learned = self.is_learned[self.start[chunk] : self.start[chunk + 1]]
        config = self.config
        l1 = 0.0 if config.solver == "sgd" else config.l1
        try:
            return pack_chunk(weights, features, is_learned, l1, self.prune, config.bias)
        except NotFinite:
            raise _diverged(config) from None


def online_step(config: Config) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """First step, its power, L2 and (always 0) L1 of the online methods."""
    return np.float32(config.eta), np.float32(config.eta_power), np.float32(config.l2), np.float32(0.0)


def _least_weight(config: Config, rows: Rows) -> float:
    """``prune`` for rows of length 1; the weights of longer rows are the smaller."""
    if config.row_norm != "none":
        return config.prune
    n_filled = max(1, int(np.count_nonzero(np.diff(rows.indptr))))
    squares = float(np.square(rows.values, dtype=np.float64).sum())
    return config.prune / max(math.sqrt(squares / n_filled), 1e-30)


def _diverged(config: Config) -> TrainingError:
    if config.solver == "sgd":
        eta = config.eta
        return TrainingError(
            f"weights are no longer finite: eta={eta:g} is too large for this data; try eta={eta / 10:g}"
        )
    return TrainingError(
        f"weights are no longer finite: the features' values are too large; scale them, or set row_norm='l2' "
        f"(it is {config.row_norm!r})"
    )
