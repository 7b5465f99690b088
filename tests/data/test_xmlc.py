"""XMLC repository files: rows, headers and bad lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labeltree.data.bad_lines import BadLines
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.data.xmlc import read_xmlc
from labeltree.errors import DataError

ROWS = b"1,7 3:0.5 9:1\n 2:1\n0\n\n7,1,7 9:2 3:-1e-1\r\n5:4"
HEADER = b"6 10 8\n"


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    return path


def lists(rows: SparseRows | LabelRows) -> list[list[int]]:
    return [rows.indices[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]


@pytest.mark.parametrize("block_bytes", [1, 8, 20, 1 << 22])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_rows_without_labels_or_features_are_legal(block_bytes: int, mark: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, mark + HEADER + ROWS)
    features, labels = read_xmlc(path, bad_lines=BadLines(), block_bytes=block_bytes)
    assert (features.n_rows, features.n_columns, labels.n_labels) == (6, 10, 8)
    assert lists(features) == [[3, 9], [2], [], [], [3, 9], [5]]
    assert lists(labels) == [[1, 7], [], [0], [], [1, 7], []]
    np.testing.assert_array_equal(features.values, np.array([0.5, 1, 1, -0.1, 2, 4], np.float32))
    assert [array.dtype for array in features[:3]] == [np.int64, np.int32, np.float32]
    assert [array.dtype for array in labels[:2]] == [np.int64, np.int32]


def test_a_model_knows_fewer_labels_than_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + ROWS)
    features, labels = read_xmlc(path, bad_lines=BadLines(), n_columns=12, n_labels=7)
    assert (features.n_columns, labels.n_labels) == (12, 7)
    assert lists(labels) == [[-1, 1], [], [0], [], [-1, -1, 1], []]
    with pytest.raises(
        DataError, match=r"line 2: feature out of range: the model was trained with 9 .*'9:1'"
    ):
        read_xmlc(path, bad_lines=BadLines(), n_columns=9, n_labels=8)


def test_the_header_may_be_left_out_when_a_model_knows_the_sizes(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    options = dict(bad_lines=BadLines(), n_columns=10, n_labels=8)
    with_header = read_xmlc(write(tmp_path, HEADER + ROWS), **options)
    path = write(tmp_path, ROWS)
    without = read_xmlc(path, **options)
    assert lists(without[0]) == lists(with_header[0])
    assert lists(without[1]) == lists(with_header[1])
    with pytest.raises(DataError, match="line 1: expected the header N D L"):
        read_xmlc(path, bad_lines=BadLines())
    with pytest.raises(DataError, match="line 3: feature out of range"):
        read_xmlc(write(tmp_path, b"1 2:1\n 3:1\n1 10:1\n"), **options)


BAD = [
    (b"8 1:1", "label out of range: the header promises 8 labels at byte 1: '8 1:1'"),
    (b"1,99999999999999999999 1:1", "label out of range: the header promises 8 labels at byte 3"),
    (b"-1 1:1", "expected label ids"),
    (b"a,b 1:1", "expected label ids"),
    (b"1, 2 1:1", "expected label ids"),
    (b"1,,2 1:1", "expected label ids"),
    (b"1.5 1:1", "expected label ids"),
    (b"1,2:1", "expected label ids"),
    (b"1 2 3:1", "expected feature:value at byte 3: '2 3:1'"),
    (b"1 x:1", "expected feature:value"),
    (b"1 :1", "expected feature:value"),
    (b"1 -2:1", "expected feature:value"),
    (b"1 10:1", "feature out of range: the header promises 10 features"),
    (b"1 4294967297:1", "feature out of range"),
    (b"1 2:", "not a number"),
    (b"1 2:x", "not a number at byte 3: '2:x'"),
    (b"1 2:1x", "not a number"),
    (b"1 2:nan", "not a number"),
    (b"1 2:inf", "not a number"),
    (b"1 2:0x1", "not a number"),
    (b"1 2:1,5", "not a number"),
    (b"1 2:1:2", "not a number"),
    (b"1 2:1e39", "too large"),
    (b"1 2:-4e38", "too large"),
    (b"1 3:1 3:2", "a feature appears twice at byte 7: '3:2'"),
    (b"3 5:1 3:1 9:1 03:2", "a feature appears twice at byte 15: '03:2'"),
    (b"1 2:1 \xff", "invalid UTF-8"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_bad_row_is_named_or_skipped(line: bytes, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path, b"3 10 8\n1,2 1:1\n" + line + b"\n3 4:1\n")
    with pytest.raises(DataError) as error:
        read_xmlc(path, bad_lines=BadLines())
    assert str(error.value).startswith(f"{path}, line 3: ")
    assert reason in str(error.value)
    bad_lines = BadLines(skip=True)
    features, labels = read_xmlc(path, bad_lines=bad_lines)
    assert (lists(features), lists(labels)) == ([[1], [4]], [[1, 2], [3]])
    assert bad_lines.skipped == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: expected the header"),
        (b"3 4\n", "line 1: expected the header"),
        (b"3 -4 5\n", "line 1: expected the header"),
        (b"a b c\n", "line 1: expected the header .*'a b c'"),
        (b"1 99999999999 5\n", "sizes are at most 2147483647"),
        (b"3 10 8\n1 1:1\n", "the header promises 3 rows, but the file has 1"),
        (b"1 10 8\n1 1:1\n1 1:1\n", "the header promises 1 rows, but the file has 2"),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_bad_header_is_never_skipped(content: bytes, reason: str, skip: bool, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=reason):
        read_xmlc(write(tmp_path, content), bad_lines=BadLines(skip=skip))


@pytest.mark.parametrize("block_bytes", [8, 1 << 22])
def test_blank_lines_after_the_last_row_are_no_rows(block_bytes: int, tmp_path: Path) -> None:
    path = write(tmp_path, b"3 10 8\n1 1:1\n\n\n\n\n")
    features, _ = read_xmlc(path, bad_lines=BadLines(), block_bytes=block_bytes)
    assert lists(features) == [[1], [], []]


def test_no_rows(tmp_path: Path) -> None:
    features, labels = read_xmlc(write(tmp_path, b"0 10 8\n"), bad_lines=BadLines())
    assert features.n_rows == labels.n_rows == 0
    assert features.indices.dtype == np.int32
