"""Dense nodes: a node's score is w·h + b, with h the weighted sum of the embeddings of a row's features."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.kernels.dense.arrays import Chunks, Examples, Parameters, Step
from labeltree.nodes import LINKS
from labeltree.nodes.biases import total_weight
from labeltree.nodes.chunks import MAX_CHUNKS, make_chunks
from labeltree.nodes.dense.buffers import (
    aligned_zeros,
    largest_batch,
    make_buffers,
    make_plan,
    make_scratch,
)
from labeltree.nodes.dense.quantized import DenseParameters
from labeltree.nodes.kind import FitInput, FitProgress
from labeltree.nodes.links import Link
from labeltree.tree import LabelTree

SMALLEST_SQUARES = 1e-8  # a gradient that is only rounding error must not become a full step
INITIAL_BIAS_SQUARES = 0.01  # biases start near their best values: no full first step along rounding errors
PART_EXAMPLES = 8192  # between two reports of progress


class Optimizer(NamedTuple):
    """How steps are scaled: a row moves by rate * gradient / (its squared gradients so far) ** power."""

    embedding_power: float
    node_power: float
    embedding_rate: float  # relative to that of nodes

    @property
    def is_plain(self) -> bool:
        """Whether steps do not depend on those before."""
        return self.embedding_power == self.node_power == 0.0


# By the parameter ``optimizer``. Word counts are far more skewed than those of nodes: with Adagrad's usual
# power 1/2 rare words move as far as common ones and memorise their few rows; a power of 1/4 does better.
OPTIMIZERS = {"adagrad": Optimizer(0.25, 0.5, 0.6), "sgd": Optimizer(0.0, 0.0, 1.0)}


def fit_dense(given: FitInput) -> DenseParameters:
    """Train all nodes of the tree and the embeddings together (the paper's Algorithm 1, in mini-batches)."""
    return Trainer(given).run(given.report)


class Trainer:
    """The arrays of a training run, and the threads that work on them."""

    def __init__(self, given: FitInput) -> None:
        (X, Y, weight), tree, config, seed, pool, *_ = given
        self.config, self.tree, self.seed, self.pool = config, tree, seed, pool
        self.random = np.random.default_rng(seed)
        self.batch_size = min(config.batch_size, max(1, X.n_rows))
        self.n_total = X.n_rows * config.epochs
        self.examples = Examples(X.indptr, X.indices, X.values, Y.indptr, Y.indices, weight)
        self.chunks, bias, n_visits, n_positives = self._prepare()
        self.is_learned = np.isfinite(bias)
        self.parameters = Parameters(
            _random_embedding(self.random, X.n_columns, config),
            aligned_zeros((tree.n_nodes, config.dim)),
            bias,
            np.zeros(X.n_columns, np.float32),
            np.zeros(tree.n_nodes, np.float32),
            np.full(tree.n_nodes, INITIAL_BIAS_SQUARES, np.float32),
        )
        capacity = largest_batch(n_visits, self.batch_size)
        n_positive = largest_batch(n_positives, self.batch_size)
        self.plan = make_plan(X, tree, self.chunks, self.batch_size, capacity, n_positive)
        self.buffers = make_buffers(self.batch_size, capacity, config.dim)
        n_threads = pool.threads if self.batch_size >= 4 * pool.threads else 1
        max_chunk = int(np.diff(self.chunks.start).max())
        self.scratch = [make_scratch(max_chunk, self.batch_size, config.dim) for _ in range(n_threads)]

    def run(self, report: Callable[[FitProgress], None]) -> DenseParameters:
        """All epochs."""
        config, n_rows, loss = self.config, self.n_total // self.config.epochs, 0.0
        for epoch, start, rows in self.parts():
            began = time.perf_counter()
            loss = self.train(rows, epoch * n_rows + start) + (loss if start else 0.0)
            if not np.isfinite(loss):
                raise diverged(config, epoch)
            done = start + len(rows)
            speed = len(rows) / max(time.perf_counter() - began, 1e-9)
            fraction = (epoch + done / n_rows) / config.epochs
            report(FitProgress(fraction, speed, epoch + 1, config.epochs, loss / done))
        fitted = self.fitted()
        # a loss is taken before its step, so the last step needs a look of its own
        learned = fitted.bias[self.is_learned]
        if not all(_all_finite(array) for array in (fitted.embedding, fitted.weights, learned)):
            raise diverged(config, config.epochs - 1)
        return fitted

    def parts(self) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """The rows of all epochs in random order, between two reports: epoch, how many came before, rows."""
        n_rows = self.n_total // self.config.epochs
        n_at_once = max(1, PART_EXAMPLES // self.batch_size) * self.batch_size
        for epoch in range(self.config.epochs):
            order = self.random.permutation(n_rows).astype(np.int64)
            for start in range(0, n_rows, n_at_once):
                yield epoch, start, order[start : start + n_at_once]

    def train(self, rows: NDArray[np.int64], n_seen: int) -> float:
        """One pass over the rows, after ``n_seen`` others; their loss, NaN or infinite once they diverge."""
        config, optimizer = self.config, OPTIMIZERS[self.config.optimizer]
        step = Step(
            first_rate=config.lr * (1.0 - n_seen / self.n_total),
            last_rate=config.lr * (1.0 - (n_seen + len(rows)) / self.n_total),
            embedding_rate=optimizer.embedding_rate,
            embedding_power=optimizer.embedding_power,
            node_power=optimizer.node_power,
            smallest_squares=SMALLEST_SQUARES,
            l2=config.l2,
            batch_size=self.batch_size,
        )
        loss = np.zeros(1)
        if optimizer.is_plain and config.batch_size == 1:
            self._take_steps(rows, n_seen, step, loss)
            return float(loss[0])
        self._take_batches(rows, n_seen, step, loss)
        squares = self.parameters.embedding_squares.sum() + self.parameters.weight_squares.sum()
        return float(loss[0]) if np.isfinite(squares) else math.inf

    def _take_steps(self, rows: NDArray[np.int64], n_seen: int, step: Step, out_loss: NDArray) -> None:
        from labeltree.kernels.dense.steps import train_steps

        train_steps(
            self.examples, self.chunks, self.parameters, self.plan, self.buffers, rows, n_seen, step,
            self.scratch[0], out_loss,
        )  # fmt: skip

    def _take_batches(self, rows: NDArray[np.int64], n_seen: int, step: Step, out_loss: NDArray) -> None:
        from labeltree.kernels.dense.batches import ABANDONED, train_batches

        n_threads = len(self.scratch)

        def work(thread: int) -> None:
            train_batches(
                self.examples, self.chunks, self.parameters, self.plan, self.buffers, rows, n_seen, step,
                n_threads, thread, self.scratch[thread], out_loss,
            )  # fmt: skip

        try:
            self.pool.map(work, range(n_threads))
        except BaseException:  # Ctrl-C may come before all threads run: the others must not wait for ever
            self.buffers.sync[ABANDONED] = 1
            raise

    def _prepare(self) -> tuple[Chunks, NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
        """The chunks of the tree, the first biases, and the visits and positive nodes of each example."""
        tree, link = self.tree, LINKS[self.config.link]
        start, first, last = make_chunks(tree, most=1 if link.picks_label else MAX_CHUNKS)
        chunks = Chunks(
            tree.parent, tree.leaf_of_label, start, first, last,
            is_constant=np.zeros(len(start) - 1, np.bool_),
            link=link.kernel, picks_label=link.picks_label, seed=self.seed % 2**63,
        )  # fmt: skip
        bias, n_visits, n_positives = _first_bias(self.examples, tree, chunks, link)
        if link.picks_label:
            is_constant = np.add.reduceat(np.isfinite(bias), start[:-1], dtype=np.int64) < 2
        else:
            is_constant = np.logical_and.reduceat(np.isinf(bias), start[:-1])
        return chunks._replace(is_constant=is_constant), bias, n_visits, n_positives

    def fitted(self) -> DenseParameters:
        return DenseParameters(self.parameters.embedding, self.parameters.weights, self.parameters.bias)


def _all_finite(array: NDArray[np.float32]) -> bool:
    """By their sum, which needs no memory; float64 holds any sum of finite float32."""
    with np.errstate(invalid="ignore"):
        return bool(np.isfinite(array.sum(dtype=np.float64)))


def diverged(config: Config, epoch: int) -> TrainingError:
    default = Config().lr
    return TrainingError(
        f"the loss is no longer finite in epoch {epoch + 1}: lr={config.lr:g} is too large for this data; "
        f"try lr={min(config.lr / 10, default):g}"
    )


def _first_bias(
    examples: Examples, tree: LabelTree, chunks: Chunks, link: Link
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """The frequencies of nodes as scores; and the visits and positive nodes of each example."""
    from labeltree.kernels.dense.plan import count_visits, weigh_picked

    n_visits = np.empty(len(examples.weight), np.int64)
    n_positives = np.empty(len(examples.weight), np.int64)
    node_weight = np.zeros(tree.n_nodes, np.float64)
    count_visits(examples, chunks, n_visits, n_positives, node_weight)
    if link.picks_label:
        node_weight[:] = 0.0
        weigh_picked(examples, chunks, node_weight)
        n_visits[:] = n_positives[:] = int(tree.depth_of_leaves.max()) + 1  # the path of one label
    return link.first_bias(node_weight, tree, total_weight(examples.weight)), n_visits, n_positives


def _random_embedding(random: np.random.Generator, n_features: int, config: Config) -> NDArray[np.float32]:
    embedding = aligned_zeros((n_features, config.dim))
    random.random(out=embedding, dtype=np.float32)
    embedding *= np.float32(2 * config.initial_range)
    embedding -= np.float32(config.initial_range)
    return embedding
