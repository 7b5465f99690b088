"""Trainings in a work dir, and models compared by their bytes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from labeltree.config import ask_config
from labeltree.data.formats import USUAL_READING
from labeltree.experts.job import Progress
from labeltree.model import Model
from labeltree.storage import space
from labeltree.training.driver import Source
from labeltree.training.means import open_means
from labeltree.training.sharing import do_tasks, make_tasks, merge

MANY_TASKS: dict[str, Any] = dict(arity=2, max_leaves=2)  # of a few labels


def model_bytes(model: Model) -> bytes:
    """The file that it would be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.read_bytes()


def map_all(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have arrays of a few bytes mapped, as if they were large; returns the sizes of files to come."""
    sizes: list[int] = []
    real = space.map_new_file

    def counted(folder: Path, n_bytes: int) -> Any:
        sizes.append(n_bytes)
        return real(folder, n_bytes)

    monkeypatch.setattr(space, "_SMALL", 1)
    monkeypatch.setattr(space, "_SEGMENT", 1 << 12)
    monkeypatch.setattr(space, "map_new_file", counted)
    return sizes


def ignore(progress: Progress) -> None:
    pass


def plan_in(folder: Path, X: Any, Y: Any = None, *, sample_weight: Any = None, **parameters: Any) -> int:
    """As `labeltree plan`; returns the number of tasks."""
    source = Source(X, Y, None, sample_weight, USUAL_READING, False)
    with open_means(1, folder) as means:
        return make_tasks(source, ask_config(parameters), means, ignore)


def merged(folder: Path) -> Model:
    with open_means(1, folder) as means:
        return merge(folder, means, ignore)


def shared_out(folder: Path, X: Any, Y: Any = None, **how: Any) -> Model:
    """Planned, done by two threads in the opposite order, and merged."""
    n_tasks = plan_in(folder, X, Y, **how)
    do_tasks(folder, reversed(range(n_tasks)), threads=2)
    return merged(folder)


def flip_bit(path: Path, place: int = -100) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)
