"""Texts in memory."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.data.memory import text_blocks, texts_to_block
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
