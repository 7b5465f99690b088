"""Tasks are plain values: solved anywhere and in any order, they give the same bytes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import Problem, labelled, random_problem
from support.sparse_problems import fit, numbers_of, plan_of, same_bytes
from support.strategies import chain_tree, grow_tree

from labeltree.config import Config
from labeltree.nodes.sparse.fitting import assemble
from labeltree.nodes.sparse.gathering import Scratch
from labeltree.nodes.sparse.solvers import SOLVERS
from labeltree.nodes.sparse.tasks import Task, gather, solve

WAYS: dict[str, dict[str, Any]] = {
    "squared-hinge": dict(),
    "log": dict(loss="log"),
    "active": dict(solver="active"),
    "active-hinge": dict(solver="active", loss="hinge"),
    "online": dict(solver="sgd"),
    "softmax": dict(link="hsm"),
    "online-softmax": dict(link="hsm", solver="sgd"),
}


def mixed_problem() -> Problem:
    """Siblings in several chunks, pairs, and enough rows that some are held out."""
    tree = grow_tree(list(range(80)), [(0, 70), (1, 2), (2, 2), (0, 9)])
    return labelled(random_problem(tree, 900, seed=2, n_features=30))


def tasks_of(problem: Problem, config: Config) -> list[Task]:
    plan = plan_of(problem, config)
    scratch = Scratch(plan)
    return [gather(plan, number, scratch) for number in numbers_of(plan)]


def arrays_in(value: Any) -> Iterator[NDArray[Any]]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_in(part)


@pytest.fixture(scope="module")
def other_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("way", WAYS)
def test_another_process_finds_the_same_bytes(way: str, other_process: ProcessPoolExecutor) -> None:
    tasks = tasks_of(mixed_problem(), Config(**WAYS[way], max_iterations=5, epochs=3))
    assert any(task.material.examples.held_out.any() for task in tasks)
    for task, found in zip(tasks, other_process.map(solve, tasks), strict=True):
        expected = solve(task)
        pairs = list(zip(arrays_in(found), arrays_in(expected), strict=True))
        assert len(pairs) >= 12
        assert all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def test_every_way_is_among_them() -> None:
    problems = (mixed_problem(), labelled(random_problem(chain_tree(5), 100, seed=1)))
    tasks = [task for way in WAYS.values() for one in problems for task in tasks_of(one, Config(**way))]
    assert {task.solver for task in tasks} == set(SOLVERS.values())


@pytest.mark.parametrize("way", WAYS)
def test_a_task_holds_nothing_of_the_whole_data(way: str) -> None:
    plan = plan_of(mixed_problem(), Config(**WAYS[way]))
    whole = list(arrays_in(plan))
    for number in numbers_of(plan):
        task = gather(plan, number, Scratch(plan))
        assert not any(np.may_share_memory(own, all_) for own in arrays_in(task) for all_ in whole)
        assert isinstance(pickle.loads(pickle.dumps(task)), Task)


@pytest.mark.parametrize("way", WAYS)
def test_tasks_may_be_solved_in_any_order(way: str) -> None:
    """And more than once: nothing of one is left in the scratch for the next."""
    problem, config = mixed_problem(), Config(**WAYS[way], max_iterations=5, epochs=2)
    expected = fit(problem, config)[0]
    plan = plan_of(problem, config)
    scratch, solved = Scratch(plan), {}
    numbers = numbers_of(plan)
    for number in [*numbers, *reversed(numbers)]:
        solved[number] = solve(gather(plan, number, scratch))
    without_held_out, parameters = assemble(plan, solved.items())
    assert same_bytes(parameters, expected.parameters)
    assert without_held_out is not None
    assert same_bytes(without_held_out, expected.without_held_out)
