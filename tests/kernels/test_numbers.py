"""Numbers as kernels read them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labeltree.kernels.numbers import parse_number
from labeltree.kernels.text.words import MAX_WEIGHT, parse_weight

NUMBERS = st.from_regex(
    r"[-+]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?", fullmatch=True
)


@settings(max_examples=400)
@given(NUMBERS | st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr))
@example("0." + "0" * 60 + "1e61")
@example("9" * 60 + "e-60")
@example("0e999999999999")
@example("1e-999999999999")
def test_numbers_are_within_one_unit_of_pythons(text: str) -> None:
    encoded = text.encode()
    value, end = parse_number(np.frombuffer(bytearray(encoded), np.uint8), 0, len(encoded))
    assert end == len(encoded)
    with np.errstate(over="ignore"):
        expected, found = np.float32(float(text)), np.float32(value)
        neighbours = [np.nextafter(expected, np.float32(side)) for side in (-math.inf, math.inf)]
    assert found == expected or found in neighbours


@pytest.mark.parametrize(
    "text", ["", "-", "+", ".", "e5", "1e", "1e+", "nan", "inf", "-.", "x", "0x10", "1_0", "1,5"]
)
def test_what_is_no_number_does_not_end_where_the_token_ends(text: str) -> None:
    encoded = bytearray(text.encode() + b" ")
    _, end = parse_number(np.frombuffer(encoded, np.uint8), 0, len(text))
    assert end == 0 or end < len(text)


@settings(max_examples=200)
@given(NUMBERS)
@example("")
@example("0.37")
@example("1e18")
@example("1.0001e18")
@example("1e-999999999999")
def test_weights_are_numbers_without_a_sign_that_are_not_too_large(text: str) -> None:
    encoded = text.encode()
    weight = parse_weight(np.frombuffer(bytearray(encoded), np.uint8), 0, len(encoded))
    if text[:1] in ("", "-", "+") or float(text) > MAX_WEIGHT * (1 + 1e-15):
        assert weight == -1
    elif float(text) < MAX_WEIGHT * (1 - 1e-15):
        assert weight == pytest.approx(float(text), rel=1e-15, abs=1e-300)
