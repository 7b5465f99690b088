"""Rows of a file or of standard input in a model's features, as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import check_format, detect_format
from labeltree.data.opening import Source
from labeltree.data.reading import read_blocks
from labeltree.data.rows import SparseRows
from labeltree.data.xmlc import read_xmlc
from labeltree.errors import DataError
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures

if TYPE_CHECKING:
    from labeltree.model import Model


def stream_rows(model: Model, path: str, fmt: str, bad_lines: BadLines) -> Iterator[SparseRows]:
    """Some rows at a time, labels left out. Numbered features (XMLC) come all at once."""
    check_format(fmt)
    with Source(path) as source:
        if isinstance(model.features, TextFeatures):
            yield from _stream_text(model.features, source, fmt, bad_lines)
            return
        if fmt not in ("auto", "xmlc"):
            raise DataError(
                f"{source.name}: the model was trained on numbered features, so its input must be XMLC rows "
                f"like 3:0.5 9:1, but --format is {fmt}"
            )
        rows, _ = read_xmlc(
            source,
            bad_lines=bad_lines,
            n_columns=model.n_features,
            n_labels=model.n_labels,
            header="optional",
        )
        yield rows


def _stream_text(
    features: TextFeatures, source: Source, fmt: str, bad_lines: BadLines
) -> Iterator[SparseRows]:
    if fmt == "auto":
        detected = detect_format(source.first_bytes, source.path)
        fmt = "fasttext" if detected == "xmlc" else detected  # a text may begin with a line of numbers
    if fmt == "xmlc":
        raise DataError(f"{source.name}: the model was trained on text, but --format is xmlc; give it text")
    no_labels = StringTable(1)
    for block in read_blocks(source, fmt, bad_lines=bad_lines):
        rows, _ = features.transform([block], no_labels, bad_lines)
        yield rows
