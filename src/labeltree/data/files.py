"""Which files are meant: a name, a folder, a pattern, or several of them."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from labeltree.errors import DataError, show

_log = logging.getLogger(__name__)


class Files(tuple[str, ...]):
    """Names of files that have been found already, and what someone should know of them."""

    notices: tuple[str, ...] = ()


def are_files(X: Any) -> bool:
    """Whether something names files: a path, or a sequence of :class:`Path` objects, as strings are texts."""
    if isinstance(X, (str, Path, Files)):
        return True
    ends = (X[0], X[-1]) if isinstance(X, (list, tuple)) and len(X) else ()
    if not any(isinstance(each, Path) for each in ends):
        return False  # without a look at each of a million texts
    is_path = [isinstance(each, Path) for each in X]
    if not all(is_path):
        other = X[is_path.index(False)]
        raise DataError(
            f"X has pathlib.Path objects and others, such as {show(other)}: of several files each is a Path, "
            "as strings in a list are texts"
        )
    return True


def find_files(X: str | Path | Sequence[str | Path]) -> Files:
    """The names of all files, those of a folder or a pattern in alphabetical order; ``-`` stays."""
    if isinstance(X, Files):
        return X
    named, notices = [X] if isinstance(X, (str, Path)) else X, list[str]()
    files = Files(file for each in named for file in _files_of(str(each), notices))
    files.notices = (*notices, *_repeated(files))
    for notice in files.notices:
        _log.warning("%s", notice)
    return files


def _repeated(files: Files) -> Iterator[str]:
    """Rows that are read twice count twice, which hardly anybody means; a pipe can only be read once."""
    known: dict[str, str] = {}
    for file in files:
        place = os.path.realpath(file) if file != "-" and os.path.exists(file) else file
        if place == "-" and place in known:
            raise DataError("standard input (-) is given twice, but can be read only once; give it once")
        if place in known:
            also = "" if known[place] == file else f", the same as {known[place]},"
            yield f"{file}{also} is given more than once: its rows count as often"
        known.setdefault(place, file)


def _files_of(name: str, notices: list[str]) -> list[str]:
    if not name:
        raise DataError("an empty name is that of no file; give the path of a file, a folder or a pattern")
    if os.path.isdir(name):
        folder = Path(name)
        entries = [path for path in folder.rglob("*") if not _is_hidden(path, folder)]
        notices += [
            f"{path}: left out, a link to {os.readlink(path)}, which is not there"
            for path in entries
            if path.is_symlink() and not path.exists()
        ]
        found = [str(path) for path in entries if path.is_file()]
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
