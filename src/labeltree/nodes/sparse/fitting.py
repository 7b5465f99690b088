"""Sparse nodes: a node's score is w·x, a linear model of its own that is pruned to its strongest weights."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.kernels.sparse.arrays import Rows, SparseParameters
from labeltree.nodes.sparse.packing import Solved, assemble
from labeltree.nodes.sparse.picked import PickedTasks
from labeltree.nodes.sparse.tasks import Scratch, Tasks
from labeltree.parallel import Pool
from labeltree.tree import LabelTree

HELD_OUT = 10  # one row in so many is left out at first, to calibrate the probabilities ...
MOST_HELD_OUT = 5000  # ... which are three numbers only
LEAST_HELD_OUT = 50
HELD_OUT_BLOCKS = 25  # rows next to each other are often alike: they are held out together


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
    kind = PickedTasks if config.link == "hsm" else Tasks
    tasks = kind(rows, Y, tree, config, seed)
    order = np.argsort(-tasks.cost, kind="stable")
    order = order[tasks.cost[order] > 0]
    found: dict[int, tuple[list[Solved], list[Solved]]] = {}
    waiting, lock = itertools.count(), threading.Lock()
    total, done, is_abandoned = float(tasks.cost.sum()), 0.0, False

    def tell(task: int) -> None:
        nonlocal done, is_abandoned
        with lock:
            if is_abandoned:  # another thread's report has raised
                return
            done += float(tasks.cost[task])
            try:
                report(done / total)
            except BaseException:
                is_abandoned = True
                raise

    def work(_: int) -> None:
        nonlocal is_abandoned
        scratch = Scratch(X.n_columns, X.n_rows)
        try:
            while not is_abandoned and (place := next(waiting)) < len(order):
                task = int(order[place])  # heaviest first: no thread is left with a long one
                found[task] = tasks.solve(task, scratch)
                tell(task)
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
    parts: list[list[Solved | None]] = [[None] * (len(tasks.start) - 1) for _ in range(2)]
    for task, solved in found.items():
        for part, chunks in zip(parts, solved, strict=True):
            part[tasks.task_chunk[task] : tasks.task_chunk[task + 1]] = chunks
    found.clear()
    how = (tasks.start, tasks.is_learned, tasks.bias, tasks.log_odds)
    first = assemble(parts[0], *how) if len(held_out) else None
    parts[0].clear()  # before as much is needed again
    return SparseFit(assemble(parts[1], *how), first, held_out)


def choose_held_out(weight: NDArray[np.float32]) -> NDArray[np.int64]:
    """Rows to calibrate on, in blocks spread evenly over all; none where there would be too few."""
    n_rows = len(weight)
    n_held_out = min(n_rows // HELD_OUT, MOST_HELD_OUT)
    if n_held_out < LEAST_HELD_OUT:
        return np.empty(0, np.int64)
    starts = np.arange(HELD_OUT_BLOCKS) * n_rows // HELD_OUT_BLOCKS
    rows = np.unique(starts[:, None] + np.arange(n_held_out // HELD_OUT_BLOCKS))
    return rows[weight[rows] > 0]
