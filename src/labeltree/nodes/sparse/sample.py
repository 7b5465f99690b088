"""How large the weights of sparse nodes will be: a part of the training, done ahead.

How many weights survive pruning depends on how alike the rows of siblings are, and no count of rows, features
and labels tells that. So, on the real tree, a few tasks of each level are solved, drawn at random, one of
each group of tasks of about the same size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.kernels.sparse.arrays import FEW_LANES
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.packing import ROWS_PER_BUCKET
from labeltree.nodes.sparse.plan import Plan, make_plan
from labeltree.nodes.sparse.tasks import Task, gather, gather_siblings, solve
from labeltree.tree import LabelTree

SHARE = 0.05  # of the work of a level ...
LEAST_WORK = 3e7  # ... or so many products of a value and a weight per pass, half a second
LEAST_TASKS = 5
_ENTRY_BYTES = 2  # of nodes.N.entry in the model file ...
_ROW_BYTES = 4 + 1 + 8 / ROWS_PER_BUCKET  # ... and of a row's feature, length and part of a bucket


class _Kept(NamedTuple):
    entries: float
    rows: float

    @property
    def bytes(self) -> float:
        return _ENTRY_BYTES * self.entries + _ROW_BYTES * self.rows


def sampled_bytes(X: SparseRows, Y: LabelRows, tree: LabelTree, config: Config, seed: int) -> int:
    """About the bytes of all weights of one tree."""
    weight, held_out = np.ones(X.n_rows, np.float32), np.empty(0, np.int64)
    plan = make_plan(X, Y, tree, config, weight=weight, held_out=held_out, seed=seed)
    level = tree.depth()[plan.start[plan.task_chunk[:-1]]]  # of each task's nodes
    size = _entries_of_positives(plan)
    random, scratch = np.random.default_rng(seed), Scratch(plan)
    total = 0.0
    for number in np.unique(level[plan.cost > 0]):
        members = np.flatnonzero((level == number) & (plan.cost > 0))
        members = members[np.argsort(size[members], kind="stable")]
        work = float(plan.cost[members].sum())
        budget = max(SHARE * work, LEAST_WORK)
        n_chosen = max(LEAST_TASKS, int(len(members) * budget / work))
        # By roots of sizes: large tasks, which differ the most, are in smaller groups.
        place = np.cumsum(np.sqrt(size[members] + 1.0))
        group = np.ceil(place / place[-1] * min(n_chosen, len(members)))
        for alike in np.split(members, np.flatnonzero(np.diff(group)) + 1):
            total += len(alike) * _solve_part(plan, int(random.choice(alike)), budget, scratch).bytes
    return int(total)


def _solve_part(plan: Plan, number: int, budget: float, scratch: Scratch) -> _Kept:
    """What a task keeps; of one beyond the budget, the first children stand for all of them."""
    first, last = plan.starts_of(number)[[0, -1]].tolist()
    n_children, n_solved = last - first, FEW_LANES
    if plan.cost[number] <= budget or n_children <= n_solved or plan.picks_label:
        return _kept_of(gather(plan, number, scratch))
    starts = np.array([first, first + n_solved], np.int32)
    kept = _kept_of(gather_siblings(plan, starts, 0, scratch))
    # Features are shared by children: the more there are, the fewer are new.
    times, n_features = n_children / n_solved, plan.n_features
    rows = n_features * (1.0 - (1.0 - kept.rows / n_features) ** times)
    return _Kept(times * kept.entries, rows)


def _kept_of(task: Task) -> _Kept:
    chunks = [packed.chunk for packed in solve(task).whole]
    return _Kept(sum(len(chunk.entry) for chunk in chunks), sum(len(chunk.feature) for chunk in chunks))


def _entries_of_positives(plan: Plan) -> NDArray[np.float64]:
    """(n_tasks,) the entries of all rows that are positive for a child, for each child."""
    entries = np.diff(plan.rows.indptr)[plan.node_rows]
    sums = np.concatenate([[0], np.cumsum(entries)])
    first_node = plan.start[plan.task_chunk]
    return np.diff(sums[plan.node_indptr[first_node]]).astype(np.float64)
