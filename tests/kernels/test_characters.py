"""UTF-8 as kernels read and write it."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.kernels.characters import decode_character, encode_character, is_space, utf8_width

CODES = [0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]


@pytest.mark.parametrize("code", CODES)
def test_characters_are_those_of_python(code: int) -> None:
    encoded = chr(code).encode()
    buffer = np.frombuffer(bytearray(encoded + b"x"), np.uint8)
    assert decode_character(buffer, 0, len(encoded)) == (code, len(encoded))
    number, width = encode_character(code)
    assert int(number).to_bytes(width, "little") == encoded


@pytest.mark.parametrize(
    "malformed",
    [
        b"\x80",
        b"\xc1\x81",
        b"\xc3",
        b"\xe2\x82",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ],
)
def test_what_is_malformed_is_no_character(malformed: bytes) -> None:
    buffer = np.frombuffer(bytearray(malformed), np.uint8)
    assert utf8_width(buffer, 0, len(malformed)) == 0
    assert decode_character(buffer, 0, len(malformed)) == (-1, 1)


def test_white_space_is_that_of_ascii_and_zero() -> None:
    spaces = [byte for byte in range(256) if is_space(byte)]
    assert bytes(spaces) == b"\0\t\n\v\f\r "
