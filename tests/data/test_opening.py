"""Compressed files are read to their end: damage is an error wherever it is, and never fewer rows."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from labeltree.data.opening import Source
from labeltree.errors import DataError

FIRST, SECOND = b"one\ntwo\n", b"three\nfour\n"
PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress}

pytestmark = pytest.mark.parametrize("kind", PACK)


def content(path: Path, packed: bytes, block_bytes: int = 1 << 16) -> bytes:
    path.write_bytes(packed)
    with Source(path) as source:
        return b"".join(block.tobytes() for block in source.blocks(block_bytes))


@pytest.mark.parametrize("padding", [b"", b"\0" * 4, b"\0" * 200_000])
def test_streams_follow_each_other_and_zeros(kind: str, padding: bytes, tmp_path: Path) -> None:
    packed = PACK[kind](FIRST) + padding + PACK[kind](SECOND) + padding
    assert content(tmp_path / f"data.{kind}", packed) == FIRST + SECOND
    assert content(tmp_path / f"data.{kind}", packed, block_bytes=3) == FIRST + SECOND


def test_much_is_read_in_parts(kind: str, tmp_path: Path) -> None:
    many = b"".join(b"%d\n" % number for number in range(300_000))
    packed = PACK[kind](many) + PACK[kind](FIRST)
    assert content(tmp_path / f"data.{kind}", packed) == many + FIRST


def test_what_follows_the_last_stream_is_an_error(kind: str, tmp_path: Path) -> None:
    for rubbish in (b"rubbish", b"\0\0\0\0rubbish", b"r", PACK["xz" if kind == "gz" else "gz"](SECOND)):
        path = tmp_path / f"data.{kind}"
        with pytest.raises(DataError, match=r"damaged or truncated \(.+\); get or compress it") as error:
            content(path, PACK[kind](FIRST) + rubbish)
        assert str(path) in str(error.value)


def test_a_damaged_second_stream_is_an_error(kind: str, tmp_path: Path) -> None:
    """Also where the damage is in its very first bytes: it once looked like rubbish that may be ignored."""
    first, second = PACK[kind](FIRST), PACK[kind](SECOND)
    harmless = {4, 5, 6, 7, 8, 9} if kind == "gz" else set()  # the time, and which system wrote it
    for place in sorted(set(range(len(second))) - harmless):
        damaged = bytearray(second)
        damaged[place] ^= 0xFF
        with pytest.raises(DataError, match="damaged or truncated"):
            content(tmp_path / f"data.{kind}", first + damaged)


def test_a_second_stream_that_is_cut_off_is_an_error(kind: str, tmp_path: Path) -> None:
    first, second = PACK[kind](FIRST), PACK[kind](SECOND)
    for length in range(1, len(second)):
        with pytest.raises(DataError, match="damaged or truncated"):
            content(tmp_path / f"data.{kind}", first + second[:length])
