"""Sparse nodes: a node's score is w·x, a linear model of its own that is pruned to its strongest weights."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, pointers
from labeltree.errors import TrainingError
from labeltree.kernels.sparse_arrays import (
    LANES,
    Chunk,
    Gathered,
    LogLoss,
    OnlineLogLoss,
    Rows,
    SparseParameters,
    SquaredHinge,
    State,
)
from labeltree.nodes.dense import initial_bias, make_blocks
from labeltree.parallel import Pool
from labeltree.tree import LabelTree

ROWS_PER_BUCKET = 3
# The log-odds that a score stands for. A squared hinge's ones rank labels as exp(-max(0, 1 - s)³) does, the
# map of Parabel's successors, but are those of a probability.
LOG_ODDS = {"squared-hinge": (3.0, 1.0), "log": (1.0, 0.0)}  # factor, summand
DEFAULT_C = {"squared-hinge": 0.5, "log": 5.0}
HELD_OUT = 10  # one row in so many is left out at first, to calibrate the probabilities ...
MOST_HELD_OUT = 5000  # ... which are three numbers only
LEAST_HELD_OUT = 50
HELD_OUT_BLOCKS = 25  # rows next to each other are often alike: they are held out together
FIRST_TOLERANCE = 4.0  # times the tolerance: weights need not be exact before the held-out rows join
NO_DUAL = -30.0  # a variable of the log loss, as a logit, that is as good as 0


class SparseFit(NamedTuple):
    parameters: SparseParameters
    without_held_out: SparseParameters | None  # trained without these rows
    held_out: NDArray[np.int64]


def fit_sparse(
    X: SparseRows,
    Y: LabelRows,
    tree: LabelTree,
    config: Config,
    *,
    weight: NDArray[np.float32],
    seed: int,
    pool: Pool,
    report: Callable[[float], None],
) -> SparseFit:
    """Train each chunk of siblings on the rows of their parent; ``report`` hears the fraction done."""
    held_out = choose_held_out(weight)
    is_held_out = np.zeros(X.n_rows, np.bool_)
    is_held_out[held_out] = True
    rows = Rows(X.indptr, X.indices, X.values, weight, is_held_out)
    tasks = _Tasks(rows, Y, tree, config, seed)
    order = np.argsort(-tasks.cost, kind="stable")
    order = order[tasks.cost[order] > 0]
    found: dict[int, tuple[_Solved, _Solved]] = {}
    waiting, lock = itertools.count(), threading.Lock()
    total, done, is_abandoned = float(tasks.cost.sum()), 0.0, False

    def tell(chunk: int) -> None:
        nonlocal done, is_abandoned
        with lock:
            if is_abandoned:  # another thread's report has raised
                return
            done += float(tasks.cost[chunk])
            try:
                report(done / total)
            except BaseException:
                is_abandoned = True
                raise

    def work(_: int) -> None:
        nonlocal is_abandoned
        scratch = _Scratch(X.n_columns, X.n_rows)
        try:
            while not is_abandoned and (place := next(waiting)) < len(order):
                chunk = int(order[place])  # heaviest first: no thread is left with a long one
                found[chunk] = tasks.solve(chunk, scratch)
                tell(chunk)
        except BaseException:
            is_abandoned = True
            raise

    try:
        pool.map(work, range(pool.threads))
    except BaseException:  # Ctrl-C comes to this thread only
        is_abandoned = True
        raise
    if total == 0.0:
        report(1.0)
    solved = [found.pop(chunk, None) for chunk in range(len(tasks.start) - 1)]
    final = _assemble([pair and pair[1] for pair in solved], tasks)
    first = _assemble([pair and pair[0] for pair in solved], tasks) if len(held_out) else None
    return SparseFit(final, first, held_out)


def chunk_starts(tree: LabelTree) -> NDArray[np.int32]:
    """(n_chunks + 1,) the first node of each chunk: the root's own, then up to 64 siblings each."""
    return make_blocks(tree, most=tree.n_nodes)[0]


