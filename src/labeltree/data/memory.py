"""Texts given in memory as blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.block import Block
from labeltree.data.labels import flatten_labels
from labeltree.errors import DataError

BLOCK_ROWS = 1 << 14

_SOURCE = "texts"
_NO_SPANS: NDArray[np.int64] = np.empty(0, np.int64)


def text_blocks(
    texts: Iterable[str], label_lists: Sequence[Any] | None = None, *, block_rows: int = BLOCK_ROWS
) -> Iterator[Block]:
    """Texts, and the labels of each if given, as blocks: the encoded copy of them all is never in memory."""
    _check_texts(texts)
    remaining = iter(texts)
    n_rows = 0
    while part := list(islice(remaining, block_rows)):
        labels = None if label_lists is None else label_lists[n_rows : n_rows + len(part)]
        yield texts_to_block(part, labels, first_row=n_rows)
        n_rows += len(part)
    if label_lists is not None and len(label_lists) != n_rows:
        raise DataError(f"X has {n_rows} rows, but Y has {len(label_lists)}; give each text its labels")


def texts_to_block(
    texts: Iterable[str], label_lists: Sequence[Any] | None = None, *, first_row: int = 0
) -> Block:
    """Texts as one block. Words with a label prefix are words here: labels come from ``label_lists``."""
    if type(texts) is not list:
        _check_texts(texts)
        texts = list(texts)
    n_rows = len(texts)
    text_start, text_end, encoded = _encode(texts, first_row)
    label_start = label_end = _NO_SPANS
    label_indptr = np.zeros(n_rows + 1, np.int64)
    if label_lists is not None:
        if len(label_lists) != n_rows:
            raise DataError(f"X has {n_rows} rows, but Y has {len(label_lists)}; give each text its labels")
        names, lengths = flatten_labels(label_lists)
        label_start, label_end, encoded_labels = _encode(names, None)
        label_start += len(encoded)
        label_end += len(encoded)
        encoded += encoded_labels
        np.cumsum(lengths, out=label_indptr[1:])
    return Block(
        source=_SOURCE,
        buffer=np.frombuffer(encoded, np.uint8),  # of a bytearray, so writable like those of files
        text_start=text_start,
        text_end=text_end,
        label_start=label_start,
        label_end=label_end,
        label_indptr=label_indptr,
        line=np.arange(first_row + 1, first_row + n_rows + 1),
        labels_in_text=False,
    )


def _encode(
    texts: list[str], first_row: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], bytearray]:
    """Start and end of each text in their joined bytes; NUL becomes a space, as when read from a file."""
    try:
        joined = texts[0] if len(texts) == 1 else "".join(texts)
        encoded = bytearray(joined, "utf-8")
        if len(texts) == 1:
            end = np.array([len(encoded)])
            return np.zeros(1, np.int64), end, _without_nul(encoded)
        # joined text of one byte per character: lengths need no encoding of single texts
        parts = texts if len(encoded) == len(joined) else [text.encode() for text in texts]
    except (TypeError, UnicodeEncodeError) as error:
        raise DataError(_bad_text(texts, first_row)) from error
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=bounds[1:])
    return bounds[:-1].copy(), bounds[1:].copy(), _without_nul(encoded)


def _without_nul(encoded: bytearray) -> bytearray:
    return encoded.replace(b"\0", b" ") if 0 in encoded else encoded


def _bad_text(texts: list[Any], first_row: int | None) -> str:
    for row, text in enumerate(texts):
        place = "a label" if first_row is None else f"X, row {first_row + row}"
        if not isinstance(text, str):
            return f"{place}: {text!r:.40} is of type {type(text).__name__}, but must be a string"
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"{place}: not valid Unicode ({error.reason}); remove lone surrogates"
    return "X: texts cannot be encoded"


def _check_texts(texts: Any) -> None:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise DataError(f"X must be a list of texts, but is {texts!r:.40}; wrap a single text in a list")
