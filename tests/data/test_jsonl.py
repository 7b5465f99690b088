"""JSON lines: what the standard library reads is read, numbers as they are written, and nothing else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.reading import Read, read_blocks, read_text

from labeltree.data.bad_lines import BadLines
from labeltree.errors import DataError
from labeltree.reference.scan import TextRow, scan_lines


class _Number(str):
    """A number as it is written."""


def _number(written: str) -> _Number:
    if math.isinf(float(written)):
        raise ValueError("larger than any 64-bit float")
    return _Number(written)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def read_line(line: bytes) -> tuple[bytes, list[bytes]]:
    """By the standard library, which takes half characters and NaN, and gives all pairs of an object."""
    decoder = json.JSONDecoder(
        object_pairs_hook=tuple, parse_int=_number, parse_float=_number, parse_constant=_refuse
    )
    pairs = decoder.decode(line.decode())
    json.dumps(pairs, ensure_ascii=False).encode()  # half characters raise here
    if type(pairs) is not tuple:
        raise ValueError("not an object")
    record = dict(pairs)
    text, labels = record.get("text"), record.get("labels")
    if type(text) is not str:
        raise ValueError("no text")
    if type(labels) is not list and labels is not None:
        raise ValueError("no list of labels")
    if not all(isinstance(label, str) and label for label in labels or []):
        raise ValueError("a label is not a string or is empty")
    return _encoded(text), [_encoded(label) for label in labels or []]


def _encoded(text: str) -> bytes:
    return text.replace("\0", " ").encode()


def expected(data: bytes) -> Read:
    found = Read([], [])
    for number, line in enumerate(scan_lines(data), start=1):
        if not line.strip(b" \t\r"):
            continue
        try:
            found.rows.append(TextRow(number, *read_line(line)))
        except ValueError:
            found.bad.append(number)
    return found


PIECES = (
    b'{"text": "a", "labels": ["b", 3]}|{"text": |"labels": |:|,|[|]|{|}|"x"|\n|\n| |"|null|-1.5e3|01|\0|'
    b"\\|\\u00e9|\\ud83d|\\ude00|1e999|-0|12345678901234567890123|\\u0000|\t|\xff"
).split(b"|")


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join), st.integers(1, 60))
@example(b'{"text": "a", "text": 1}\n{"text": 1, "text": "a", "labels": ["b"], "labels": [7]}', 60)
@example(b'{"labels": ["a", -0, 1.50], "x": {"labels": [2]}, "\\u0074ext": "[{", "l": "\\"labels\\": "}', 60)
@example(b'{"text": "a", "labels": [7, ""]}\n{"text": "a", "labels": [7, true]}\n{"text": "\\u0000"}', 60)
def test_lines_agree_with_the_standard_library(data: bytes, block_bytes: int) -> None:
    assert read_text(data, "jsonl", block_bytes) == expected(data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150)
@given(
    text=st.text(),
    labels=st.lists(st.text(min_size=1) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)),
    other=st.dictionaries(st.text(max_size=8), VALUES, max_size=3),
    ascii_only=st.booleans(),
    separators=st.sampled_from([(",", ":"), (" , ", " : ")]),
    cut=st.integers(0, 400),
)
def test_what_python_writes_is_read_back(
    text: str,
    labels: list[Any],
    other: dict[str, Any],
    ascii_only: bool,
    separators: tuple[str, str],
    cut: int,
) -> None:
    record = other | {"text": text, "labels": labels}
    line = json.dumps(record, ensure_ascii=ascii_only, separators=separators).encode()
    data = line + b"\n" + line[:cut] + b"\n" + line
    found = read_text(data, "jsonl")
    assert found == expected(data)
    assert found.rows[0].text == _encoded(text)


def test_numbers_are_labels_as_they_are_written() -> None:
    line = b'{"text": "a", "labels": ["x", 7, 7.0, -0, 1e3, 123456789012345678901234567890]}'
    labels = [b"x", b"7", b"7.0", b"-0", b"1e3", b"123456789012345678901234567890"]
    assert read_text(line, "jsonl").rows[0].labels == labels


def test_depth_is_bounded() -> None:
    """The bound is orjson's; Python's own stack is never in play."""
    for depth, is_bad in ((1000, False), (1100, True), (100_000, True)):
        line = b'{"text": "a", "other": ' + b"[" * depth + b"]" * depth + b', "labels": [7]}'
        assert read_text(line, "jsonl").bad == [1] * is_bad


def test_a_number_that_no_float_holds_makes_a_bad_line() -> None:
    for number in (b"1e999", b"9" * 400):
        assert read_text(b'{"text": "a", "n": ' + number + b"}", "jsonl").bad == [1]
    assert not read_text(b'{"text": "a", "n": [1e-999, ' + b"9" * 300 + b"]}", "jsonl").bad


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"é": 1, "text": "a\tb"}', "at byte 21: '\\tb\"}'"),
        ('{"text": "a"} x', "at byte 15: 'x'; write {\"text\""),
        (' {"é": {"text": "b"}, "text": 5}', "the value of \"text\" is not a string at byte 32: '5}'"),
        ('{"x": "\\"text\\": ", "\\u0074ext": [[1]]}', "not a string at byte 34: '[[1]]}'"),
        ('{"text": "a", "labels": {"a": 1}}', "is not an array at byte 25: '{\"a\": 1}}'"),
        (
            '{"text": "a", "labels": ["b", null]}',
            "neither a string nor a number at byte 25: '[\"b\", null]}'",
        ),
        ('{"text": "a", "labels": ["b", ""]}', 'empty at byte 25: \'["b", ""]}\'; leave it out'),
        ('  {"labels": []}', 'no key "text" at byte 3: \'{"labels": []}\''),
        ("  [1]", "expected a JSON object at byte 3: '[1]'"),
    ],
)
def test_messages_name_the_place_and_the_value(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text(line)
    with pytest.raises(DataError) as error:
        list(read_blocks(path, "jsonl", bad_lines=BadLines()))
    assert str(error.value).startswith(f"{path}, line 1: ")
    assert message in str(error.value)
