"""Bytes of text: white space, and UTF-8."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined

_U8, _U16, _U24 = np.uint64(8), np.uint64(16), np.uint64(24)


@inlined
def is_space(byte):
    """ASCII white space. A zero is one too: readers leave none in a text, and words are padded with them."""
    return byte == 32 or (9 <= byte <= 13) or byte == 0


@inlined
def skip_space(buffer, i, end):
    while i < end and is_space(buffer[i]):
        i += 1
    return i


@inlined
def utf8_width(buffer, i, stop):
    """Length of the multi-byte character at ``i``, 0 if there is none (overlong forms, surrogates)."""
    lead = buffer[i]
    if lead < 0xC2 or lead > 0xF4:
        return 0
    width = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    if i + width > stop:
        return 0
    low = 0x80
    high = 0xBF
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    if buffer[i + 1] < low or buffer[i + 1] > high:
        return 0
    for j in range(i + 2, i + width):
        if buffer[j] < 0x80 or buffer[j] > 0xBF:
            return 0
    return width


@inlined
def decode_character(buffer, i, stop):
    """(code point, number of bytes) of the character at ``i``; (-1, 1) if there is none."""
    lead = np.int64(buffer[i])
    if lead < 0x80:
        return lead, 1
    width = utf8_width(buffer, i, stop)
    if width == 2:
        return (lead & 0x1F) << 6 | np.int64(buffer[i + 1]) & 0x3F, 2
    if width == 3:
        middle, last = np.int64(buffer[i + 1]) & 0x3F, np.int64(buffer[i + 2]) & 0x3F
        return (lead & 0x0F) << 12 | middle << 6 | last, 3
    if width == 4:
        second, third = np.int64(buffer[i + 1]) & 0x3F, np.int64(buffer[i + 2]) & 0x3F
        return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(buffer[i + 3]) & 0x3F, 4
    return -1, 1


@inlined
def encode_character(code):
    """(UTF-8 bytes as one number, their count) of a character."""
    last = np.uint64(0x80 | code & 0x3F)
    if code < 0x80:
        return np.uint64(code), 1
    if code < 0x800:
        return np.uint64(0xC0 | code >> 6) | last << _U8, 2
    third = np.uint64(0x80 | (code >> 6) & 0x3F)
    if code < 0x10000:
        return np.uint64(0xE0 | code >> 12) | third << _U8 | last << _U16, 3
    second = np.uint64(0x80 | (code >> 12) & 0x3F)
    return np.uint64(0xF0 | code >> 18) | second << _U8 | third << _U16 | last << _U24, 4
