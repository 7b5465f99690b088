"""Where large arrays live: in memory, or in files of a folder that are mapped.

A mapped file has no name: it is gone when the last array in it is, however the process ends. Kernels see the
same arrays in either place, so that results are the same bytes.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from labeltree.errors import DiskFullError, TrainingError

_SMALL = 1 << 20  # bytes of an array that is never worth a file
_SEGMENT = 1 << 26  # bytes of a file that smaller lasting arrays share, at most ...
_FIRST_SEGMENT = 1 << 22  # ... and of the first one; each is twice as large as the one before
_ALIGNMENT = 64
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MARGIN = 0.1  # of the memory, for what is not counted


class Space:
    """Memory, as much as there is."""

    @property
    def is_on_disk(self) -> bool:
        return False

    def most_bytes(self, wanted: int) -> int:
        """Of memory that are taken where so many would be."""
        return wanted

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for the work of the moment."""
        return np.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """So, of zeros."""
        return np.zeros(shape, dtype)

    def lasting(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array that will be needed for long: it takes no memory where there are files."""
        return np.empty(shape, dtype)

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array, or its copy where that makes it last without memory."""
        return array

    def joined(self, parts: list[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
        """One lasting array of all parts, which are let go on the way: together they are as large."""
        out = self.lasting(sum(len(part) for part in parts), dtype)
        end = len(out)
        while parts:
            part = parts.pop()
            out[end - len(part) : end] = part
            end -= len(part)
        return out


IN_MEMORY = Space()


class MappedSpace(Space):
    """A folder for lasting arrays, and memory for others as long as ``max_memory`` allows."""

    def __init__(self, folder: str | os.PathLike[str], max_memory: int = 0) -> None:
        """``max_memory`` is of the process, without what it maps of files; 0: no limit."""
        self.folder, self.max_memory = Path(folder), max_memory
        self._lock = threading.RLock()  # an array may be let go, by the collector, while it is held
        self._in_use = 0  # bytes of living arrays of `empty` and `zeros`
        self._others = 0  # of memory besides
        self._segment: mmap.mmap | None = None
        self._n_filled, self._next_segment = 0, min(_FIRST_SEGMENT, _SEGMENT)

    @property
    def is_on_disk(self) -> bool:
        return True

    def most_bytes(self, wanted: int) -> int:
        return min(wanted, int(self.max_memory * (1 - _MARGIN))) if self.max_memory else wanted

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        return self._working(shape, dtype, np.empty)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        return self._working(shape, dtype, np.zeros)  # a new file has zeros only

    def _working(self, shape: int | tuple[int, ...], dtype: DTypeLike, make: Any) -> NDArray[Any]:
        n_bytes = _n_bytes(shape, dtype)
        if not self._take(n_bytes):
            return self._mapped(shape, dtype, n_bytes)
        array = make(shape, dtype)
        if n_bytes >= _SMALL:
            weakref.finalize(array, self._give_back, n_bytes).atexit = False
        return array

    def _take(self, n_bytes: int) -> bool:
        """Whether there is memory for so much; then it is taken."""
        if n_bytes < _SMALL or not self.max_memory:
            return True
        with self._lock:
            if not self._in_use:
                self._others = anonymous_bytes()
            allowed = int(self.max_memory * (1 - _MARGIN)) - self._others
            if self._in_use + n_bytes > allowed:
                return False
            self._in_use += n_bytes
        return True

    def _give_back(self, n_bytes: int) -> None:
        if self.max_memory:
            with self._lock:
                self._in_use -= n_bytes

    def lasting(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        n_bytes = _n_bytes(shape, dtype)
        with self._lock:
            if n_bytes > self._next_segment // 2:
                return self._mapped(shape, dtype, n_bytes)
            start = -(-self._n_filled // _ALIGNMENT) * _ALIGNMENT
            if self._segment is None or start + n_bytes > len(self._segment):
                self._segment, start = map_new_file(self.folder, self._next_segment), 0
                self._next_segment = min(2 * self._next_segment, _SEGMENT)
            self._n_filled = start + n_bytes
            segment = self._segment
        return np.frombuffer(segment, np.uint8, n_bytes, start).view(dtype).reshape(shape)

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        copy = self.lasting(array.shape, array.dtype)
        copy[...] = array
        return copy

    def _mapped(self, shape: int | tuple[int, ...], dtype: DTypeLike, n_bytes: int) -> NDArray[Any]:
        return np.frombuffer(map_new_file(self.folder, n_bytes), dtype).reshape(shape)


def map_new_file(folder: Path, n_bytes: int) -> mmap.mmap:
    """A file without a name, of zeros. Its place on the disk is taken at once: where that is full while a
    mapped array is written, the system ends the process."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
            return mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        raise disk_error(folder, error, n_bytes) from error


def disk_error(folder: str | os.PathLike[str], error: OSError, n_bytes: int = 0) -> TrainingError:
    """What to do about a folder that cannot be written."""
    if error.errno in _NO_SPACE:
        wanted = f" ({n_bytes / 1e6:,.0f} MB more are needed now)" if n_bytes else ""
        return DiskFullError(
            f"{folder}: no space left{wanted}; what is finished stays there: make room and run the same "
            "command again, or choose a work dir on a larger disk"
        )
    return TrainingError(
        f"{folder}: cannot be written ({error.strerror or error}); choose a folder that you may write as the "
        "work dir"
    )


def _n_bytes(shape: int | tuple[int, ...], dtype: DTypeLike) -> int:
    n = shape if isinstance(shape, (int, np.integer)) else int(np.prod(shape, dtype=np.int64))
    return int(n) * np.dtype(dtype).itemsize


def anonymous_bytes() -> int:
    """Of this process: memory that is no file's; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
