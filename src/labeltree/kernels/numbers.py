"""Numbers as they are written: ids, and decimals with a sign and an exponent."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined

MAX_ID = 2**31 - 1
MAX_MANTISSA = 10**17  # takes one more digit without overflow; further ones do not change a 32-bit float
MAX_EXPONENT = 400  # beyond any 64-bit float
POWERS_OF_TEN = np.array([float(10**exponent) for exponent in range(23)])


@inlined
def is_digit(byte):
    return 48 <= byte <= 57


@inlined
def is_sign(byte):
    return byte == 43 or byte == 45


@inlined
def parse_id(buffer, i, end):
    """The natural number at ``i`` and where it ends; too large ones become ``MAX_ID``."""
    number = 0
    while i < end and is_digit(buffer[i]):
        number = min(number * 10 + np.int64(buffer[i]) - 48, MAX_ID)
        i += 1
    return number, i


@inlined
def scale_by_ten(number, exponent):
    """``number * 10**exponent``; powers up to 22 are exact, so common numbers are rounded only once."""
    if exponent == 0:
        return number
    size = min(abs(exponent), MAX_EXPONENT)
    scale = POWERS_OF_TEN[size % len(POWERS_OF_TEN)]
    for _ in range(size // len(POWERS_OF_TEN)):
        scale *= 1e23
    return number / scale if exponent < 0 else number * scale


@inlined
def append_digits(buffer, i, end, mantissa):
    """Write the digits at ``i`` behind those of ``mantissa``: it, where they end, how many were too many."""
    n_left_out = 0
    while i < end and is_digit(buffer[i]):
        if mantissa < MAX_MANTISSA:
            mantissa = mantissa * 10 + np.int64(buffer[i]) - 48
        else:
            n_left_out += 1
        i += 1
    return mantissa, i, n_left_out


@inlined
def parse_number(buffer, start, end):
    """The decimal number at ``start`` and where it ends (``start`` itself where there is none).

    Within one 32-bit unit in the last place of ``float(text)``.
    """
    i = start
    negative = i < end and buffer[i] == 45
    if i < end and is_sign(buffer[i]):
        i += 1
    first = i
    mantissa, i, exponent = append_digits(buffer, i, end, 0)
    n_digits = i - first
    if i < end and buffer[i] == 46:
        first = i + 1
        mantissa, i, n_left_out = append_digits(buffer, first, end, mantissa)
        n_digits += i - first
        exponent -= i - first - n_left_out
    if n_digits == 0:
        return 0.0, start
    if i < end and (buffer[i] | 32) == 101:
        minus = i + 1 < end and buffer[i + 1] == 45
        first = i + 1 + (i + 1 < end and is_sign(buffer[i + 1]))
        power, i = parse_id(buffer, first, end)
        if i == first:
            return 0.0, start
        exponent += -power if minus else power
    if mantissa == 0:
        return 0.0, i
    value = scale_by_ten(float(mantissa), exponent)
    return -value if negative else value, i
