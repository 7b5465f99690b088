"""Which columns of a table have the texts and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from labeltree.errors import DataError, ParameterError, show

_SHOWN_COLUMNS = 20


class Columns(NamedTuple):
    """Of tables: CSV and Parquet files, and rows by name in memory; other formats know theirs."""

    text: str = "text"
    labels: str = "labels"
    separator: str = ";"  # between the labels of a row, where they are one string

    def check(self) -> Columns:
        """Itself, or an error that says what is wrong with it."""
        for option, value in zip(("text_column", "labels_column", "label_separator"), self, strict=True):
            if type(value) is not str or not value:
                raise ParameterError(f"{option} must be a string that is not empty, but is {show(value)}")
        if self.text == self.labels:
            raise ParameterError(
                f"text_column and labels_column are both {show(self.text)}; give two columns"
            )
        return self


class Table(Protocol):
    """What is known of a table before its rows."""

    @property
    def name(self) -> str: ...  # for messages

    @property
    def columns(self) -> Columns: ...

    @property
    def wants_labels(self) -> bool: ...


def find_columns(table: Table, names: Sequence[str]) -> tuple[int, int | None]:
    """The places of texts and labels; None where labels are not wanted."""
    wanted = [("text", table.columns.text), ("labels", table.columns.labels)]
    places = []
    for what, column in wanted if table.wants_labels else wanted[:1]:
        if names.count(column) != 1:
            problem = "no column" if column not in names else "more than one column"
            shown = ", ".join(show(name) for name in names[:_SHOWN_COLUMNS])
            shown += ", ..." * (len(names) > _SHOWN_COLUMNS)
            raise DataError(
                f"{table.name}: {problem} {show(column)}, which should have the {what}; it has "
                f"{shown or 'none'}; name one with {what}_column (--{what}-column)"
            )
        places.append(names.index(column))
    return places[0], places[1] if table.wants_labels else None


def cells_of(labels: str, separator: str) -> list[str]:
    """The labels of a cell, without the spaces around each; what is empty is none."""
    return [label for part in labels.split(separator) if (label := part.strip())]
