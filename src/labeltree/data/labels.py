"""Labels given in memory: lists of names or numbers, or an indicator matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.rows import LabelRows, distinct_labels, pointers
from labeltree.errors import DataError, show


def label_rows(
    Y: Any, names: Sequence[str] | None = None, *, n_rows: int | None = None, first_row: int = 0
) -> tuple[LabelRows, list[str]]:
    """The label ids of each row, and the names of the ids.

    ``Y`` is a list of lists of labels (strings or integers), or an indicator matrix (SciPy sparse or 2-D
    NumPy) of 0 and 1. Given ``names`` (a model's), ids are positions in it and unknown labels are -1; else
    lists number labels in the order they appear, and matrices name them by their column. ``n_rows`` is the
    number of rows of X. Messages count rows from ``first_row``.
    """
    if names is not None:
        names = check_names(names)
    if is_indicator(Y):
        rows = rows_of_indicator(Y, None if names is None else len(names))
        found = [str(column) for column in range(rows.n_labels)] if names is None else names
    else:
        flat, lengths = _flatten_labels(Y, first_row)
        rows, found = _rows_of_lists(flat, lengths, names)
    if n_rows is not None and rows.n_rows != n_rows:
        raise DataError(f"X has {n_rows} rows, but Y has {rows.n_rows}; give each row of X its labels")
    return rows, found


def is_indicator(Y: Any) -> bool:
    """Whether Y is a matrix, and no lists."""
    return is_sparse(Y) or (isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.dtype.kind not in "OUS")


def check_label_rows(labels: LabelRows, n_rows: int, n_labels: int) -> None:
    """Whether these are label ids for so many rows."""
    if labels.n_rows != n_rows:
        raise DataError(f"X has {n_rows} rows, but labels has {labels.n_rows}")
    if len(labels.indices) and labels.indices.max() >= n_labels:
        raise DataError(f"label id {labels.indices.max()} is not below {n_labels}")


def _flatten_labels(Y: Any, first_row: int) -> tuple[list[str], list[int]]:
    """The names of all labels of all rows, and how many each row has."""
    if isinstance(Y, (str, bytes)) or not isinstance(Y, Iterable):
        raise DataError(f"Y must be a list of lists of labels or a matrix, but is {show(Y)}")
    flat: list[str] = []
    lengths: list[int] = []
    for row, labels in enumerate(Y, first_row):
        if type(labels) is not list:
            labels = _label_list(labels, row)
        for label in labels:
            if type(label) is not str or not label:
                label = _label_name(label, row)
            flat.append(label)
        lengths.append(len(labels))
    return flat, lengths


def _label_list(labels: Any, row: int) -> list[Any]:
    """The labels of a row as a list; sets are sorted, since their own order changes from run to run."""
    if labels is None:
        raise DataError(f"Y, row {row}: None instead of a list of labels; a row without labels is []")
    is_scalar = isinstance(labels, np.ndarray) and labels.ndim == 0  # has __iter__, but cannot be iterated
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable) or is_scalar:
        raise DataError(
            f"Y, row {row}: {show(labels)} is not a list of labels; wrap it in a list: [{show(labels)}]"
        )
    if isinstance(labels, (set, frozenset)):
        return sorted(labels, key=str)
    if isinstance(labels, dict):
        raise DataError(f"Y, row {row}: a dict is not a list of labels; use list(...) of its keys")
    return list(labels)


def _label_name(label: Any, row: int) -> str:
    if isinstance(label, str):
        if not label:
            raise DataError(f"Y, row {row}: a label is empty; leave it out")
        return str(label)  # also from numpy.str_
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        try:
            return str(int(label))
        except ValueError as error:  # more digits than Python writes
            raise DataError(
                f"Y, row {row}: the label {show(label)} has too many digits; give it a name"
            ) from error
    kind = type(label).__name__
    raise DataError(
        f"Y, row {row}: a label must be a string or an integer, but {show(label)} is of type {kind}"
    )


def _rows_of_lists(
    flat: list[str], lengths: list[int], names: Sequence[str] | None
) -> tuple[LabelRows, list[str]]:
    if names is None:
        names = list(dict.fromkeys(flat))
        _check_unicode(names, "Y")
    found = list(names)
    number = {name: id for id, name in enumerate(found)}
    ids = np.fromiter((number.get(name, -1) for name in flat), np.int32, len(flat))
    row = np.repeat(np.arange(len(lengths)), lengths)
    return LabelRows(*distinct_labels(row, ids, len(lengths)), len(found)), found


def check_names(names: Any) -> list[str]:
    """Names of labels that were given as such: distinct strings, not empty."""
    if isinstance(names, (str, bytes, set, frozenset, dict)) or not isinstance(names, Iterable):
        raise DataError(f"label_names must be a list of strings, but is {show(names)}")
    found = list(names)
    for id, name in enumerate(found):
        if not isinstance(name, str) or not name:
            raise DataError(
                f"label_names, number {id}: must be a string that is not empty, but is {show(name)}"
            )
    found = [str(name) for name in found]  # also from numpy.str_
    number = dict(zip(found, range(len(found)), strict=True))  # the last place of each
    if len(number) < len(found):
        twice = next(id for id, name in enumerate(found) if number[name] != id)
        raise DataError(
            f"label_names, numbers {twice} and {number[found[twice]]}: both are {show(found[twice])}; "
            "each label needs a name of its own"
        )
    _check_unicode(found, "label_names")
    return found


def _check_unicode(names: list[str], place: str) -> None:
    """Names are stored as UTF-8: better to fail now than when the trained model is saved."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        lone = error.object[error.start]
        name = next(name for name in names if lone in name)
        raise DataError(
            f"{place}: label {show(name)} is not valid Unicode; remove lone surrogates"
        ) from error


def rows_of_indicator(Y: Any, n_labels: int | None = None) -> LabelRows:
    """The columns that are 1 in each row, of so many if that is known."""
    matrix = sparse_rows(Y, name="Y")
    if n_labels not in (None, matrix.n_columns):
        raise DataError(f"Y has {matrix.n_columns} columns, but there are {n_labels} labels")
    wrong = np.flatnonzero((matrix.values != 0) & (matrix.values != 1))
    if len(wrong):
        position = wrong[0]
        row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
        raise DataError(
            f"Y, row {row}, column {matrix.indices[position]}: a matrix of labels has only 0 and 1, but this "
            f"is {matrix.values[position]:g}; give lists of labels instead"
        )
    keep = matrix.values != 0
    return LabelRows(pointers(keep)[matrix.indptr], matrix.indices[keep], matrix.n_columns)
