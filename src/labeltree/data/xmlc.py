"""Files of the extreme classification repository: a header ``N D L``, then rows ``1,7 3:0.5 9:1``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.bad_lines import BadLines, shorten
from labeltree.data.formats import UTF8_MARK, VectorFormat
from labeltree.data.lines import REASONS, Lines, Problem, Reasons, explain_status, line_blocks, report_lines
from labeltree.data.opening import BLOCK_BYTES, Source
from labeltree.data.rows import LabelRows, RowParts, SparseRows, join_labels, pointers
from labeltree.errors import DataError
from labeltree.kernels.scan import lines as scan
from labeltree.kernels.scan import xmlc as scan_xmlc
from labeltree.kernels.scan.xmlc import Limits
from labeltree.parameter import MOST_IDS

_HEADER = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")  # no row looks like that
_ROW = re.compile(rb"(?:\d+(?:,\d+)*)?(?:\s+\d+:[-+.\deE]+)+\s*")
_FIRST_WORD = re.compile(rb"[\d,]+(?::\S*)?")  # of a row: labels, or a feature
_FEATURE = re.compile(rb"(?<!\S)0*+(\d*+):\S*")  # its number without leading zeros: there may be many
_ROW_FIX = "write a row as 1,7 3:0.5 9:1"


class _Xmlc(VectorFormat):
    name = "xmlc"
    extensions = (".xmlc", ".svm", ".libsvm")
    example = "2 3 2\n0 0:1 1:1\n1 1:1 2:1\n"

    def begins(self, line: bytes) -> bool:
        return bool(_HEADER.fullmatch(line) or _ROW.fullmatch(line))

    def where_labels_are(self, label_prefix: str) -> str:
        return "labels are the numbers before the first space of a row"

    def content(
        self, source: Source, bad_lines: BadLines, n_columns: int | None = None, n_labels: int | None = None
    ) -> tuple[SparseRows, LabelRows]:
        return read_xmlc(source, bad_lines=bad_lines, n_columns=n_columns, n_labels=n_labels)

    def may_begin(self, word: bytes) -> bool:
        return _FIRST_WORD.fullmatch(word) is not None


XMLC = _Xmlc()


class _Header(NamedTuple):
    n_rows: int | None  # None: the file has no header
    n_columns: int
    n_labels: int


class _Rows(NamedTuple):
    """The rows of one buffer."""

    lengths: NDArray[np.int64]  # (n_rows,) number of features
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    label_lengths: NDArray[np.int64]  # (n_rows,)
    labels: NDArray[np.int32]


def read_xmlc(
    path: str | Path | Source,
    *,
    bad_lines: BadLines,
    n_columns: int | None = None,
    n_labels: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[SparseRows, LabelRows]:
    """The features and the labels of each row.

    ``n_columns`` and ``n_labels`` are those of a model, if there is one already: labels it does not know
    become -1, features it does not know are errors. With both, the header may be left out of the file.
    """
    with path if isinstance(path, Source) else Source(path) as source:
        found = _read_header(source, n_columns, n_labels)
        limits = Limits(
            n_columns=found.n_columns if n_columns is None else min(found.n_columns, n_columns),
            n_labels=found.n_labels,
            n_known_labels=found.n_labels if n_labels is None else n_labels,
        )
        features, labels = RowParts(source.space), list[LabelRows]()
        for part in _read_parts(source, found, limits, bad_lines, block_bytes):
            features.add(part.lengths, part.indices, part.values)
            labels.append(LabelRows(pointers(part.label_lengths), part.labels, limits.n_known_labels))
    width = found.n_columns if n_columns is None else n_columns
    return features.rows(width), join_labels(labels, limits.n_known_labels)


def _read_header(source: Source, n_columns: int | None, n_labels: int | None) -> _Header:
    line = source.first_bytes.removeprefix(UTF8_MARK).partition(b"\n")[0]
    if _HEADER.fullmatch(line):
        # Without leading zeros and cut: Python reads no number of more than 4,300 digits.
        sizes = [int(word.lstrip(b"0")[:20] or b"0") for word in line.split()]
        if max(sizes) > MOST_IDS:
            found = shorten(line.split()[sizes.index(max(sizes))])
            raise DataError(
                f"{source.name}, line 1: the header has {found}, but sizes are at most {MOST_IDS}; "
                "correct the header"
            )
        return _Header(*sizes)
    if n_columns is not None and n_labels is not None:
        return _Header(None, n_columns, MOST_IDS)
    raise DataError(
        f"{source.name}, line 1: expected the header N D L (rows, features, labels), but found "
        f"{shorten(line)}; add the header, or choose another format"
    )


def _read_parts(
    source: Source, header: _Header, limits: Limits, bad_lines: BadLines, block_bytes: int
) -> Iterator[_Rows]:
    n_rows = 0
    reasons = _reasons(header, limits)
    for lines, first_line in line_blocks(source, block_bytes):
        if header.n_rows is not None:
            n_header = 1 if first_line == 1 else 0
            first_line += n_header
            lines = _without_blank_end(lines.part(n_header, len(lines.start)), header.n_rows - n_rows)
        yield _read_rows(source.name, lines, first_line, limits, reasons, bad_lines)
        n_rows += len(lines.start)
    if header.n_rows is not None and n_rows != header.n_rows:
        raise DataError(
            f"{source.name}: the header promises {header.n_rows} rows, but the file has {n_rows}; "
            "is it cut off? Get it again, or correct the header"
        )


def _without_blank_end(lines: Lines, n_expected: int) -> Lines:
    """Leave out blank lines after the last promised row: editors add them."""
    n_kept = len(lines.start)
    while n_kept > max(n_expected, 0) and lines.start[n_kept - 1] == lines.end[n_kept - 1]:
        n_kept -= 1
    return lines.part(0, n_kept)


def _read_rows(
    source: str,
    lines: Lines,
    first_line: int,
    limits: Limits,
    reasons: Reasons,
    bad_lines: BadLines,
) -> _Rows:
    n_lines = len(lines.start)
    n_features = scan.count_byte(lines.buffer, scan_xmlc.COLON)
    indptr, label_indptr = np.empty(n_lines + 1, np.int64), np.empty(n_lines + 1, np.int64)
    indices, values = np.empty(n_features, np.int32), np.empty(n_features, np.float32)
    labels = np.empty(scan.count_byte(lines.buffer, scan_xmlc.COMMA) + n_lines, np.int32)
    n_values, n_labels = scan_xmlc.scan_sparse_rows(
        lines.buffer,
        lines.start,
        lines.end,
        limits,
        lines.status,
        lines.place,
        indptr,
        indices,
        values,
        label_indptr,
        labels,
    )
    lengths, label_lengths = np.diff(indptr), np.diff(label_indptr)
    if lines.status.any():
        report_lines(source, lines, first_line, functools.partial(_explain, reasons), bad_lines)
        keep = lines.status == scan.GOOD
        lengths, label_lengths = lengths[keep], label_lengths[keep]
    # copies: the arrays were made for the most there could be
    return _Rows(
        lengths, indices[:n_values].copy(), values[:n_values].copy(), label_lengths, labels[:n_labels].copy()
    )


def _explain(reasons: Reasons, lines: Lines, row: int) -> Problem:
    problem = explain_status(reasons, lines, row)
    if lines.status[row] != scan_xmlc.FEATURE_TWICE:
        return problem
    # Which is the second of two equal features: the kernel had sorted them when it met the pair.
    seen: set[bytes] = set()
    for match in _FEATURE.finditer(lines.content(row)):
        if match[1] in seen:
            return problem._replace(place=match.start())
        seen.add(match[1])
    return problem


def _reasons(header: _Header, limits: Limits) -> Reasons:
    if limits.n_columns < header.n_columns or header.n_rows is None:
        features = f"feature out of range: the model was trained with {limits.n_columns} features"
        feature_fix = f"ids go from 0 to {limits.n_columns - 1}"
    else:
        features = f"feature out of range: the header promises {limits.n_columns} features"
        feature_fix = f"ids go from 0 to {limits.n_columns - 1}; correct the header or the row"
    return {
        **REASONS,
        scan_xmlc.BAD_LABEL: ("expected label ids like 1,7", f"{_ROW_FIX}; no labels: begin with a space"),
        scan_xmlc.LABEL_RANGE: (
            f"label out of range: the header promises {limits.n_labels} labels",
            f"ids go from 0 to {limits.n_labels - 1}; correct the header or the row",
        ),
        scan_xmlc.BAD_FEATURE: ("expected feature:value", _ROW_FIX),
        scan_xmlc.FEATURE_RANGE: (features, feature_fix),
        scan_xmlc.BAD_VALUE: ("the value of a feature is not a number", _ROW_FIX),
        scan_xmlc.VALUE_RANGE: ("the value of a feature is too large", "use values below 3.4e38"),
        scan_xmlc.FEATURE_TWICE: ("a feature appears twice", "add its values up"),
    }
