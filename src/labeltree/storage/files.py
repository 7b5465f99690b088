"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: a file that is open cannot be removed there
    fcntl = None  # type: ignore[assignment]

_BUFFER_BYTES = 1 << 20
_HOST = re.sub("[^A-Za-z0-9]", "", os.uname().nodename)[:64] if hasattr(os, "uname") else ""
_TEMPORARY = re.compile(r"\.labeltree-(?:(?P<host>[A-Za-z0-9]*)-)?[0-9a-f]{16}\.tmp")
_OLD_SECONDS = 24 * 3600.0


def write_whole(
    path: str | os.PathLike[str],
    chunks: Iterable[bytes | memoryview],
    *,
    mode: int | None = None,
    durable: bool = True,
) -> None:
    """Make ``path`` a file of these chunks, by :func:`whole_file`."""
    with whole_file(path, mode=mode, durable=durable) as file:
        for chunk in chunks:
            file.write(chunk)


@contextlib.contextmanager
def whole_file(
    path: str | os.PathLike[str], *, mode: int | None = None, durable: bool = True
) -> Iterator[IO[bytes]]:
    """A file to fill, which becomes ``path`` at the end: that holds its old content or all of the new.

    The content goes to a temporary name in the same folder, is flushed to the disk, then renamed. A link
    keeps pointing to the file; its target is replaced. What goes wrong is an :class:`OSError`. The temporary
    files of writers that were killed are removed from the folder. ``mode`` are permissions other than those
    that the umask gives, where the system has them. What need not be ``durable`` is not flushed: after a
    power cut it may be damaged.
    """
    target = Path(os.path.realpath(path))
    _remove_abandoned(target.parent)
    with _named(target), _temporary_file(target.parent) as (temporary, file):
        yield file
        file.flush()
        if mode is not None and os.name == "posix":
            os.chmod(temporary, mode)
        if durable:
            os.fsync(file.fileno())
        if fcntl is None:  # Windows renames no open file; elsewhere the lock is held until the name is gone
            file.close()
        os.replace(temporary, target)
    if durable:
        with contextlib.suppress(OSError):  # the new name should survive a power cut, where the system can
            sync_folder(target.parent)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """A full disk is told with the file for which there was no room; nobody knows the temporary name."""
    try:
        yield
    except OSError as error:
        if error.filename is None or _TEMPORARY.fullmatch(os.path.basename(os.fsdecode(error.filename))):
            error.filename = str(path)
        raise


def check_can_write(folder: Path) -> None:
    """Write an empty file there, which is removed: what the system says of a folder is not all. What goes
    wrong is an :class:`OSError`."""
    with _temporary_file(folder):
        pass


@contextlib.contextmanager
def _temporary_file(folder: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file, locked as long as it is open; it is gone at the end unless it was renamed."""
    temporary, file = _open_locked(folder)
    try:
        yield temporary, file
    finally:  # of SystemExit and Ctrl-C too
        with contextlib.suppress(OSError):  # what could not be written is tried once more
            file.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _open_locked(folder: Path) -> tuple[Path, IO[bytes]]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = folder / f".labeltree-{_HOST}-{secrets.token_hex(8)}.tmp"
        # Not tempfile: its files are private (0600), while these get the mode that the umask gives.
        file = os.fdopen(os.open(temporary, flags, 0o666), "wb", buffering=_BUFFER_BYTES)
        if _is_kept(temporary, file):
            return temporary, file
        file.close()


def _is_kept(temporary: Path, file: IO[bytes]) -> bool:
    """Lock a new file, unless another writer took it for abandoned before that."""
    is_locked = lock_file(file.fileno())
    return is_locked is None or (is_locked and temporary.exists())


def lock_file(descriptor: int) -> bool | None:
    """Whether the file is locked now, or another process has it; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # not on this file system; then nobody else can have one either
        return None
    return True


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of writers that no longer live, and of no others.

    A living writer holds a lock. Where locks may not reach, on another host or without them, a file is left
    alone for a day: writers go on writing, and its time tells when they last did.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # gone already, or another user's
                    is_old = time.time() - entry.stat().st_mtime > _OLD_SECONDS
                    if is_old or match["host"] == _HOST:
                        _remove_unused(entry.path, is_old=is_old)


def _remove_unused(path: str, *, is_old: bool) -> None:
    """Remove a file unless a writer has it or, where no lock tells, it is not old."""
    if fcntl is None:
        if is_old:
            os.unlink(path)  # refused while it is open
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        is_locked = lock_file(descriptor)
        if is_locked or (is_locked is None and is_old):
            os.unlink(path)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Names of new files survive a power cut after this."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
