"""Tables of text: a header with names, then a row per line, or several lines where a field is quoted.

Fields are separated by whatever separates the header: a tab, a comma or a semicolon.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from labeltree.data.bad_lines import BadLines, line_message
from labeltree.data.columns import Columns, cells_of, find_columns
from labeltree.data.formats import UTF8_MARK, TextFormat
from labeltree.data.memory import BLOCK_ROWS, join_texts
from labeltree.data.opening import Source
from labeltree.data.rows import Block, pointers

_DELIMITERS = "\t,;"
_LONGEST_FIELD = 1 << 26  # a quote that nobody closes would take in all lines after it


class Record(NamedTuple):
    """A row, and the line of the file at which it begins."""

    line: int
    text: str
    labels: list[str]


class _Csv(TextFormat):
    name = "csv"
    extensions = (".csv",)
    has_columns = True
    example = "text,labels\none two,a\ntwo three,b;c\n"

    def begins(self, line: bytes) -> bool:
        names = Columns()
        found = {cell.strip('"') for cell in _split_header(line.decode("utf-8", "replace"), names.text)[1]}
        return {names.text, names.labels} <= found

    def where_labels_are(self, label_prefix: str) -> str:
        columns = Columns()
        return (
            f'labels are in the column "{columns.labels}", or that of labels_column (--labels-column), '
            f'separated by "{columns.separator}" or label_separator (--label-separator)'
        )

    def blocks(self, source: Source, bad_lines: BadLines, block_bytes: int) -> Iterator[Block]:
        with source:
            records = _read(source, bad_lines)
            while part := list(islice(records, BLOCK_ROWS)):
                yield block_of_records(source.name, part)


def block_of_records(source: str, records: list[Record]) -> Block:
    """Rows of a table as a block."""
    n = len(records)
    start, end, buffer = join_texts(
        [record.text for record in records] + [label for record in records for label in record.labels]
    )
    return Block(
        source, buffer, start[:n], end[:n], start[n:], end[n:],
        pointers([len(record.labels) for record in records]),
        line=np.array([record.line for record in records], np.int64), labels_in_text=False,
    )  # fmt: skip


def _read(source: Source, bad_lines: BadLines) -> Iterator[Record]:
    columns, lines = source.columns, _Lines(source)
    header = next((line for line in lines if line.strip()), None)
    if header is None:
        return
    delimiter, names = _split_header(header, columns.text)
    text, labels = find_columns(source, names)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        line = lines.number + 1
        try:
            row = _next_row(rows)
        except csv.Error as error:
            reason = f"not CSV ({error}) in the row that begins here"
            _report(source, line, reason, lines.last, "close and double quotes", bad_lines)
            rows = csv.reader(lines, delimiter=delimiter, strict=True)
            continue
        if row is None:
            return
        if len(row) != len(names):
            if row:  # a line without anything is none
                reason = f"expected {len(names)} fields as in the header, but found {len(row)}"
                _report(source, line, reason, delimiter.join(row), "quote fields with a separator", bad_lines)
            continue
        found = [] if labels is None else cells_of(row[labels], columns.separator)
        if _has_stray_bytes([row[text], *found]):
            _report(source, line, "invalid UTF-8", row[text], "save the file as UTF-8", bad_lines)
            continue
        yield Record(line, row[text], found)


def _next_row(rows: Iterator[list[str]]) -> list[str] | None:
    """None at the end. The standard library has one limit for all who read CSV: it stays theirs."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, _LONGEST_FIELD))
    try:
        return next(rows, None)
    finally:
        csv.field_size_limit(before)


class _Lines:
    """Those of a file, counted; bytes that are not UTF-8 become lone surrogates."""

    def __init__(self, source: Source) -> None:
        self.number, self.last = 0, ""
        self._lines = self._read(source)

    def _read(self, source: Source) -> Iterator[bytes]:
        mark = UTF8_MARK
        for buffer in source.blocks():
            yield from buffer.tobytes().removeprefix(mark).splitlines(keepends=True)
            mark = b""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.last = next(self._lines).decode("utf-8", "surrogateescape")
        self.number += 1
        return self.last


def _has_stray_bytes(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return True
    return False


def _split_header(line: str, text: str) -> tuple[str, list[str]]:
    """The separator of a header, and its names: the first separator by which one is that of the texts."""
    tried = []
    for delimiter in _DELIMITERS:
        try:
            names = next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])
        except csv.Error:
            continue
        tried.append((delimiter, [name.strip() for name in names]))
    found = [each for each in tried if text in each[1]]
    return (found or sorted(tried, key=lambda each: -len(each[1])) or [(",", [])])[0]


def _report(source: Source, line: int, reason: str, value: str, fix: str, bad_lines: BadLines) -> None:
    shown = value.encode("utf-8", "surrogateescape")
    bad_lines.report(line_message(source.name, line, reason, 1, shown, fix))


CSV = _Csv()
