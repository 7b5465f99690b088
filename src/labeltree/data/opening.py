"""Files, compressed files and standard input as blocks of whole lines."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.columns import Columns
from labeltree.data.xz import XzStreams
from labeltree.errors import DataError
from labeltree.kernels.scan.lines import find_last_newline
from labeltree.storage.space import IN_MEMORY, Space

BLOCK_BYTES = 1 << 22

_USUAL_COLUMNS = Columns()

_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\x00"
# What is often given by mistake: how it begins, what it is, what to do.
_OTHER_KINDS = (
    (re.compile(rb"BZh[1-9]1AY&SY"), "a bzip2 file", "unpack it, or compress it with gzip or xz"),
    (re.compile(rb"\xff\xfe|\xfe\xff"), "a UTF-16 file", "save it as UTF-8"),
    (re.compile(rb"PK\x03\x04"), "a zip archive", "unpack it, and give a file of it"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "a zstd file", "unpack it, or compress it with gzip or xz"),
    (re.compile(rb".{5}\0{3}\{", re.DOTALL), "a model, not data", "give the model first, then the data"),
)
_PEEK_BYTES = 1 << 16  # read ahead to detect the format
_LONGEST_PEEK = 1 << 20  # a first line longer than this is judged by its beginning


class _Replayed(io.RawIOBase):
    """A stream whose first bytes have been read already: pipes cannot be rewound."""

    def __init__(self, first_bytes: bytes, stream: Any) -> None:
        self._first_bytes = first_bytes
        self._stream = stream
        self._readinto = _reader(stream)

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        if not self._first_bytes:
            return self._readinto(out) or 0
        n_bytes = min(len(out), len(self._first_bytes))
        out[:n_bytes] = self._first_bytes[:n_bytes]
        self._first_bytes = self._first_bytes[n_bytes:]
        return n_bytes


class Source:
    """An opened file or standard input (``-``), decompressed; ``first_bytes`` shows how it begins.

    ``columns`` are those of a table, which must have labels if they are wanted; ``progress`` hears before a
    block which fraction of a file has been read, as it lies on the disk. Rows that a format hands over all at
    once belong into ``space``.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        columns: Columns = _USUAL_COLUMNS,
        wants_labels: bool = False,
        progress: Callable[[float], None] | None = None,
        space: Space = IN_MEMORY,
    ) -> None:
        self.path, self.columns, self.wants_labels = str(path), columns, wants_labels
        self.space = space
        self.name = "standard input" if self.path == "-" else self.path
        self._progress = progress
        self._raw = _open_raw(self.path)
        try:
            stream = self._decompressed(self._raw)
            self.first_bytes = self._peek(stream)
            self._refuse_other_kinds()
        except BaseException:
            self.close()
            raise
        self._stream = _Replayed(self.first_bytes, stream)

    def _decompressed(self, raw: Any) -> Any:
        """Decided by the first bytes, so that standard input may be compressed and names need not tell.

        They are asked for only while undecided: more may never come.
        """
        magic = b""
        while any(kind.startswith(magic) and kind != magic for kind in (_GZIP_MAGIC, _XZ_MAGIC)):
            more = self._read(raw, len(_XZ_MAGIC) - len(magic))  # a pipe may give less
            if not more:
                break
            magic += more
        replayed = _Replayed(magic, raw)
        self.is_compressed = magic.startswith(_GZIP_MAGIC) or magic == _XZ_MAGIC
        if magic.startswith(_GZIP_MAGIC):
            return gzip.GzipFile(fileobj=replayed)
        if magic == _XZ_MAGIC:
            return XzStreams(replayed)
        for extension, kind in ((".gz", "gzip"), (".xz", "xz")):
            if self.path.lower().endswith(extension):
                raise DataError(
                    f"{self.name}: named {extension}, but its content is not {kind}; rename or compress it"
                )
        return replayed

    def _peek(self, stream: Any) -> bytes:
        """Bytes up to the end of the first line that is not blank, and whatever came with them."""
        peeked = b""
        while len(peeked) < _LONGEST_PEEK:
            # A model's length may have the byte of a line's end; text, which may come slowly, has no 0.
            is_cut_off = b"\0" in peeked and len(peeked) < 9
            if b"\n" in peeked.lstrip() and not is_cut_off:
                break
            more = self._read(stream, _PEEK_BYTES)
            if not more:
                break
            peeked += more
        return peeked

    def _refuse_other_kinds(self) -> None:
        for beginning, kind, fix in _OTHER_KINDS:
            if beginning.match(self.first_bytes):
                raise DataError(f"{self.name}: is {kind}; {fix}")

    def _read(self, stream: Any, n_bytes: int) -> bytes:
        part = bytearray(n_bytes)
        return bytes(part[: self._read_into(stream, memoryview(part))])

    def _read_into(self, stream: Any, out: memoryview) -> int:
        try:
            return _reader(stream)(out) or 0
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise DataError(
                f"{self.name}: damaged or truncated ({error}); get or compress it again"
            ) from error
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read ({error.strerror or error})") from error

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[NDArray[np.uint8]]:
        """Writable buffers of whole lines, at least ``block_bytes`` large where a line needs it."""
        storage = np.empty(block_bytes, np.uint8)
        n_filled = 0
        while n_read := self._read_into(self._stream, storage[n_filled:].data):
            cut = find_last_newline(storage, n_filled, n_filled + n_read) + 1
            n_filled += n_read
            if cut:
                rest = storage[cut:n_filled]
                n_filled = len(rest)
                carried = np.empty(max(block_bytes, 2 * n_filled), np.uint8)
                carried[:n_filled] = rest
                self._tell_progress()
                yield storage[:cut]
                storage = carried
            elif n_filled == len(storage):  # a line longer than the buffer
                longer = np.empty(2 * n_filled, np.uint8)
                longer[:n_filled] = storage
                storage = longer
        if n_filled:
            self._tell_progress()
            yield storage[:n_filled]

    def _tell_progress(self) -> None:
        if self._progress is None or self.path == "-":
            return
        status = os.fstat(self._raw.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size:  # the size of a pipe is unknown
            self.tell_progress(self._raw.tell() / status.st_size)

    def tell_progress(self, fraction: float) -> None:
        """Of the file so much has been read."""
        if self._progress is not None:
            self._progress(min(fraction, 1.0))

    def close(self) -> None:
        """Close the file; standard input is not ours to close."""
        if self.path != "-":
            self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _reader(stream: Any) -> Any:
    """The stream's method to fill a buffer.

    From a pipe, whatever has arrived is taken, so that rows come out as they come in. Decompressors would
    then hand over a few kilobytes at a time, so they fill the buffer.
    """
    if not isinstance(stream, io.BufferedReader):
        return stream.readinto

    def read_once(out: memoryview) -> int:  # readinto1 would wait for more once its own buffer is empty
        part = stream.read1(len(out))
        out[: len(part)] = part
        return len(part)

    return read_once


def _open_raw(path: str) -> Any:
    if path == "-":
        stdin = getattr(sys.stdin, "buffer", None)  # sys.stdin is None where the shell closed it: <&-
        if stdin is None or stdin.closed:
            raise DataError("standard input: is closed; pipe the data in, or give the name of a file")
        return stdin
    try:
        return open(path, "rb", buffering=0)  # blocks are large: a second buffer would only copy
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be opened ({reason}); check the name") from error
