"""Labels that come some rows at a time: they get numbers as they appear, or those of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labeltree.data.labels import check_names, is_indicator, label_rows, rows_of_indicator
from labeltree.data.rows import LabelRows, distinct_labels, join_labels
from labeltree.errors import DataError


class LabelNumbers:
    """Collects labels to what :func:`~labeltree.data.labels.label_rows` makes of them all at once.

    Given names (a model's) are all there are: other labels are -1.
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._are_given = names is not None
        names = [] if names is None else check_names(names)
        self._number = {name: id for id, name in enumerate(names)}
        self._n_columns: int | None = None  # where the first rows had a matrix
        self._parts: list[LabelRows] = []

    @property
    def names(self) -> list[str]:
        return list(self._number)

    def add(self, Y: Any, n_rows: int, first_row: int) -> None:
        """The labels of the next rows; messages count them from the first row on."""
        if self._parts and is_indicator(Y) != (self._n_columns is not None):
            raise DataError(
                "Y is a matrix here and lists of labels elsewhere; give one of both in all blocks"
            )
        part = self._columns_of(Y) if is_indicator(Y) else self._numbers_of(Y, first_row)
        if part.n_rows != n_rows:
            raise DataError(f"X has {n_rows} rows, but Y has {part.n_rows}; give each row of X its labels")
        self._parts.append(part)

    def rows(self) -> LabelRows:
        """All that were added."""
        n_labels = len(self._number)
        return join_labels(self._parts, n_labels)._replace(n_labels=n_labels)

    def _columns_of(self, Y: Any) -> LabelRows:
        is_known = self._are_given or self._n_columns is not None
        rows = rows_of_indicator(Y, len(self._number) if is_known else None)
        if not is_known:
            self._number = {str(column): column for column in range(rows.n_labels)}
        self._n_columns = rows.n_labels
        return rows

    def _numbers_of(self, Y: Any, first_row: int) -> LabelRows:
        rows, found = label_rows(Y, first_row=first_row)
        number = self._number
        if not self._are_given:
            for name in found:
                number.setdefault(name, len(number))
        ids = np.fromiter((number.get(name, -1) for name in found), np.int32, len(found))
        row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        return LabelRows(*distinct_labels(row, ids[rows.indices], rows.n_rows), len(number))
