"""What a training may use: threads, memory, a folder for what does not fit and for what is finished."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from labeltree.errors import ParameterError, show
from labeltree.experts.job import Work
from labeltree.memory_size import check_memory
from labeltree.parallel import Pool
from labeltree.storage.space import MappedSpace, disk_error
from labeltree.storage.work_dir import WorkDir
from labeltree.training.cluster import parts_on


class Means(NamedTuple):
    pool: Pool  # threads, and where large arrays live
    work: Work | None  # where finished work is kept, if anywhere


@contextlib.contextmanager
def open_means(
    threads: int,
    work_dir: str | os.PathLike[str] | None = None,
    max_memory: Any = None,
    client: Any = None,
) -> Iterator[Means]:
    """Without a work dir or a limit of memory, all is in memory. A limit alone has a temporary folder.

    The workers of a client, which needs a work dir, do what has parts.
    """
    most = check_memory(max_memory)
    if work_dir is None and not most:
        with Pool(threads) as pool:
            yield Means(pool, None)
    elif work_dir is None:
        folder = tempfile.TemporaryDirectory(prefix="labeltree-")
        with folder as name, Pool(threads, MappedSpace(name, most)) as pool:
            yield Means(pool, None)
    else:
        work = WorkDir(check_folder(work_dir))
        with work.alone(), Pool(threads, MappedSpace(work.path, most)) as pool:
            elsewhere = None if client is None else parts_on(client, work.path, most)
            yield Means(pool, Work(work, elsewhere))


def check_folder(work_dir: Any) -> Path:
    """The path of a folder that may be there already."""
    is_name = isinstance(work_dir, (str, os.PathLike)) and str(work_dir) and "\0" not in str(work_dir)
    if not is_name:
        raise ParameterError(f"work_dir must be the path of a folder, but is {show(work_dir)}")
    path = Path(work_dir)
    try:
        is_file = path.exists() and not path.is_dir()
    except OSError as error:
        raise disk_error(path, error) from error
    if is_file:
        raise ParameterError(f"work_dir {path}: is a file; give a folder")
    return path