def choose_held_out(weight: NDArray[np.float32]) -> NDArray[np.int64]:
    """Rows to calibrate on, in blocks spread evenly over all; none where there would be too few."""
    n_rows = len(weight)
    n_held_out = min(n_rows // HELD_OUT, MOST_HELD_OUT)
    if n_held_out < LEAST_HELD_OUT:
        return np.empty(0, np.int64)
    starts = np.arange(HELD_OUT_BLOCKS) * n_rows // HELD_OUT_BLOCKS
    rows = np.unique(starts[:, None] + np.arange(n_held_out // HELD_OUT_BLOCKS))
    return rows[weight[rows] > 0]


class _Solved(NamedTuple):
    chunk: Chunk
    bias: NDArray[np.float32]  # (n_children,) what the bias feature adds to the scores


class _Scratch:
    """Room that the tasks of a thread share."""

    def __init__(self, n_features: int, n_rows: int) -> None:
        self.local_of_feature = np.full(n_features, -1, np.int32)
        self.place_of_row = np.empty(n_rows, np.int32)


class _Tasks:
    """One task per chunk of siblings: gather their parent's rows, solve, prune."""

    def __init__(self, rows: Rows, Y: LabelRows, tree: LabelTree, config: Config, seed: int) -> None:
        from labeltree.kernels.sparse import count_positive, fill_positive

        self.rows, self.tree, self.config, self.seed = rows, tree, config, seed
        self.method, self.prune = _method(config), _least_weight(config, rows)
        self.start = chunk_starts(tree)
        count, node_weight = np.zeros(tree.n_nodes + 1, np.int64), np.zeros(tree.n_nodes)
        labels = (tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, rows.weight)
        count_positive(*labels, count, node_weight)
        self.node_indptr = np.cumsum(count)
        self.node_rows = np.empty(self.node_indptr[-1], np.int32)
        fill_positive(*labels, self.node_indptr, self.node_rows)
        self.all_rows = np.flatnonzero(rows.weight > 0).astype(np.int32)
        # One after another, as the kernel adds: a root that is always positive must have exactly this weight.
        self.bias = initial_bias(node_weight, tree, float(np.cumsum(rows.weight, dtype=np.float64)[-1]))
        self.is_learned = np.isfinite(self.bias)
        self.cost = self._costs()

    def _costs(self) -> NDArray[np.float64]:
        """Entries of the parent's rows times columns of each chunk; 0 where there is nothing to learn."""
        entries = np.diff(self.rows.indptr) + 1
        sums = np.concatenate([[0], np.cumsum(entries[self.node_rows])])
        of_node = np.append(np.diff(sums[self.node_indptr]), entries[self.all_rows].sum())
        columns = -(-np.diff(self.start) // LANES) * LANES
        cost = of_node[self.tree.parent[self.start[:-1]]] * columns.astype(np.float64)  # parent -1: all rows
        return cost * np.logical_or.reduceat(self.is_learned, self.start[:-1])

    def solve(self, chunk: int, scratch: _Scratch) -> tuple[_Solved, _Solved]:
        """The chunk trained without the held-out rows, and then with them."""
        from labeltree.kernels.sparse import train_passes

        config = self.config
        examples, features = self._gather(chunk, scratch)
        state = self._first_state(chunk, examples, len(features))
        is_online = config.solver == "sgd"
        n_passes, tolerance = (config.epochs, 0.0) if is_online else (config.max_iterations, config.tolerance)
        first = None
        if np.any(examples.held_out):
            rough = np.float32(tolerance * FIRST_TOLERANCE)
            n_done = train_passes(self.method, examples, state, max(1, n_passes - 1), rough, False)
            first = self._pack(chunk, state.weights, features)
            n_passes = max(1, n_passes - n_done)
            state.is_active[:] = True
        train_passes(self.method, examples, state, n_passes, np.float32(tolerance), True)
        final = self._pack(chunk, state.weights, features)
        return first or final, final

    def _gather(self, chunk: int, scratch: _Scratch) -> tuple[Gathered, NDArray[np.int32]]:
        from labeltree.kernels.sparse import gather_examples, gather_positive

        first, last = int(self.start[chunk]), int(self.start[chunk + 1])
        parent = int(self.tree.parent[first])
        chosen = self.all_rows if parent < 0 else self._positive_rows(parent, parent + 1)
        n = len(chosen)
        bias = np.float32(self.config.bias)
        n_entries = int((self.rows.indptr[chosen + 1] - self.rows.indptr[chosen]).sum())
        n_features = min(n_entries, len(scratch.local_of_feature))
        n_entries += n * bool(bias)
        examples = Gathered(
            np.empty(n + 1, np.int64), np.empty(n_entries, np.int32), np.empty(n_entries, np.float32),
            np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.bool_),
            np.empty(n + 1, np.int64), np.empty(len(self._positive_rows(first, last)), np.int32),
        )  # fmt: skip
        features = np.empty(n_features, np.int32)
        n_features = gather_examples(self.rows, chosen, bias, scratch.local_of_feature, examples, features)
        gather_positive(
            self.node_indptr, self.node_rows, first, last - first, chosen, scratch.place_of_row,
            examples.positive_indptr, examples.positive,
        )  # fmt: skip
        return examples, features[:n_features]

    def _positive_rows(self, first: int, last: int) -> NDArray[np.int32]:
        return self.node_rows[self.node_indptr[first] : self.node_indptr[last]]

    def _first_state(self, chunk: int, examples: Gathered, n_features: int) -> State:
        n, first, last = len(examples.squares), int(self.start[chunk]), int(self.start[chunk + 1])
        n_columns = -(-(last - first) // LANES) * LANES
        weights = np.zeros((n_features + (self.config.bias > 0), n_columns), np.float32)
        shape = (0, 0) if self.config.solver == "sgd" else (n, n_columns)
        dual = np.full(shape, NO_DUAL if self.config.loss == "log" else 0.0, np.float32)
        random = np.array([self.seed], np.uint64) ^ np.uint64((chunk + 1) * 0x9E3779B97F4A7C15 % 2**64)
        n_positive = np.maximum(1, np.diff(self.node_indptr[first : last + 1]))
        positive_weight = np.ones(n_columns, np.float32)
        positive_weight[: last - first] = self.config.positive_weight * (
            1 + self.config.rare_weight / n_positive
        )
        return State(
            weights, dual, positive_weight, np.arange(n), np.ones(n, np.bool_), random, np.zeros(1, np.int64)
        )

    def _pack(self, chunk: int, weights: NDArray[np.float32], features: NDArray[np.int32]) -> _Solved:
        """The chunk's weights, pruned, in bytes: 127 steps of a child's scale are its largest weight."""
        from labeltree.kernels.sparse_chunk import count_entries, fill_chunk, largest_weights

        nodes = slice(int(self.start[chunk]), int(self.start[chunk + 1]))
        n_children, n_features, n_columns = nodes.stop - nodes.start, len(features), weights.shape[1]
        l1 = np.float32(self.method.l1)
        largest = np.empty(n_columns, np.float32)
        largest_weights(weights, n_features, l1, largest)
        bias = weights[n_features:, :n_children].sum(axis=0)
        bias = np.copysign(np.maximum(np.abs(bias) - l1, 0), bias) * np.float32(self.config.bias)
        if not (np.isfinite(largest).all() and np.isfinite(bias).all()):
            raise _diverged(self.config)
        scale = largest / np.float32(127.0)
        scale[scale < np.finfo(np.float32).tiny] = 0.0  # too few digits: its steps would not be 127
        # What is less than half a step would become 0; columns without a learned node keep nothing.
        least = np.maximum(self.prune, scale * np.float32(0.50001))
        is_kept = np.zeros(n_columns, np.bool_)
        is_kept[:n_children] = self.is_learned[nodes] & (scale[:n_children] > 0)
        least[~is_kept] = np.inf
        length = np.empty(n_features, np.uint8)
        n_rows, n_entries = count_entries(weights, n_features, l1, least, length)
        n_buckets = max(1, n_rows // ROWS_PER_BUCKET) + 1 if n_rows else 0
        packed = Chunk(
            np.empty((n_buckets, 2), np.int32),
            np.empty(n_rows, np.int32),
            np.empty(n_rows, np.uint8),
            np.empty(n_entries, np.uint16),
            scale[:n_children],
        )
        fill_chunk(weights, features, length, l1, least, scale, packed)
        return _Solved(packed, bias)


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


def _least_weight(config: Config, rows: Rows) -> np.float32:
    """``prune`` for rows of length 1; the weights of longer rows are the smaller."""
    if config.row_norm != "none":
        return np.float32(config.prune)
    n_filled = max(1, int(np.count_nonzero(np.diff(rows.indptr))))
    squares = float(np.square(rows.values, dtype=np.float64).sum())
    return np.float32(config.prune / max(math.sqrt(squares / n_filled), 1e-30))


def _method(config: Config) -> Any:
    if config.solver == "sgd":
        eta, power, l2 = np.float32(config.eta), np.float32(config.eta_power), np.float32(config.l2)
        return OnlineLogLoss(eta, power, l2, np.float32(0.0))
    kind = SquaredHinge if config.loss == "squared-hinge" else LogLoss
    return kind(np.float32(config.C or DEFAULT_C[config.loss]), np.float32(config.l1))


def _assemble(solved: Sequence[_Solved | None], tasks: _Tasks) -> SparseParameters:
    """One array of each kind for all chunks; those that were not solved have constant nodes only."""
    config, bias = tasks.config, tasks.bias.copy()
    factor, summand = LOG_ODDS["log" if config.solver == "sgd" else config.loss]
    scale = np.zeros(tasks.tree.n_nodes, np.float32)
    nothing = Chunk(
        np.empty((0, 2), np.int32), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint16),
        np.empty(0, np.float32),
    )  # fmt: skip
    chunks = [nothing if part is None else part.chunk for part in solved]
    for number, part in enumerate(solved):
        if part is not None:
            nodes = slice(tasks.start[number], tasks.start[number + 1])
            learned = tasks.is_learned[nodes]
            scale[nodes][learned] = part.chunk.scale[learned] * np.float32(factor)
            bias[nodes][learned] = part.bias[learned] * np.float32(factor) + np.float32(summand)
    return SparseParameters(
        pointers([len(chunk.bucket) for chunk in chunks]),
        np.concatenate([chunk.bucket for chunk in chunks]),
        pointers([len(chunk.feature) for chunk in chunks]),
        np.concatenate([chunk.feature for chunk in chunks]),
        np.concatenate([chunk.length for chunk in chunks]),
        pointers([len(chunk.entry) for chunk in chunks]),
        np.concatenate([chunk.entry for chunk in chunks]),
        scale,
        bias,
        np.array([1.0, 1.0, 0.0], np.float32),
    )
