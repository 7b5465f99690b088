"""Which files are meant: a name, a folder, a pattern, or several of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from labeltree.errors import DataError


class Files(tuple[str, ...]):
    """Names of files that have been found already."""


def are_files(X: Any) -> bool:
    """Whether something names files: a path, or a sequence of :class:`Path` objects, as strings are texts."""
    if isinstance(X, (str, Path, Files)):
        return True
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(each, Path) for each in X)


def find_files(X: str | Path | Sequence[str | Path]) -> Files:
    """The names of all files, those of a folder or a pattern in alphabetical order; ``-`` stays."""
    if isinstance(X, Files):
        return X
    named = [X] if isinstance(X, (str, Path)) else X
    return Files(file for each in named for file in _files_of(str(each)))


def _files_of(name: str) -> list[str]:
    if not name:
        raise DataError("an empty name is that of no file; give the path of a file, a folder or a pattern")
    if os.path.isdir(name):
        folder = Path(name)
        found = [str(path) for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder)]
        if not found:
            raise DataError(f"{name}: a folder without files; give one with data")
        return sorted(found)
    if glob.has_magic(name) and not os.path.exists(name):
        found = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path)]
        if not found:
            raise DataError(f"{name}: no file has such a name; check the pattern")
        return sorted(found)
    return [name]


def _is_hidden(path: Path, folder: Path) -> bool:
    """As systems leave them beside data: .git, _SUCCESS."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def parts_of_progress(
    report: Callable[[float], None] | None, files: Sequence[str]
) -> list[Callable[[float], None] | None]:
    """What hears of each of several files, and tells it as a part of them all, by their sizes."""
    if report is None or len(files) == 1:
        return [report] * len(files)
    sizes = [os.path.getsize(file) if os.path.isfile(file) else 0 for file in files]
    before, total = accumulate(sizes, initial=0), max(1, sum(sizes))
    return [_part_of(report, first / total, own / total) for first, own in zip(before, sizes, strict=False)]


def _part_of(report: Callable[[float], None], first: float, size: float) -> Callable[[float], None]:
    return lambda fraction: report(first + size * fraction)
