"""Words that someone has chosen: their hashes (kernels/text/words.py) are what they should be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.text.packing import MIX_1, MIX_2

N_BYTES = 16  # of a word: the first half is free, the second makes up for it
_HALF = np.uint64(32)


def _unmix(value: NDArray[np.uint64], factor: np.uint64) -> NDArray[np.uint64]:
    """What ``value * factor``, its high half mixed into the low one, was made of."""
    return (value ^ (value >> _HALF)) * np.uint64(pow(int(factor), -1, 2**64))


def _mix(value: NDArray[np.uint64], factor: np.uint64) -> NDArray[np.uint64]:
    value = value * factor
    return value ^ (value >> _HALF)


def words_of_hashes(hashes: NDArray[np.uint64], first: NDArray[np.uint64]) -> list[bytes]:
    """Words with these hashes that begin with eight given bytes each."""
    before_last = _unmix(_unmix(hashes, MIX_2) ^ np.uint64(N_BYTES), MIX_1)
    halves = np.stack([first, before_last ^ _mix(first, MIX_1)], axis=1)
    return [row.astype("<u8").tobytes() for row in halves]


def strings_of_hashes(hashes: NDArray[np.uint64], number: int = 0) -> list[bytes]:
    """Different strings of any bytes with these hashes; others for another number."""
    return words_of_hashes(hashes, np.arange(len(hashes), dtype=np.uint64) + np.uint64(number << 32))


def words_of_one_hash(n: int, seed: int = 0) -> list[str]:
    """Words of a text, of ASCII characters that have no lower case."""
    random = np.random.default_rng(seed)
    found: list[str] = []
    while len(found) < n:
        letters = random.integers(ord("a"), ord("z"), (200_000, 8), np.uint8, endpoint=True)
        first = letters.view("<u8")[:, 0].astype(np.uint64)
        words = words_of_hashes(np.full(len(first), 12345, np.uint64), first)
        seconds = np.frombuffer(b"".join(words), np.uint8).reshape(-1, N_BYTES)[:, 8:]
        is_word = ((seconds > ord("Z")) & (seconds < 0x7F) | (seconds > ord(" ")) & (seconds < ord("A"))).all(
            axis=1
        )
        found += [words[place].decode() for place in np.flatnonzero(is_word)]
    return found[:n]
