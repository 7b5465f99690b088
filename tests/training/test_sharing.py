"""A training shared out by a folder: in any order, by any number, as often as one likes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.small_data import make_toy, write_fasttext
from support.work import MANY_TASKS, cut, flip_bit, merged, model_bytes, plan_in

import labeltree
from labeltree.errors import ParameterError, WorkDirError
from labeltree.training import sharing
from labeltree.training.sharing import OpenedFits, do_tasks

TOY = make_toy(200)
HOW: dict[str, Any] = dict(trees=2, **MANY_TASKS)


@pytest.fixture(scope="module")
def expected() -> bytes:
    return model_bytes(labeltree.train(TOY.texts, TOY.Y, threads=1, **HOW))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan", TOY.texts, TOY.Y, **HOW)
    return tmp_path / "plan"


def test_any_order_and_twice(plan: Path, expected: bytes) -> None:
    n_tasks = do_tasks(plan, [])
    assert n_tasks > 10
    do_tasks(plan, [3, 3, 0])
    do_tasks(plan, range(n_tasks - 1, 0, -2), max_memory="256MB")
    written = {path: path.stat().st_mtime_ns for path in plan.glob("tree-*-*-*.part")}
    told: list[int] = []
    assert do_tasks(plan, threads=3, tell=told.append) == n_tasks
    assert sorted(told) == list(range(n_tasks))
    assert {path: path.stat().st_mtime_ns for path in written} == written, "what is done stays"
    assert model_bytes(merged(plan)) == expected
    assert model_bytes(merged(plan)) == expected


def test_threads_of_different_trees(plan: Path, expected: bytes) -> None:
    """Tasks of two trees by turns: none may take the plan of the other's tree."""
    n_tasks = do_tasks(plan, [])
    half = n_tasks // 2
    turns = [number for first in range(half) for number in (first, half + first)]
    do_tasks(plan, turns, threads=4)
    do_tasks(plan)
    assert model_bytes(merged(plan)) == expected


def test_planned_again(plan: Path, expected: bytes) -> None:
    n_tasks = do_tasks(plan)
    assert plan_in(plan, TOY.texts, TOY.Y, **HOW) == n_tasks
    assert model_bytes(merged(plan)) == expected


def test_a_plan_can_be_trained_and_a_training_planned(plan: Path, expected: bytes) -> None:
    do_tasks(plan, [1, 2])
    assert model_bytes(labeltree.train(TOY.texts, TOY.Y, threads=1, work_dir=plan, **HOW)) == expected
    plan_in(plan, TOY.texts, TOY.Y, **HOW)
    assert model_bytes(merged(plan)) == expected


def test_missing_tasks_are_named(plan: Path) -> None:
    n_tasks = do_tasks(plan, [])
    with pytest.raises(
        WorkDirError, match=rf"{n_tasks} of {n_tasks} tasks .* 0, 1, 2, 3, .*, 9, \.\.\.; run"
    ):
        merged(plan)
    do_tasks(plan, [number for number in range(n_tasks) if number not in (2, 7)])
    with pytest.raises(WorkDirError, match=rf"2 of {n_tasks} tasks are not done: 2, 7; run labeltree work"):
        merged(plan)


@pytest.mark.parametrize("damage", [cut, flip_bit])
def test_damaged_tasks_are_done_again(plan: Path, expected: bytes, damage: Any) -> None:
    do_tasks(plan)
    damage(sorted(plan.glob("tree-1-*-*.part"))[2])
    with pytest.raises(WorkDirError, match=r"1 of .* tasks are not done"):
        merged(plan)
    do_tasks(plan)
    damage(plan / "tree-0-sparse.part")
    assert model_bytes(merged(plan)) == expected


@pytest.mark.parametrize("name", ["rows", "tasks", "tree-0-sparse"])
def test_a_damaged_plan_is_named(plan: Path, name: str) -> None:
    flip_bit(plan / f"{name}.part", 200)
    with pytest.raises(WorkDirError, match=rf"{name}.part: cannot be used"):
        do_tasks(plan, [0])
    plan_in_again = plan / f"{name}.part"
    plan_in_again.unlink()
    plan_in(plan, TOY.texts, TOY.Y, **HOW)
    do_tasks(plan, [0])


@pytest.mark.parametrize("number", [-1, 1000])
def test_a_task_that_is_none(plan: Path, number: int) -> None:
    with pytest.raises(ParameterError, match=rf"task must be from 0 to \d+, .* but is {number}"):
        do_tasks(plan, [0, number])
    assert not list(plan.glob("tree-*-*-*.part")), "nothing is done before"


def test_no_plan(tmp_path: Path) -> None:
    labeltree.train(TOY.texts, TOY.Y, threads=1, work_dir=tmp_path / "work")
    for folder in (tmp_path / "nothing", tmp_path / "work"):
        with pytest.raises(WorkDirError, match="there is no plan in it"):
            do_tasks(folder)
    assert not (tmp_path / "nothing").exists()


def test_another_version_is_refused(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "__version__", "99.0")
    for action in (lambda: do_tasks(plan), lambda: merged(plan), lambda: OpenedFits(plan).do_part("read", 0)):
        with pytest.raises(WorkDirError, match=r"was begun with labeltree .*, but this is 99.0"):
            action()


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    """As a worker sees it whose disk is another one."""
    with pytest.raises(WorkDirError, match=r"no work of a training is in it; .* must see the same folder"):
        OpenedFits(tmp_path).do_part("tree-0-sparse", 0)


def test_the_config_comes_from_the_plan(plan: Path) -> None:
    assert json.loads((plan / "work.json").read_text())["config"]["trees"] == 2
    do_tasks(plan)
    assert merged(plan).config.trees == 2


@pytest.mark.parametrize("nodes", ["dense", "direct", "both"])
def test_what_one_machine_must_do_is_refused(nodes: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="nodes are trained on one machine only"):
        plan_in(tmp_path / "plan", TOY.texts, TOY.Y, nodes=nodes)


def test_no_tree_no_task(tmp_path: Path) -> None:
    """Neighbours need none."""
    assert plan_in(tmp_path / "plan", TOY.texts, TOY.Y, trees=0) == 0
    assert do_tasks(tmp_path / "plan") == 0
    found = model_bytes(merged(tmp_path / "plan"))
    assert found == model_bytes(labeltree.train(TOY.texts, TOY.Y, threads=1, trees=0))


def test_files(tmp_path: Path, expected: bytes) -> None:
    path = tmp_path / "data.txt"
    path.write_text(write_fasttext(TOY))
    plan_in(tmp_path / "plan", path, **HOW)
    path.unlink()
    do_tasks(tmp_path / "plan")
    assert merged(tmp_path / "plan").predict(TOY.texts[:3])
