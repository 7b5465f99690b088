"""Text files as blocks of rows: fastText lines, JSON lines and Annif's TSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import UTF8_MARK, check_format, detect_format
from labeltree.data.opening import BLOCK_BYTES, Source
from labeltree.data.rows import Block
from labeltree.data.text_formats import find_lines, make_block
from labeltree.errors import ParameterError


def read_blocks(
    path: str | Path | Source, fmt: str = "auto", *, bad_lines: BadLines, block_bytes: int = BLOCK_BYTES
) -> Iterator[Block]:
    """The rows of a text file (``-``: standard input), some megabytes at a time.

    An empty line is an empty row (predictions stay aligned with lines), but for JSONL, where it is nothing.
    The file is opened and its format found at once; lines are read as the blocks are asked for. Pass a
    :class:`Source` to look at the format of standard input before reading it.
    """
    check_format(fmt)
    source = path if isinstance(path, Source) else Source(path)
    if fmt == "auto":
        fmt = detect_format(source.first_bytes, source.path)
    if fmt == "xmlc":
        source.close()
        raise ParameterError(f"{source.name}: an XMLC file has numbered features and no text; use read_xmlc")
    return _blocks(source, fmt, bad_lines, block_bytes)


def _blocks(source: Source, fmt: str, bad_lines: BadLines, block_bytes: int) -> Iterator[Block]:
    first_line = 1
    first = len(UTF8_MARK) if source.first_bytes.startswith(UTF8_MARK) else 0
    with source:
        for buffer in source.blocks(block_bytes):
            lines = find_lines(buffer, first)
            first = 0
            yield make_block(source.name, fmt, lines, first_line, bad_lines)
            first_line += len(lines.start)
