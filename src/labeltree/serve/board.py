"""Memory that workers share, where each writes what it has counted, so that any of them can tell of all."""

from __future__ import annotations

import mmap
import struct
import zlib

import msgspec

from labeltree.serve.numbers import Numbers, added

_SLOT_BYTES = 1 << 16
_HEAD = struct.Struct("<II")  # length and checksum of what follows
_TRIES = 20


class Board:
    """A slot for each worker. What a worker that died has counted stays there for the next one."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._memory = mmap.mmap(-1, n_slots * _SLOT_BYTES)

    def write(self, slot: int, numbers: Numbers) -> None:
        data = msgspec.msgpack.encode(numbers)
        if len(data) > _SLOT_BYTES - _HEAD.size:  # what stands there is old, but right
            return
        start = slot * _SLOT_BYTES
        head = _HEAD.pack(len(data), zlib.crc32(data))
        self._memory[start : start + len(head) + len(data)] = head + data

    def read(self, slot: int) -> Numbers | None:
        """What was written last; None if nothing was, or if it is being written again and again."""
        start = slot * _SLOT_BYTES
        for _ in range(_TRIES):
            length, checksum = _HEAD.unpack_from(self._memory, start)
            first = start + _HEAD.size
            data = self._memory[first : first + min(length, _SLOT_BYTES - _HEAD.size)]
            if length and zlib.crc32(data) == checksum:
                return msgspec.msgpack.decode(data, type=Numbers)
        return None

    def total(self) -> Numbers:
        """Of all workers."""
        return added(found for slot in range(self.n_slots) if (found := self.read(slot)) is not None)

    @property
    def is_ready(self) -> bool:
        """Whether all workers are."""
        found = [self.read(slot) for slot in range(self.n_slots)]
        return all(numbers is not None and numbers.is_ready for numbers in found)
