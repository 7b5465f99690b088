"""The scanning kernels agree with their slow twins on whatever bytes they meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.reading import read_bytes, read_text

from labeltree.data.bad_lines import BadLines
from labeltree.data.xmlc import read_xmlc
from labeltree.kernels.scan import lines as scan
from labeltree.reference import scan as reference

# What files are made of, and what breaks them; hypothesis shuffles the pieces.
PIECES = {
    "fasttext": b"__label__a| |\n|\r\n|\r|\0|word|gr\xc3\xbcn|\xff|\xc3".split(b"|"),
    "annif": b"text|\t|<|>|<http://x/1>| |\n|\n|\r\n|\0|\xc3\xbc|\xe2\x82".split(b"|"),
}


# Bytes that say what the file is instead of being in it. Hypothesis tries those that it finds in modules, and
# which ones are imported depends on the tests that ran before.
MAGIC = (b"\x1f\x8b", b"\xfd7zXZ", b"\xef\xbb\xbf", b"BZh", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")


def assert_same_rows(data: bytes, fmt: str, block_bytes: int) -> None:
    assert read_text(data, fmt, block_bytes) == reference.read_text(data, fmt)


@pytest.mark.parametrize("fmt", PIECES)
@settings(max_examples=150)
@given(data=st.data(), block_bytes=st.integers(1, 60))
def test_text_formats_agree_with_reference(fmt: str, data: st.DataObject, block_bytes: int) -> None:
    content = b"".join(data.draw(st.lists(st.sampled_from(PIECES[fmt]), max_size=30)))
    assert_same_rows(content, fmt, block_bytes)


@settings(max_examples=200)
@given(st.binary(max_size=120).filter(lambda data: not data.startswith(MAGIC)))
@example("x\u07ff\u0800\uffff\U00010000\U0010ffff".encode())
@example(b"12345678\xed\xa0\x80\n\xe0\x80\x80\n\xf4\x90\x80\x80\n\xc0\x80\n\xf0\x8f\xbf\xbf\n\xc3")
def test_invalid_utf8_is_found_where_python_finds_it(data: bytes) -> None:
    assert_same_rows(data, "fasttext", 1 << 10)


XMLC_PIECES = [
    "1",
    "7",
    ",",
    " ",
    " ",
    "3:0.5",
    "9:1",
    "2:-1e-3",
    "11:1",
    ":",
    "12",
    "\t",
    "x",
    "-",
    "0:1e39",
    "4:.5",
]


@settings(max_examples=300)
@given(
    lines=st.lists(st.lists(st.sampled_from(XMLC_PIECES), max_size=9).map("".join), max_size=6),
    block_bytes=st.integers(8, 60),
)
def test_xmlc_rows_agree_with_reference(lines: list[str], block_bytes: int) -> None:
    expected, n_bad = [], 0
    for line in lines:
        try:
            row = reference.scan_sparse_rows(line.encode(), 12, 13, 8)
        except ValueError:
            n_bad += 1
            continue
        if max(map(abs, row.features.values()), default=0) > 3e38:
            n_bad += 1
        else:
            expected.append(row)
    data = "\n".join([f"{len(lines)} 12 13", *lines, ""]).encode()
    bad_lines = BadLines(skip=True)
    features, labels = read_bytes(data, read_xmlc, bad_lines=bad_lines, n_labels=8, block_bytes=block_bytes)
    assert bad_lines.skipped == n_bad
    assert features.n_rows == labels.n_rows == len(expected)
    for i, row in enumerate(expected):
        part = slice(features.indptr[i], features.indptr[i + 1])
        assert features.indices[part].tolist() == list(row.features)
        np.testing.assert_allclose(features.values[part], list(row.features.values()), rtol=1e-6, atol=1e-44)
        assert labels.indices[labels.indptr[i] : labels.indptr[i + 1]].tolist() == row.labels


def test_find_last_newline_and_count_byte() -> None:
    data = b"a\nbc\nd"
    buffer = np.frombuffer(bytearray(data), np.uint8)
    assert scan.find_last_newline(buffer, 0, len(data)) == data.rfind(b"\n")
    assert scan.find_last_newline(buffer, 2, 4) == -1
    assert scan.count_byte(buffer, 10) == 2
