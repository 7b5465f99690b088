"""What is given in memory: texts as blocks of rows, and weights of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Block
from labeltree.errors import DataError, show

BLOCK_ROWS = 1 << 14

_SOURCE = "texts"
_NO_SPANS: NDArray[np.int64] = np.empty(0, np.int64)


def text_blocks(texts: Iterable[str], *, block_rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """Texts as blocks: the encoded copy of them all is never in memory."""
    _check_texts(texts)
    remaining = iter(texts)
    n_rows = 0
    while part := list(islice(remaining, block_rows)):
        yield texts_to_block(part, first_row=n_rows)
        n_rows += len(part)


def texts_to_block(texts: Iterable[str], *, first_row: int = 0) -> Block:
    """Texts as one block. Words with a label prefix are words here."""
    if type(texts) is not list:
        _check_texts(texts)
        texts = list(texts)
    n_rows = len(texts)
    try:
        start, end, buffer = join_texts(texts)
    except (TypeError, UnicodeEncodeError) as error:
        raise DataError(bad_text(texts, first_row)) from error
    return Block(
        source=_SOURCE,
        buffer=buffer,
        text_start=start,
        text_end=end,
        label_start=_NO_SPANS,
        label_end=_NO_SPANS,
        label_indptr=np.zeros(n_rows + 1, np.int64),
        line=np.arange(first_row + 1, first_row + n_rows + 1),
        labels_in_text=False,
    )


def join_texts(
    texts: list[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text starts and ends in a buffer of them all; NUL becomes a space, as in a file."""
    n_texts = len(texts)
    encoded = bytearray(texts[0] if n_texts == 1 else "\0".join(texts), "utf-8")
    if encoded.count(0) >= max(n_texts, 1):  # some are in the texts
        encoded = bytearray("\0".join([text.replace("\0", " ") for text in texts]), "utf-8")
    buffer = np.frombuffer(encoded, np.uint8)  # of a bytearray, so writable like those of files
    bounds = np.empty(n_texts + 1, np.int64)
    bounds[0], bounds[n_texts] = -1, len(buffer)
    if n_texts > 1:
        bounds[1:-1] = np.flatnonzero(buffer == 0)
    start = bounds[:-1] + 1
    return start, bounds[1:], buffer


def bad_text(texts: list[Any], first_row: int) -> str:
    """What is wrong with the first text that is none."""
    for row, text in enumerate(texts):
        place = f"X, row {first_row + row}"
        if not isinstance(text, str):
            return f"{place}: {show(text, 40)} is of type {type(text).__name__}, but must be a string"
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"{place}: not valid Unicode ({error.reason}); remove lone surrogates"
    return "X: texts cannot be encoded"


def _check_texts(texts: Any) -> None:
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise DataError(f"X must be a list of texts, but is {show(texts, 40)}; wrap a single text in a list")


def row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float32]:
    """One finite number of at least 0 per row, not all of them 0; without weights every row has 1."""
    if sample_weight is None:
        return np.ones(n_rows, np.float32)
    try:
        with np.errstate(over="ignore"):  # what overflows is found by the check of finite values
            weights = np.ascontiguousarray(sample_weight, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"sample_weight must have numbers only, that a float can hold ({error})") from error
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},), one per row, but has {weights.shape}")
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(wrong):
        raise DataError(
            f"sample_weight, row {wrong[0]}: must be finite and at least 0, but is {weights[wrong[0]]}"
        )
    if not weights.any():
        raise DataError("sample_weight is zero for every row; at least one weight must be positive")
    return weights
