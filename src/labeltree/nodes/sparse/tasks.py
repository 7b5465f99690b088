"""Tasks: gathered from the plan, solved by themselves, anywhere and in any order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.nodes.sparse.gathering import Material, Scratch, gather_parent
from labeltree.nodes.sparse.packing import NotFinite, PackedChunk, pack_chunk
from labeltree.nodes.sparse.picked import gather_copies
from labeltree.nodes.sparse.plan import Plan
from labeltree.nodes.sparse.solver import Solver, Trained
from labeltree.nodes.sparse.solvers import solver_of

_RANDOM_STEP = 0x9E3779B97F4A7C15  # between the random numbers of two chunks


class Task(NamedTuple):
    """Siblings and the rows of their parent, in plain values: nothing else is needed to solve it."""

    config: Config  # resolved
    solver: Solver
    random: int  # first state of its random numbers
    prune: float  # weights closer to 0 are dropped
    columns: NDArray[np.int32]  # (n_chunks + 1,) the first child of each chunk
    is_learned: NDArray[np.bool_]  # (n_children,)
    material: Material


class Solved(NamedTuple):
    """A task's chunks: trained without the held-out rows, and with all. The same where none is held out."""

    without_held_out: list[PackedChunk]
    whole: list[PackedChunk]


def gather(plan: Plan, number: int, scratch: Scratch) -> Task:
    """The task of a number, with copies of what it needs of all data."""
    return gather_siblings(plan, plan.starts_of(number), int(plan.task_chunk[number]), scratch)


def gather_siblings(plan: Plan, starts: NDArray[np.int32], chunk: int, scratch: Scratch) -> Task:
    """The siblings from the first to the last start, cut into chunks; random numbers are those of a chunk."""
    first, last = int(starts[0]), int(starts[-1])
    solver = solver_of(plan.config, last - first)
    if plan.picks_label:
        material = gather_copies(plan, first, last, solver, scratch)
    else:
        material = gather_parent(plan, first, last, scratch)
    return Task(
        config=plan.config,
        solver=solver,
        random=plan.seed ^ (chunk + 1) * _RANDOM_STEP % 2**64,
        prune=plan.prune,
        columns=starts - starts[0],
        is_learned=plan.is_learned[first:last].copy(),
        material=material,
    )


def solve(task: Task) -> Solved:
    """A function of the task alone: wherever it runs, it gives the same bytes."""
    packed = [_pack(task, trained) for trained in train(task)]
    return Solved(packed[0], packed[-1])


def train(task: Task) -> Iterator[Trained]:
    """The weights before the held-out rows join, if there are any, and at the end."""
    return task.solver.train(task.material, task.config, task.random)


def _pack(task: Task, trained: Trained) -> list[PackedChunk]:
    if len(task.columns) == 2:
        return [_pack_chunk(task, trained, task.is_learned)]
    return [
        _pack_chunk(
            task,
            trained._replace(weights=np.ascontiguousarray(trained.weights[:, begin:end])),
            task.is_learned[begin:end],
        )
        for begin, end in pairwise(task.columns)
    ]


def _pack_chunk(task: Task, trained: Trained, is_learned: NDArray[np.bool_]) -> PackedChunk:
    features, weights, l1 = trained
    try:
        return pack_chunk(weights, features, is_learned, l1, task.prune, task.config.bias)
    except NotFinite:
        raise task.solver.diverged(task.config) from None
