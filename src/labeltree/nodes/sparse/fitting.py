"""Training of the sparse nodes of a tree: plan the tasks, solve each by itself, assemble what they found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes.kind import Fit, FitInput, FitProgress
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.packing import PackedChunk, join_chunks
from labeltree.nodes.sparse.plan import Plan, make_plan
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.nodes.sparse.tasks import Solved, Task, gather, solve
from labeltree.parallel import Pool

Found = TypeVar("Found")


def fit_sparse(given: FitInput) -> Fit:
    """Train each chunk of siblings on the rows of their parent."""
    without_held_out, parameters = assemble(*plan_and_solve(given, solve))
    return Fit(parameters, without_held_out)


def plan_and_solve(given: FitInput, solve: Callable[[Task], Found]) -> tuple[Plan, dict[int, Found]]:
    """The plan of a tree's tasks, and what became of each, by number."""
    X, Y, weight = given.rows
    plan = make_plan(X, Y, given.tree, given.config, weight=weight, held_out=given.held_out, seed=given.seed)
    began = time.perf_counter()

    def watch(fraction: float) -> None:
        seconds = max(time.perf_counter() - began, 1e-9)
        given.report(FitProgress(fraction, fraction * X.n_rows / seconds))

    return plan, solve_all(plan, solve, given.pool, watch)


def solve_all(
    plan: Plan, solve: Callable[[Task], Found], pool: Pool, report: Callable[[float], None]
) -> dict[int, Found]:
    """All tasks with anything to learn, by number, solved on the threads of the pool.

    What a report raises, or a task, or Ctrl-C, ends all threads.
    """
    order = np.argsort(-plan.cost, kind="stable")  # heaviest first: no thread is left with a long one
    waiting = iter(order[plan.cost[order] > 0].tolist())
    solved: dict[int, Found] = {}
    lock = threading.Lock()
    total, done, is_abandoned = float(plan.cost.sum()), 0.0, False

    def take(number: int, found: Found) -> None:
        nonlocal done, is_abandoned
        with lock:
            solved[number] = found
            if is_abandoned:  # another thread's report has raised
                return
            done += float(plan.cost[number])
            try:
                report(done / total)
            except BaseException:
                is_abandoned = True
                raise

    def work(_: int) -> None:
        nonlocal is_abandoned
        scratch = Scratch(plan)
        try:
            while not is_abandoned and (number := next(waiting, None)) is not None:
                take(number, solve(gather(plan, number, scratch)))
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
    return solved


def assemble(plan: Plan, solved: dict[int, Solved]) -> tuple[SparseParameters | None, SparseParameters]:
    """The parameters without the held-out rows, if there are any, and with them.

    ``solved``, by numbers of tasks, is emptied: what it holds goes as soon as it is no longer needed.
    """
    parts: list[list[PackedChunk | None]] = [[None] * plan.n_chunks for _ in range(2)]
    while solved:
        number, both = solved.popitem()
        for part, chunks in zip(parts, both, strict=True):
            part[plan.task_chunk[number] : plan.task_chunk[number + 1]] = chunks
    how = (plan.start, plan.is_learned, plan.bias, solver_of(plan.config).log_odds)
    first = join_chunks(parts[0], *how) if np.any(plan.rows.held_out) else None
    parts[0].clear()  # before as much is needed again
    return first, join_chunks(parts[1], *how)
