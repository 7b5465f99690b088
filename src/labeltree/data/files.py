"""Which files are meant: a name, a folder, a pattern, or several of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labeltree.errors import DataError


def are_files(X: Any) -> bool:
    """Whether something names files: a path, or a sequence of :class:`Path` objects, as strings are texts."""
    if isinstance(X, (str, Path)):
        return True
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(each, Path) for each in X)


def find_files(X: str | Path | Sequence[str | Path]) -> list[str]:
    """The names of all files, those of a folder or a pattern in alphabetical order; ``-`` stays."""
    named = [X] if isinstance(X, (str, Path)) else X
    return [file for each in named for file in _files_of(str(each))]


def _files_of(name: str) -> list[str]:
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


def part_of_progress(
    report: Callable[[float], None] | None, files: Sequence[str], number: int
) -> Callable[[float], None] | None:
    """What hears of one of several files, and tells it as a part of them all, by their sizes."""
    if report is None or len(files) == 1:
        return report
    sizes = [os.path.getsize(file) if os.path.isfile(file) else 0 for file in files]
    before, own, total = sum(sizes[:number]), sizes[number], max(1, sum(sizes))
    return lambda fraction: report((before + own * fraction) / total)
