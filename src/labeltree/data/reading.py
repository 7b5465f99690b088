"""Text files as blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import TextFormat, check_format, find_format
from labeltree.data.opening import BLOCK_BYTES, Source
from labeltree.data.rows import Block
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
    found = find_format(fmt, source)
    if not isinstance(found, TextFormat):
        source.close()
        raise ParameterError(
            f"{source.name}: a file of format {found.name} holds vectors, not text; give a file of texts"
        )
    return found.blocks(source, bad_lines, block_bytes)
