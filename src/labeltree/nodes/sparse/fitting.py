"""Training of the sparse nodes of a tree: plan the tasks, solve each by itself, assemble what they found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes.kind import Fit, FitInput, FitProgress, Parts
from labeltree.nodes.sparse.bundles import bundle_tensors, bundles_of, solved_of_bundle
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.packing import PackedChunk, join_chunks
from labeltree.nodes.sparse.plan import Plan, make_plan
from labeltree.nodes.sparse.solvers import solver_of
from labeltree.nodes.sparse.tasks import Solved, Task, gather, solve
from labeltree.parallel import Pool

Found = TypeVar("Found")


def fit_sparse(given: FitInput) -> Fit:
    """Train each chunk of siblings on the rows of their parent."""
    if given.parts is None:
        plan, solved = plan_and_solve(given, solve)
        without_held_out, parameters = assemble(plan, _taken(solved))
    else:
        without_held_out, parameters = _fit_in_parts(given, given.parts)
    return Fit(parameters, without_held_out)


def plan_of(given: FitInput) -> Plan:
    X, Y, weight = given.rows
    return make_plan(
        X, Y, given.tree, given.config, weight=weight, held_out=given.held_out, seed=given.seed,
        space=given.pool.space,
    )  # fmt: skip


def plan_and_solve(given: FitInput, solve: Callable[[Task], Found]) -> tuple[Plan, dict[int, Found]]:
    """The plan of a tree's tasks, and what became of each, by number."""
    plan = plan_of(given)
    solved: dict[int, Found] = {}

    def work(number: int, scratch: Scratch) -> None:
        solved[number] = solve(gather(plan, number, scratch))

    order = np.argsort(-plan.cost, kind="stable")  # heaviest first: no thread is left with a long one
    share_out(order[plan.cost[order] > 0].tolist(), work, plan, given.pool, _watch(given, plan.cost))
    return plan, solved


def _taken(solved: dict[int, Found]) -> Iterator[tuple[int, Found]]:
    """All of it, which is let go on the way."""
    while solved:
        yield solved.popitem()


def _watch(given: FitInput, cost: Sequence[float] | NDArray[np.float64]) -> Callable[[int], None]:
    """What hears of each piece of work that is done, and tells the fraction of the cost of all."""
    began, n_rows = time.perf_counter(), given.rows.X.n_rows
    total, done = float(sum(cost)), 0.0

    def watch(number: int) -> None:
        nonlocal done
        done += float(cost[number])
        seconds = max(time.perf_counter() - began, 1e-9)
        given.report(FitProgress(done / total, done / total * n_rows / seconds))

    if total == 0.0:
        given.report(FitProgress(1.0, float("nan")))
    return watch


def share_out(
    numbers: Sequence[int],
    work: Callable[[int, Scratch], None],
    plan: Plan,
    pool: Pool,
    tell: Callable[[int], None],
) -> None:
    """Work on all numbers, in about their order, on the threads of the pool; each that is done is told.

    What is raised by telling, or by the work, or Ctrl-C, ends all threads.
    """
    waiting = iter(numbers)
    lock = threading.Lock()
    is_abandoned = False

    def done(number: int) -> None:
        nonlocal is_abandoned
        with lock:
            if is_abandoned:  # telling has raised in another thread
                return
            try:
                tell(number)
            except BaseException:
                is_abandoned = True
                raise

    def take(_: int) -> None:
        nonlocal is_abandoned
        scratch = Scratch(plan)
        try:
            while not is_abandoned and (number := next(waiting, None)) is not None:
                work(number, scratch)
                done(number)
        except BaseException:
            is_abandoned = True
            raise

    try:
        pool.map(take, range(pool.threads))
    except BaseException:  # Ctrl-C comes to this thread only
        is_abandoned = True
        raise


def _fit_in_parts(given: FitInput, parts: Parts) -> tuple[SparseParameters | None, SparseParameters]:
    """As in memory; what others have done, or an earlier run, is not done again."""
    plan = plan_of(given)
    bundles = bundles_of(plan)
    missing = [number for number in range(len(bundles)) if not parts.has_sound(number)]
    cost = [float(plan.cost[tasks].sum()) for tasks in bundles]
    watch = _watch(given, cost)
    for number in set(range(len(bundles))).difference(missing):
        watch(number)
    if parts.elsewhere is None:
        share_out(missing, _bundle_work(plan, bundles, parts), plan, given.pool, watch)
    elif missing:
        parts.elsewhere(parts.name, missing, watch)
    solved = (each for number in range(len(bundles)) for each in solved_of_bundle(parts.read(number)))
    return assemble(plan, solved)


def bundles_of_fit(given: FitInput) -> tuple[int, Callable[[int], None]]:
    """How many there are, and what solves one and keeps it, unless it is there."""
    assert given.parts is not None
    plan, parts = plan_of(given), given.parts
    bundles = bundles_of(plan)
    work = _bundle_work(plan, bundles, parts)

    def solve_one(number: int) -> None:
        if not parts.has_sound(number):
            work(number, Scratch(plan))

    return len(bundles), solve_one


def _bundle_work(
    plan: Plan, bundles: Sequence[NDArray[np.int64]], parts: Parts
) -> Callable[[int, Scratch], None]:
    def work(number: int, scratch: Scratch) -> None:
        tasks = bundles[number].tolist()
        parts.write(number, bundle_tensors({task: solve(gather(plan, task, scratch)) for task in tasks}))

    return work


def assemble(
    plan: Plan, solved: Iterable[tuple[int, Solved]]
) -> tuple[SparseParameters | None, SparseParameters]:
    """The parameters without the held-out rows, if there are any, and with them, of all solved tasks."""
    parts: list[list[PackedChunk | None]] = [[None] * plan.n_chunks for _ in range(2)]
    for number, both in solved:
        for part, chunks in zip(parts, both, strict=True):
            part[plan.task_chunk[number] : plan.task_chunk[number + 1]] = chunks
    how = (plan.start, plan.is_learned, plan.bias, solver_of(plan.config).log_odds, plan.space)
    first = join_chunks(parts[0], *how) if np.any(plan.rows.held_out) else None
    parts[0].clear()  # before as much is needed again
    return first, join_chunks(parts[1], *how)
