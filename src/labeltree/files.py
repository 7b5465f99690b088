"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

_BUFFER_BYTES = 1 << 20


def write_whole(path: str | os.PathLike[str], chunks: Iterable[bytes | memoryview]) -> None:
    """Make ``path`` a file of these chunks: it holds either its old content or all of the new, never a part.

    The content goes to a temporary name in the same folder, is flushed to the disk, then renamed. A link
    keeps pointing to the file; its target is replaced. What goes wrong is an :class:`OSError`.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".labeltree-{secrets.token_hex(8)}.tmp")
    try:
        _write_synced(temporary, chunks)
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C too must leave nothing behind
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _write_synced(temporary: Path, chunks: Iterable[bytes | memoryview]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Not tempfile: its files are private (0600), while these get the mode that the umask gives.
    with os.fdopen(os.open(temporary, flags, 0o666), "wb", buffering=_BUFFER_BYTES) as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
