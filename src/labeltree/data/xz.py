"""The content of xz files, all of it or an error."""

from __future__ import annotations

import io
import lzma
from typing import Any

_READ_BYTES = 1 << 16


class XzStreams(io.RawIOBase):
    """The streams of an xz file one after another; zeros may stand between them and after the last.

    ``lzma.LZMAFile`` ends in silence where a stream after the first is damaged or follows such zeros, and
    gives only the rows before it. Here what is neither a stream nor zeros is an :class:`lzma.LZMAError`, and
    a stream without its end an :class:`EOFError`.
    """

    def __init__(self, compressed: Any) -> None:
        self._compressed = compressed
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        n_filled = 0
        while n_filled < len(out):
            compressed = self._next_input()
            if compressed is None:
                break
            part = self._decompressor.decompress(compressed, len(out) - n_filled)
            out[n_filled : n_filled + len(part)] = part
            n_filled += len(part)
        return n_filled

    def _next_input(self) -> bytes | None:
        """What the decompressor needs to go on, which may be nothing; None at the end of the file."""
        if self._decompressor.eof:
            beginning = self._next_stream()
            if not beginning:
                return None
            self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            return beginning
        if not self._decompressor.needs_input:
            return b""
        more: bytes = self._compressed.read(_READ_BYTES)
        if not more:
            raise EOFError("it ends inside a stream")
        return more

    def _next_stream(self) -> bytes:
        """How the next stream begins; nothing at the end of the file."""
        following: bytes = self._decompressor.unused_data
        while not following.lstrip(b"\0"):
            following = self._compressed.read(_READ_BYTES)
            if not following:
                return b""
        return following.lstrip(b"\0")
