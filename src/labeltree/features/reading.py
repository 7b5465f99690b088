"""Data files in a model's features, some rows at a time as they arrive, or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labeltree.data.bad_lines import BadLines, shorten
from labeltree.data.formats import FORMATS, UTF8_MARK, VectorFormat, check_format, detect_format, find_format
from labeltree.data.opening import Source
from labeltree.data.reading import read_blocks
from labeltree.data.rows import LabelRows, SparseRows, join_labels, join_rows
from labeltree.errors import DataError
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures

Features = TextFeatures | VectorFeatures


def stream_rows(
    features: Features, labels: StringTable, path: str | Path, fmt: str, bad_lines: BadLines
) -> Iterator[tuple[SparseRows, LabelRows]]:
    """Features and labels (-1: not in the table) of some rows at a time. Vectors come all at once."""
    check_format(fmt)
    with Source(path) as source:
        if isinstance(features, VectorFeatures):
            yield _read_vectors(features, labels, source, fmt, bad_lines)
            return
        found = find_format(fmt, source)
        if isinstance(found, VectorFormat):
            hint = "; if it is text that only begins like one, set the format: --format fasttext"
            raise DataError(
                f"{source.name}: an {found.name.upper()} file, but the model was trained on text"
                f"{hint * (fmt == 'auto')}"
            )
        for block in read_blocks(source, found.name, bad_lines=bad_lines):
            yield features.transform([block], labels, bad_lines)


def read_rows(
    features: Features, labels: StringTable, path: str | Path, fmt: str, bad_lines: BadLines
) -> tuple[SparseRows, LabelRows]:
    """What :func:`stream_rows` gives, in one piece."""
    parts = list(stream_rows(features, labels, path, fmt, bad_lines))
    rows = join_rows([rows for rows, _ in parts], features.n_columns)
    return rows, join_labels([labels for _, labels in parts], len(labels))


def _read_vectors(
    features: VectorFeatures, labels: StringTable, source: Source, fmt: str, bad_lines: BadLines
) -> tuple[SparseRows, LabelRows]:
    found = detect_format(source.first_bytes, source.path, "vectors") if fmt == "auto" else FORMATS[fmt]
    if not isinstance(found, VectorFormat):
        raise DataError(
            f"{source.name}: the model was trained on numbered features, so its input must be XMLC rows "
            f"like 3:0.5 9:1, but the format is {fmt}"
        )
    words = source.first_bytes.removeprefix(UTF8_MARK).split(maxsplit=1)
    if fmt == "auto" and words and not found.may_begin(words[0]) and not bad_lines.skip:
        raise DataError(
            f"{source.name}: begins like text ({shorten(words[0])}), but the model was trained on vectors; "
            "give XMLC rows like 3:0.5 9:1, or train a model on text"
        )
    return found.rows(source, bad_lines, features.n_columns, len(labels))
