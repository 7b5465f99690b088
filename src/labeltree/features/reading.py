"""Data sets in a model's features: of files, some rows at a time or all at once, and what callers give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labeltree.data.bad_lines import BadLines, no_rows
from labeltree.data.formats import Reading
from labeltree.data.iterables import NO_LABELS, RowSource
from labeltree.data.labels import check_label_rows, label_rows
from labeltree.data.numbering import LabelNumbers
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, join_labels, join_rows
from labeltree.errors import DataError
from labeltree.features.features import Features
from labeltree.features.strings import StringTable


def stream_rows(
    features: Features,
    labels: StringTable,
    path: str | Path,
    reading: Reading,
    bad_lines: BadLines,
    *,
    wants_labels: bool = False,
) -> Iterator[tuple[SparseRows, LabelRows]]:
    """Features and labels (-1: not in the table) of some rows at a time. Vectors come all at once."""
    reading.check()
    with Source(path, columns=reading.columns, wants_labels=wants_labels) as source:
        yield from features.read(source, labels, reading.format, bad_lines)


def stream_single(
    features: Features, labels: StringTable, path: str | Path, reading: Reading, bad_lines: BadLines
) -> Iterator[Any]:
    """The texts or rows of a file one by one."""
    reading.check()
    with Source(path, columns=reading.columns) as source:
        yield from features.read_single(source, labels, reading.format, bad_lines)


def read_rows(
    features: Features, labels: StringTable, path: str | Path, reading: Reading, bad_lines: BadLines
) -> tuple[SparseRows, LabelRows]:
    """What :func:`stream_rows` gives, in one piece."""
    parts = list(stream_rows(features, labels, path, reading, bad_lines, wants_labels=True))
    rows = join_rows([rows for rows, _ in parts], features.n_columns)
    return rows, join_labels([labels for _, labels in parts], len(labels))


class DataSet(NamedTuple):
    """Rows in a model's features with their true labels, and where they come from."""

    rows: SparseRows
    labels: LabelRows  # -1: unknown to the model
    name: str  # a file's, or Y
    bad_lines: BadLines

    def counts(self, purpose: str) -> LabelCounts:
        """What the labels are; refuses data without rows, on which nothing can be done for the purpose."""
        if self.rows.n_rows == 0:
            raise no_rows(self.name, f"{purpose} on", self.bad_lines)
        n_unknown = int(np.count_nonzero(self.labels.indices < 0))
        n_empty = int(np.count_nonzero(np.diff(self.labels.indptr) == 0))
        return LabelCounts(len(self.labels.indices), n_unknown, n_empty, self.labels.n_rows)


def read_data_set(
    features: Features, labels: StringTable, path: str | Path, reading: Reading, *, skip_bad_lines: bool
) -> DataSet:
    """A file in a model's features and labels."""
    bad_lines = BadLines(skip=skip_bad_lines)
    rows, found = read_rows(features, labels, path, reading, bad_lines)
    bad_lines.log()
    return DataSet(rows, found, "standard input" if str(path) == "-" else str(path), bad_lines)


def source_data_set(features: Features, label_names: Sequence[str], source: RowSource) -> DataSet:
    """Rows with their labels, some at a time, of which texts are not kept."""
    labels, parts = LabelNumbers(label_names), []
    for part, X in source.parts(labels):
        with part.named():
            parts.append(features.given_rows(X))
    return DataSet(join_rows(parts, features.n_columns), labels.rows(), "X", BadLines())


def given_data_set(rows: SparseRows, Y: Any, label_names: Sequence[str]) -> DataSet:
    """Rows and their labels: lists, an indicator, or the ids that a file was read into."""
    if Y is None:
        raise DataError(NO_LABELS)
    if type(Y) is LabelRows:
        check_label_rows(Y, rows.n_rows, len(label_names))
    else:
        Y, _ = label_rows(Y, label_names, n_rows=rows.n_rows)
    return DataSet(rows, Y, "Y", BadLines())


class LabelCounts(NamedTuple):
    """The true labels of a data set, and those that no prediction can match."""

    labels: int
    unknown_labels: int  # not among the model's
    rows_without_labels: int
    rows: int

    def facts(self) -> dict[str, int]:
        """For ``--json``, where the rows have an entry of their own."""
        return {name: number for name, number in self._asdict().items() if name != "rows"}

    def notices(self, name: str) -> list[str]:
        """What lowers the scores for other reasons than the model, a line each."""
        if self.labels == 0:
            return [
                f"No row of {name} has a label, so all scores are 0; of a file, check the format (--format)."
            ]
        lines = []
        if self.rows_without_labels:
            lines.append(
                f"{self.rows_without_labels:,} of {self.rows:,} rows of {name} have no label: they score 0."
            )
        if self.unknown_labels == self.labels:
            lines.append(
                f"All {self.labels:,} labels of {name} are unknown to the model, so all scores are 0."
            )
        elif self.unknown_labels:
            lines.append(
                f"{self.unknown_labels:,} of {self.labels:,} labels of {name} are unknown to the model: "
                "they count as not found."
            )
        return lines
