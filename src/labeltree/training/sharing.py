"""Training shared out among processes or machines, with nothing but a folder that all of them see.

:func:`make_tasks` reads the data and builds the trees, :func:`do_tasks` does some of the tasks, anywhere, in
any order, and :func:`merge` makes the model of them. Each can be repeated: what is there is not done again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labeltree import __version__
from labeltree.config import AskedConfig, Config
from labeltree.data.rows import TrainingRows
from labeltree.errors import ParameterError, WorkDirError, show
from labeltree.experts.job import Callback, Work
from labeltree.experts.tree_training import PROFILES, build_trees, kept_fit
from labeltree.memory_size import check_memory
from labeltree.model import Model
from labeltree.nodes import KINDS
from labeltree.nodes.kind import Parts
from labeltree.parallel import Pool
from labeltree.storage.card import check_card
from labeltree.storage.space import MappedSpace
from labeltree.storage.work_dir import WorkDir
from labeltree.training.driver import (
    Prepared,
    Source,
    check_can_share,
    check_choices,
    make_job,
    merge_config,
    prepare,
    train_prepared,
)
from labeltree.training.kept_rows import kept_rows
from labeltree.training.means import Means, check_folder
from labeltree.training.parsing import READ, read_file
from labeltree.trees.profiles import keep_profiles

TASKS = "tasks"  # what there is to do, in the work dir
_SHOWN = 10  # missing tasks in a message


def make_tasks(source: Source, asked: AskedConfig, means: Means, report: Callback) -> int:
    """Read the data and build the trees; returns how many tasks there are."""
    asked = merge_config(asked)
    check_choices(asked.config)
    check_can_share(asked.config)
    assert means.work is not None
    folder = means.work.folder
    prepared = prepare(source, asked, means, report)
    counts = {}
    for built in build_trees(prepared.job):
        kind, given = kept_fit(folder, built.name, prepared.job.rows, means.pool)
        counts[built.name] = KINDS[kind].parts(given)[0]
    folder.write(TASKS, {}, {"parts": counts})
    return sum(counts.values())


def do_tasks(
    work_dir: str | os.PathLike[str],
    numbers: Iterable[int] | None = None,
    *,
    threads: int = 1,
    max_memory: Any = None,
    tell: Callable[[int], None] = lambda number: None,
) -> int:
    """Do these tasks of a plan, or all; returns how many there are in the plan. Each that is done is told."""
    folder = open_plan(work_dir)
    all_tasks = _tasks(folder)
    chosen = range(len(all_tasks)) if numbers is None else list(numbers)
    for number in chosen:
        if not 0 <= number < len(all_tasks):
            raise ParameterError(
                f"task must be from 0 to {len(all_tasks) - 1}, as {folder.path} has {len(all_tasks)} tasks, "
                f"but is {show(number)}"
            )
    opened = OpenedFits(folder.path, max_memory)

    def do(number: int) -> None:
        name, part = all_tasks[number]
        opened.do_part(name, part)
        tell(number)

    with Pool(threads) as pool:
        pool.map(do, chosen)
    return len(all_tasks)


def open_plan(work_dir: str | os.PathLike[str]) -> WorkDir:
    """The folder of a plan, which must be complete."""
    folder = WorkDir(check_folder(work_dir))
    if not folder.has(TASKS):
        raise WorkDirError(
            f"{folder.path}: there is no plan in it, or it is not complete; run labeltree plan first"
        )
    _config_of(folder)
    return folder


def _tasks(folder: WorkDir) -> list[tuple[str, int]]:
    """The fit of each task, and which part of it."""
    parts: Mapping[str, int] = folder.read(TASKS)[1]["parts"]
    return [(name, number) for name, n_parts in parts.items() for number in range(n_parts)]


class OpenedFits:
    """Fits of a work dir, opened once for all their parts that a process does."""

    def __init__(self, path: str | os.PathLike[str], max_memory: Any = None) -> None:
        self._folder = WorkDir(path)
        most = check_memory(max_memory)
        self._pool = Pool(1, MappedSpace(path, most) if most else None)
        self._lock = threading.Lock()
        self._name = ""  # of what is opened: the plan of another tree is let go
        self._do: Callable[[int], None] = lambda number: None
        self._rows: TrainingRows | None = None

    def do_part(self, name: str, number: int) -> None:
        """Unless it is there; any thread may."""
        with self._lock:
            if name != self._name:
                self._name, self._do = name, self._open(name)
            do = self._do
        do(number)

    def _open(self, name: str) -> Callable[[int], None]:
        """What does a part of that name: of the files, of the profiles, or of a fit."""
        config, pool = _config_of(self._folder), self._pool
        if name == READ:
            return lambda number: read_file(self._folder, number, config, pool.space)
        if self._rows is None:
            data, weight = kept_rows(self._folder, config, verify=False)
            self._rows = data.training_rows(weight)
        X, Y, _ = self._rows
        if name == PROFILES:
            return lambda number: keep_profiles(X, Y, pool, Parts(self._folder, name), number)
        kind, given = kept_fit(self._folder, name, self._rows, pool)
        return KINDS[kind].parts(given)[1]


def _config_of(folder: WorkDir) -> Config:
    """Of the training whose work is there. Another version may have other parts, so it must be this one."""
    found = folder.manifest
    if not found:
        raise WorkDirError(
            f"{folder.path}: no work of a training is in it; who shares a training out and who does its "
            "parts must see the same folder"
        )
    if found["labeltree"] != __version__:
        raise WorkDirError(
            f"{folder.path}: was begun with labeltree {found['labeltree']}, but this is {__version__}; use "
            "one version for all of it"
        )
    return Config(**found["config"])


def merge(
    work_dir: str | os.PathLike[str],
    means: Means,
    report: Callback,
    card: Mapping[str, str] | None = None,
) -> Model:
    """The model of a plan whose tasks are all done."""
    folder = open_plan(work_dir)
    tasks = _tasks(folder)
    missing = [number for number, (name, part) in enumerate(tasks) if not Parts(folder, name).has_sound(part)]
    if missing:
        told = ", ".join(map(str, missing[:_SHOWN])) + ", ..." * (len(missing) > _SHOWN)
        raise WorkDirError(
            f"{folder.path}: {len(missing)} of {len(tasks)} tasks are not done: {told}; run labeltree work "
            "for them"
        )
    config = _config_of(folder)
    data, weight = kept_rows(folder, config)
    job = make_job(data, data.training_rows(weight), config, means.pool)
    job = job._replace(report=report, work=Work(folder))
    return train_prepared(Prepared(data, job), check_card({} if card is None else card))
