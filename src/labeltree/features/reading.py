"""Data files in a model's features, some rows at a time as they arrive, or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import check_format
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, join_labels, join_rows
from labeltree.features.features import Features
from labeltree.features.strings import StringTable


def stream_rows(
    features: Features, labels: StringTable, path: str | Path, fmt: str, bad_lines: BadLines
) -> Iterator[tuple[SparseRows, LabelRows]]:
    """Features and labels (-1: not in the table) of some rows at a time. XMLC rows come all at once."""
    check_format(fmt)
    with Source(path) as source:
        yield from features.read(source, labels, fmt, bad_lines)


def read_rows(
    features: Features, labels: StringTable, path: str | Path, fmt: str, bad_lines: BadLines
) -> tuple[SparseRows, LabelRows]:
    """What :func:`stream_rows` gives, in one piece."""
    parts = list(stream_rows(features, labels, path, fmt, bad_lines))
    rows = join_rows([rows for rows, _ in parts], features.n_columns)
    return rows, join_labels([labels for _, labels in parts], len(labels))
