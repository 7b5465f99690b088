"""Texts in memory, and the weights of rows: one check for training and for the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labeltree.data.memory import row_weights, text_blocks, texts_to_block
from labeltree.data.rows import Block
from labeltree.errors import DataError


def rows(block: Block) -> list[tuple[str, list[str]]]:
    data = block.buffer.tobytes()
    found = []
    for i in range(block.n_rows):
        spans = range(block.label_indptr[i], block.label_indptr[i + 1])
        labels = [data[block.label_start[span] : block.label_end[span]].decode() for span in spans]
        found.append((data[block.text_start[i] : block.text_end[i]].decode(), labels))
    return found


@pytest.mark.parametrize(
    "texts",
    [[], ["one"], [""], ["one two", "", "three\nfour"], ["grün", "a", "😀"], ["__label__a b"], ("a", "b")],
)
def test_texts_come_back_as_they_are(texts: list[str]) -> None:
    block = texts_to_block(texts)
    assert rows(block) == [(text, []) for text in texts]
    assert block.line.tolist() == list(range(1, len(texts) + 1))
    assert not block.labels_in_text
    assert block.buffer.flags.writeable
    assert all(array.dtype == np.int64 for array in block[2:8])


def test_nul_is_a_space_and_arrays_of_strings_are_texts() -> None:
    assert rows(texts_to_block(np.array(["a\0b", "c"]))) == [("a b", []), ("c", [])]
    assert rows(texts_to_block(["a\0b"])) == [("a b", [])]


@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_text_blocks_cut_long_lists(block_rows: int) -> None:
    texts = ["a", "bé", "", "d", "e"]
    blocks = list(text_blocks(iter(texts), block_rows=block_rows))
    assert [row for block in blocks for row in rows(block)] == [(text, []) for text in texts]
    assert [line for block in blocks for line in block.line.tolist()] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ("a single text", "wrap a single text in a list"),
        (b"bytes", "must be a list of texts"),
        (7, "must be a list of texts"),
        (["a", None], "X, row 1: None is of type NoneType"),
        ([float("nan")], "X, row 0: nan is of type float"),
        (["a", b"b"], "X, row 1: b'b' is of type bytes"),
        (["ok", "\ud800"], "X, row 1: not valid Unicode"),
    ],
)
def test_bad_texts_are_named(texts: object, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        texts_to_block(texts)
    with pytest.raises(DataError, match=reason):
        list(text_blocks(texts))


def test_bad_text_of_a_later_block_is_named_by_its_row() -> None:
    with pytest.raises(DataError, match="X, row 3"):
        list(text_blocks(["a", "b", "c", None], block_rows=2))


@pytest.mark.parametrize("weight", [[1, 2, 0], np.array([1.0, 2.0, 0.0]), (np.int8(1), 2.0, False)])
def test_weights_are_float32(weight: Any) -> None:
    found = row_weights(weight, 3)
    assert found.dtype == np.float32
    assert found.tolist() == [1, 2, 0]
    assert row_weights(None, 2).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        ([1, 2], r"shape \(3,\), one per row, but has \(2,\)"),
        (1.0, r"shape \(3,\)"),
        ([[1], [1], [1]], r"has \(3, 1\)"),
        (["a", "b", "c"], "numbers only"),
        ([1, None, {}], "numbers only"),
        ([1, -1, 1], "row 1: must be finite and at least 0, but is -1"),
        ([1, 1, np.nan], "row 2: .* nan"),
        ([1e39, 1, 1], "row 0: .* inf"),
        ([0, 0, 0], "zero for every row"),
        ([1e-60, 0, 0], "zero for every row"),
    ],
)
def test_bad_weights_are_named(weight: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        row_weights(weight, 3)
