"""Which columns of a table have the texts and the labels."""

from __future__ import annotations

from typing import NamedTuple

from labeltree.errors import ParameterError, show


class Columns(NamedTuple):
    """Of CSV and Parquet files; other formats know theirs."""

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


def cells_of(labels: str, separator: str) -> list[str]:
    """The labels of a cell, without the spaces around each; what is empty is none."""
    return [label for part in labels.split(separator) if (label := part.strip())]
