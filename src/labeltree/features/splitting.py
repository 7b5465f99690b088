"""Blocks of text -> words and labels, some rows at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines, line_message
from labeltree.data.rows import Block, read_only
from labeltree.features.characters import kinds_for_words
from labeltree.kernels.text.packing import Pieces, pack_spans
from labeltree.kernels.text.words import (
    BAD_END,
    BAD_START,
    DONE,
    EMPTY_LABEL,
    MAX_WEIGHT,
    N_LABELS,
    N_PROGRESS,
    N_WORDS,
    ROW,
    TextOptions,
    split_rows,
)

# Text per call of the kernel: small enough for its output to stay in the processor's cache.
BATCH_BYTES = 1 << 16

_NO_KINDS: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_KINDS.flags.writeable = False
# By the parameter tokens: what each character is to words.
_KINDS: dict[str, Callable[[], NDArray[np.uint8]]] = {
    "words": kinds_for_words,
    "spaces": lambda: _NO_KINDS,
}


class Batch(NamedTuple):
    """The words and labels of some consecutive rows; the next batch overwrites them."""

    words: Pieces
    n_words: int
    weights: NDArray[np.float32]  # (n_words,), or empty if words carry none
    word_end: NDArray[np.int64]  # (n_rows,) how many words belong to this row and those before
    labels: Pieces
    n_labels: int
    label_end: NDArray[np.int64]  # (n_rows,)


class Scratch(NamedTuple):
    """Arrays that :func:`split_rows` fills, for rows of at most so many bytes in total."""

    n_bytes: int
    words: Pieces
    weights: NDArray[np.float32]
    labels: Pieces


def make_scratch(n_bytes: int, weighted: bool) -> Scratch:
    # A word has at least one byte and lower-casing adds at most half of them, so it takes at most
    # 1 + 1.5 * bytes / 8 packed words. Memory that is not written is never taken from the machine.
    packed = np.empty(2 * n_bytes + 1, np.uint64)
    words, labels = (
        Pieces(packed, np.empty(n_bytes, np.int64), np.empty(n_bytes, np.int64), np.empty(n_bytes, np.uint64))
        for _ in range(2)
    )
    return Scratch(n_bytes, words, np.empty(n_bytes if weighted else 0, np.float32), labels)


def text_options(config: Config, labels_in_text: bool) -> TextOptions:
    lower_case = _lower_case_table() if config.lowercase else np.empty(0, np.uint16)
    # What is written beside a word, its weight, ends at white space.
    kinds = _NO_KINDS if config.weighted_words else _KINDS[config.tokens]()
    prefix = config.label_prefix.encode() if labels_in_text else b""
    return TextOptions(lower_case, kinds, np.frombuffer(prefix, np.uint8), config.weighted_words)


def split_block(block: Block, config: Config, bad_lines: BadLines) -> Iterator[Batch]:
    """All good rows of a block, in order; the others are reported."""
    options = text_options(config, block.labels_in_text)
    buffer = read_only(block.buffer)
    row_bytes = block.text_end - block.text_start
    scratch = make_scratch(BATCH_BYTES + int(row_bytes.max(initial=0)), config.weighted_words)
    word_end, label_end = np.empty(block.n_rows, np.int64), np.empty(block.n_rows, np.int64)
    progress = np.zeros(N_PROGRESS, np.int64)
    row = 0
    while row < block.n_rows:
        status = split_rows(
            buffer,
            block.text_start,
            block.text_end,
            options,
            BATCH_BYTES,
            progress,
            scratch.words,
            scratch.weights,
            word_end,
            scratch.labels,
            label_end,
        )
        stop, n_words = int(progress[ROW]), int(progress[N_WORDS])
        if block.labels_in_text:
            labels, n_labels, ends = scratch.labels, int(progress[N_LABELS]), label_end[row:stop]
        else:
            labels, n_labels, ends = _span_labels(block, buffer, row, stop)
        if stop > row:
            weights = scratch.weights[:n_words]
            yield Batch(scratch.words, n_words, weights, word_end[row:stop], labels, n_labels, ends)
        if status != DONE:
            _report(block, stop, status, progress, bad_lines)
            progress[ROW] += 1
        row = int(progress[ROW])


def texts_of(block: Block, config: Config) -> list[str]:
    """The texts of a block's good rows, without the labels among their words."""
    content = block.buffer.tobytes()
    prefix = config.label_prefix.encode()
    texts = []
    for start, end in zip(block.text_start.tolist(), block.text_end.tolist(), strict=True):
        text = content[start:end]
        if block.labels_in_text:
            words = text.split()
            if prefix in words:  # an empty label: the row is reported elsewhere
                continue
            text = b" ".join(word for word in words if not word.startswith(prefix))
        texts.append(text.decode("utf-8", "replace"))
    return texts


def _span_labels(
    block: Block, buffer: NDArray[np.uint8], row: int, stop: int
) -> tuple[Pieces, int, NDArray[np.int64]]:
    spans = slice(block.label_indptr[row], block.label_indptr[stop])
    start, end = block.label_start[spans], block.label_end[spans]
    n = len(start)
    pieces = Pieces(
        np.empty(int(((end - start + 7) // 8).sum()), np.uint64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.uint64),
    )
    pack_spans(buffer, start, end, pieces)
    return pieces, n, block.label_indptr[row + 1 : stop + 1] - block.label_indptr[row]


def _report(block: Block, row: int, status: int, progress: NDArray[np.int64], bad_lines: BadLines) -> None:
    if not bad_lines.wants_message:
        bad_lines.report()
        return
    start, end = int(progress[BAD_START]), int(progress[BAD_END])
    if status == EMPTY_LABEL:
        reason, fix = "a label is empty", "write its name right after the label prefix"
    else:
        reason, fix = (
            "a word without a usable weight",
            f"write word:number, the number from 0 to {MAX_WEIGHT:g}",
        )
    column = start - int(block.text_start[row]) + 1
    value = block.buffer[start:end].tobytes()
    line = int(block.line[row])
    bad_lines.report(line_message(block.source, line, reason, column, value, fix, block.unit))


@functools.cache
def _lower_case_table() -> NDArray[np.uint16]:
    """(65536,) the lower case of each character, where that is one of the first 65536 characters itself."""
    table = np.arange(1 << 16, dtype=np.uint16)
    for code in range(1 << 16):
        lower = chr(code).lower()
        if len(lower) == 1 and ord(lower) < 1 << 16:
            table[code] = ord(lower)
    table.flags.writeable = False
    return table
