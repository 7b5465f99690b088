"""Bytes as files of data, and what readers made of them in plain Python."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import TextFormat, check_format, find_format
from labeltree.data.opening import BLOCK_BYTES, Source
from labeltree.data.rows import Block
from labeltree.reference.scan import TextRow


class Read(NamedTuple):
    rows: list[TextRow]
    bad: list[int]  # numbers of the lines that were left out


def read_blocks(
    path: str | Path | Source, fmt: str = "auto", *, bad_lines: BadLines, block_bytes: int = BLOCK_BYTES
) -> Iterator[Block]:
    """The rows of a text file; it is opened and its format found at once."""
    check_format(fmt)
    source = path if isinstance(path, Source) else Source(path)
    found = find_format(fmt, source)
    assert isinstance(found, TextFormat)
    return found.blocks(source, bad_lines, block_bytes)


def rows_of(blocks: Iterable[Block]) -> list[TextRow]:
    rows = []
    for block in blocks:
        data = block.buffer.tobytes()
        for i in range(block.n_rows):
            spans = range(block.label_indptr[i], block.label_indptr[i + 1])
            labels = [data[block.label_start[span] : block.label_end[span]] for span in spans]
            text = data[block.text_start[i] : block.text_end[i]]
            rows.append(TextRow(int(block.line[i]), text, labels))
    return rows


def read_bytes(data: bytes, reader: Any, **options: Any) -> Any:
    """What a reader of files gives for these bytes."""
    with mock.patch("sys.stdin") as stdin:
        stdin.buffer = io.BytesIO(data)
        result = reader("-", **options)
        return result if isinstance(result, tuple) else list(result)


def read_text(data: bytes, fmt: str, block_bytes: int = 1 << 12) -> Read:
    """The rows of a file of text, its bad lines left out."""
    bad_lines = BadLines(skip=True, keep=10**6)
    rows = rows_of(read_bytes(data, read_blocks, fmt=fmt, bad_lines=bad_lines, block_bytes=block_bytes))
    bad = [int(message.split("line ")[1].split(":")[0]) for message in bad_lines.messages]
    assert bad_lines.skipped == len(bad)
    return Read(rows, bad)
