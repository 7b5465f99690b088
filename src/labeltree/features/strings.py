"""Tables of distinct strings with ids, for words and for labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import pointers, read_only
from labeltree.errors import CorruptedModelError, DataError
from labeltree.kernels.text.packing import Pieces, pack_spans
from labeltree.kernels.text.strings import (
    EMPTY,
    StringArrays,
    find_strings,
    hash_secretly,
    insert_strings,
    measure_strings,
    place_strings,
    write_strings,
)
from labeltree.parameter import MOST_IDS
from labeltree.wording import counted

_MAX_RECORD_WORDS = 2**32 - 1  # a slot keeps 32 bits of a record's place
_SHOWN = 3


class StringTable:
    """Byte strings numbered from 0 in the order in which they were first inserted."""

    def __init__(self, n_strings: int = 512, n_record_words: int = 2048) -> None:
        """An empty table for some strings; it grows when it must."""
        slots = np.full(_slots_for(n_strings), EMPTY, np.uint64)
        self.arrays = StringArrays(
            np.empty(n_record_words, np.uint64),
            np.zeros(n_strings + 1, np.int64),
            np.empty(n_strings, np.uint64),
            slots,
            np.zeros(2, np.int64),
        )
        # Of the hashes by which strings are placed; None while those of the text will do, which anyone can
        # compute. Ids never depend on it.
        self._key: NDArray[np.uint64] | None = None

    @classmethod
    def from_strings(cls, strings: Sequence[str | bytes]) -> StringTable:
        """String k gets id k; a string that is listed twice is an error."""
        return cls._from_pieces(pack_strings(strings), "strings", DataError)

    @classmethod
    def from_tensors(
        cls, data: NDArray[np.uint8], offsets: NDArray[np.int64], name: str = "strings", is_text: bool = True
    ) -> StringTable:
        """The table whose :meth:`tensors` these are; ``name`` is for messages."""
        _check_tensors(data, offsets, name)
        if is_text and not is_utf8(data, offsets):
            raise CorruptedModelError(f"{name}: not valid UTF-8")
        return cls._from_pieces(_pack(data, offsets), name, CorruptedModelError)

    @classmethod
    def _from_pieces(cls, pieces: Pieces, name: str, error: type[Exception]) -> StringTable:
        n = len(pieces.length)
        table = cls(n, n + len(pieces.packed))
        ids = table.insert(pieces, n)
        if len(table) < n:
            twice = int(np.flatnonzero(ids != np.arange(n))[0])
            raise error(f"{name}: string {twice} is the same as string {ids[twice]} ({table[ids[twice]]!r})")
        return table

    def insert(self, pieces: Pieces, n: int) -> NDArray[np.int32]:
        """The ids of the first ``n`` pieces; new strings are added."""
        ids = np.empty(n, np.int32)
        done = insert_strings(self.arrays, self._with_hashes(pieces, n), 0, ids)
        while done < n:
            if not self._grow(int(pieces.length[done] + 7) // 8 + 1):
                self.choose_key()  # it has not grown, so it must be that strings are too far from their slots
            done = insert_strings(self.arrays, self._with_hashes(pieces, n), done, ids)
        return ids

    def find(self, pieces: Pieces, n: int) -> NDArray[np.int32]:
        """The ids of the first ``n`` pieces, -1 for strings that are not in the table."""
        ids = np.empty(n, np.int32)
        # One array at a time: as tuples they would take 2 µs more to hand over, of 15 for a short text.
        find_strings(self.arrays.slots, self.arrays.records, *self._with_hashes(pieces, n), ids)
        return ids

    @property
    def has_public_hashes(self) -> bool:
        """Whether strings are found by the hashes that pieces come with."""
        return self._key is None

    def ids(self, strings: Sequence[str | bytes]) -> NDArray[np.int32]:
        """The ids of some strings, -1 for those that are not in the table."""
        return self.find(pack_strings(strings), len(strings))

    def select(self, order: NDArray[np.int64]) -> StringTable:
        """A table of the given (distinct) strings of this one, numbered in that order."""
        return StringTable._from_pieces(self.pieces(order), "strings", DataError)

    def pieces(self, order: NDArray[np.int64]) -> Pieces:
        """Some strings, in the form in which tables take them."""
        return _pack(*self._write(order))

    def is_same(self, other: StringTable) -> bool:
        """Whether it has the same strings with the same ids."""
        if other is self:
            return True
        if len(self) != len(other):
            return False
        (data, offsets), (other_data, other_offsets) = self.tensors(), other.tensors()
        return np.array_equal(offsets, other_offsets) and np.array_equal(data, other_data)

    def tensors(self, order: NDArray[np.int64] | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """(data, offsets) of all strings, or of some: number k is ``data[offsets[k]:offsets[k + 1]]``."""
        return self._write(np.arange(len(self)) if order is None else order)

    def strings(self) -> list[str]:
        data, offsets = self.tensors()
        joined, places = data.tobytes(), offsets.tolist()
        # A table built from unchecked bytes may hold strings that are not UTF-8; they can be shown anyway.
        return [joined[start:end].decode("utf-8", "backslashreplace") for start, end in pairwise(places)]

    def __getitem__(self, k: int) -> str:
        if not 0 <= k < len(self):
            raise IndexError(f"string {k} of a table of {len(self)}")
        return self._write(np.array([k]))[0].tobytes().decode("utf-8", "backslashreplace")

    def __len__(self) -> int:
        return int(self.arrays.size[0])

    def __repr__(self) -> str:
        shown = [repr(self[k]) for k in range(min(len(self), _SHOWN))] + ["..."] * (len(self) > _SHOWN)
        return f"<StringTable of {counted(len(self), 'string')}{': ' * bool(shown)}{', '.join(shown)}>"

    def _write(self, order: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        records, first = self.arrays.records, self.arrays.first
        length = np.empty(len(order), np.int64)
        measure_strings(records, first, order, length)
        offsets = pointers(length)
        data = np.empty(offsets[-1], np.uint8)
        write_strings(records, first, order, offsets, data)
        return data, offsets

    def _with_hashes(self, pieces: Pieces, n: int) -> Pieces:
        """The first ``n`` pieces, with the hashes by which this table places them."""
        if self._key is None:
            return pieces
        hashes = np.empty(n, np.uint64)
        hash_secretly(pieces.packed, pieces.first, pieces.length, self._key, hashes)
        return pieces._replace(hashes=hashes)

    def choose_key(self) -> None:
        """Place all strings anew, by hashes that nobody can foresee.

        Those of the text are the same everywhere, and so is what they make of n-grams; whoever knows them can
        choose words that all want the same slot.
        """
        records, first, hashes = self.arrays.records, self.arrays.first[: len(self)], self.arrays.hashes
        length = np.empty(len(self), np.int64)
        measure_strings(records, first, np.arange(len(self)), length)
        self._key = np.frombuffer(os.urandom(16), np.uint64)
        hash_secretly(records, first + 1, length, self._key, hashes[: len(self)])
        self._place()

    def _place(self) -> None:
        """Put all strings into new slots."""
        records, first, hashes, _, size = self.arrays
        slots = np.full(_slots_for(len(hashes)), EMPTY, np.uint64)
        size[1] = place_strings(first, hashes, len(self), slots)
        self.arrays = StringArrays(records, first, hashes, slots, size)
        if size[1] < 0:
            self.choose_key()

    def _grow(self, n_words: int) -> bool:
        """Grow for at least one more string, whose record has ``n_words`` words; False if it fits already."""
        records, first, hashes, slots, size = self.arrays
        n = len(self)
        if n == len(hashes):
            capacity = max(2 * n, 512)
            first, hashes = _longer(first, n + 1, capacity + 1), _longer(hashes, n, capacity)
        n_used = int(first[n])
        if n_used + n_words > len(records):
            records = _longer(records, n_used, 2 * (n_used + n_words))
        if n >= MOST_IDS or n_used + n_words > _MAX_RECORD_WORDS:
            raise DataError(f"too many distinct strings: {n} so far; raise min_count or cut the data")
        has_grown = hashes is not self.arrays.hashes or records is not self.arrays.records
        self.arrays = StringArrays(records, first, hashes, slots, size)
        if len(slots) < _slots_for(len(hashes)):
            self._place()
        return has_grown


def pack_strings(strings: Sequence[str | bytes]) -> Pieces:
    """Strings in the form in which tables take them."""
    encoded = [s.encode("utf-8", "surrogatepass") if isinstance(s, str) else s for s in strings]
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return _pack(data, pointers(np.fromiter(map(len, encoded), np.int64, len(encoded))))


def is_utf8(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bool:
    """Whether each of the strings is valid on its own."""
    try:
        data.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    starts = offsets[:-1][offsets[:-1] < len(data)]
    return not np.any((data[starts] & 0xC0) == 0x80)  # no string starts inside a character


def _pack(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Pieces:
    n = len(offsets) - 1
    start, end = np.ascontiguousarray(offsets[:-1], np.int64), np.ascontiguousarray(offsets[1:], np.int64)
    n_packed = int(((end - start + 7) // 8).sum())
    pieces = Pieces(
        np.empty(n_packed, np.uint64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint64)
    )
    pack_spans(read_only(data), start.copy(), end.copy(), pieces)
    return pieces


def _check_tensors(data: NDArray[np.uint8], offsets: NDArray[np.int64], name: str) -> None:
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1:
        raise CorruptedModelError(
            f"{name}: expected bytes and their int64 offsets, but got {data.dtype} and {offsets.dtype}"
        )
    # Compared, not subtracted: the difference of two huge numbers could wrap around to a positive one.
    is_falling = np.any(offsets[1:] < offsets[:-1])
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(data) or is_falling:
        raise CorruptedModelError(f"{name}: offsets do not rise from 0 to the number of bytes, {len(data)}")


def _slots_for(n_strings: int) -> int:
    """The power of two that leaves at least half of the slots empty."""
    return 1 << (2 * max(n_strings, 1) - 1).bit_length()


def _longer(array: NDArray, n_used: int, length: int) -> NDArray:
    longer = np.empty(length, array.dtype)
    longer[:n_used] = array[:n_used]
    return longer
