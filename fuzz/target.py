"""What a fuzz target is, and a file for each of its inputs."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Target(NamedTuple):
    check: Callable[[bytes], bool]  # whether an input is accepted; raises what is not allowed to happen
    seeds: Callable[[], list[bytes]]  # inputs to begin with
    words: tuple[bytes, ...] = ()  # what inputs are made of
    mutate: Callable[[bytes, int, int], bytes] | None = None  # an input, its greatest length, a seed
    longest: int = 4096  # bytes of an input


@cache
def _folder() -> Path:
    memory = Path("/dev/shm")  # files that never see a disk, where there is such a folder
    folder = Path(tempfile.mkdtemp(prefix="labeltree-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_numbers = itertools.count()


@contextmanager
def file_of(content: bytes, suffix: str = "") -> Iterator[Path]:
    """A new file each time: a model stays mapped as long as anybody has it."""
    path = _folder() / f"input{next(_numbers)}{suffix}"
    path.write_bytes(content)
    try:
        yield path
    finally:
        path.unlink()
