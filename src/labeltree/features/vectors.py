"""Features that are numbers already: sparse rows, weighed if they are counts, and normalised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines, shorten
from labeltree.data.formats import FORMATS, UTF8_MARK, check_columns, detect_format, plain_format
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.opening import Source
from labeltree.data.rows import (
    LabelRows,
    SparseRows,
    join_labels,
    join_rows,
    keep_entries,
    pointers,
    read_only,
)
from labeltree.errors import CorruptedModelError, DataError
from labeltree.features.counting import MOST_IDF, document_frequency, inverse_document_frequency
from labeltree.features.features import Features, Fitted
from labeltree.features.strings import StringTable
from labeltree.kernels.text.rows import NORM_L2, NORM_MEAN, NORM_NONE, weigh_rows
from labeltree.parameter import MOST_IDS
from labeltree.storage.space import IN_MEMORY, Space
from labeltree.storage.tensors import take_tensor

NORM_CODES = {"none": NORM_NONE, "l2": NORM_L2, "mean": NORM_MEAN}

_NO_IDF: NDArray[np.float32] = read_only(np.empty(0, np.float32))
_AT_ONCE = 1 << 18  # values that are looked at: numbers that are no counts end it early
# All columns are one block, of which all entries are kept.
_ONE: NDArray[np.float32] = np.ones(1, np.float32)
_ALL: NDArray[np.int64] = np.zeros(1, np.int64)


class VectorFeatures(Features):
    """Maps sparse rows to sparse rows of length 1 (l2), of absolute sum 1 (mean), or to themselves.

    Counts, such as bags of words are, are multiplied by the square root of the inverse document frequency:
    what is everywhere says little. Other numbers were weighed by whoever made them.
    """

    input = "vectors"
    has_parts = True

    def __init__(self, config: Config, n_columns: int, idf: NDArray[np.float32] = _NO_IDF) -> None:
        self.config = config
        self.n_columns = n_columns
        self.column_weight = read_only(idf)  # (n_columns,), or empty
        self.norm_of_rows = NORM_CODES[config.row_norm]

    @classmethod
    def recognises(cls, X: Any) -> bool:
        return type(X) is SparseRows or is_sparse(X) or getattr(X, "ndim", 1) != 1 or _holds_numbers(X)

    @classmethod
    def content(cls, X: Any) -> tuple[SparseRows, LabelRows]:
        rows = sparse_rows(X)
        return rows, LabelRows(pointers(np.zeros(rows.n_rows, np.int64)), np.empty(0, np.int32), 0)

    @classmethod
    def fit(
        cls,
        content: tuple[SparseRows, LabelRows],
        config: Config,
        bad_lines: BadLines | None = None,
        space: Space = IN_MEMORY,
    ) -> Fitted:
        """Labels are named by their numbers."""
        rows, Y = content
        idf = _idf_of_counts(rows) if _are_weighed(rows, config) else _NO_IDF
        features = cls(config, rows.n_columns, idf)
        labels = StringTable.from_strings([str(label) for label in range(Y.n_labels)])
        return Fitted(features, labels, features._weighed(rows, idf, space), Y)

    @classmethod
    def read_part(
        cls, content: tuple[SparseRows, LabelRows], config: Config, bad_lines: BadLines, space: Space
    ) -> dict[str, NDArray[Any]]:
        rows, Y = content
        sizes = np.array([rows.n_columns, Y.n_labels], np.int64)
        return {
            "X.indptr": rows.indptr,
            "X.indices": rows.indices,
            "X.values": rows.values,
            "Y.indptr": Y.indptr,
            "Y.indices": Y.indices,
            "sizes": sizes,
        }

    @classmethod
    def fit_parts(cls, parts: Iterator[Mapping[str, NDArray[Any]]], config: Config, space: Space) -> Fitted:
        rows, labels, sizes = list[SparseRows](), list[LabelRows](), list[NDArray[np.int64]]()
        for part in parts:
            sizes.append(part["sizes"])
            n_columns, n_labels = sizes[-1].tolist()
            rows.append(SparseRows(part["X.indptr"], part["X.indices"], part["X.values"], n_columns))
            labels.append(LabelRows(part["Y.indptr"], part["Y.indices"], n_labels))
        n_columns, n_labels = np.max(sizes, axis=0).tolist()
        joined = join_rows(rows, n_columns, space), join_labels(labels, n_labels)
        return cls.fit(joined, config, space=space)

    def given_rows(self, X: Any) -> SparseRows:
        if _holds_text(X):
            raise DataError(
                f"X is text, but the model was trained on vectors; give a matrix of {self.n_columns} columns"
            )
        return sparse_rows(X, self.n_columns)

    def single(self, X: Any) -> SparseRows:
        is_flat = isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biuf"
        return self.given_rows(X[None, :] if is_flat else X)

    def prepared(self, rows: SparseRows) -> SparseRows:
        """Normalised."""
        if rows.n_columns != self.n_columns:
            raise DataError(
                f"X has {rows.n_columns} features, but the model was trained with {self.n_columns}"
            )
        return self._weighed(rows, self.column_weight)

    def as_unseen(self, rows: SparseRows, held_out: NDArray[np.int64]) -> SparseRows:
        """Without the columns that no other row has: whoever counts the words of texts knows no others."""
        part = super().as_unseen(rows, held_out)
        is_known = document_frequency(rows) > document_frequency(part)
        return self._weighed(keep_entries(part, is_known[part.indices]), _NO_IDF)  # weighed before

    def _weighed(
        self, rows: SparseRows, column_weight: NDArray[np.float32], space: Space = IN_MEMORY
    ) -> SparseRows:
        """With these weights of columns, or none, and normalised; the caller's arrays stay as they are."""
        if self.norm_of_rows == NORM_NONE and not len(column_weight):
            return rows
        values = space.lasting(len(rows.values), np.float32)
        values[:] = rows.values
        end = read_only(np.array([self.n_columns], np.int64))
        indptr, indices = read_only(rows.indptr), read_only(rows.indices)
        weigh_rows(indptr, indices, values, column_weight, self.norm_of_rows, end, read_only(_ONE))
        return SparseRows(rows.indptr, rows.indices, values, self.n_columns)

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        """All at once."""
        is_auto = fmt == "auto"
        found = detect_format(source.first_bytes, source.path, self.input) if is_auto else FORMATS[fmt]
        check_columns(source, found)
        plain = plain_format(self.input)
        wanted = f"{plain.name.upper()} rows like {plain.example_row}"
        if found.input != self.input:
            raise DataError(
                f"{source.name}: the model was trained on numbered features, so its input must be {wanted}, "
                f"but the format is {fmt}"
            )
        words = source.first_bytes.removeprefix(UTF8_MARK).split(maxsplit=1)
        if is_auto and words and not found.may_begin(words[0]) and not bad_lines.skip:
            raise DataError(
                f"{source.name}: begins like text ({shorten(words[0])}), but the model was trained on "
                f"vectors; give {wanted}, or train a model on text"
            )
        yield found.content(source, bad_lines, self.n_columns, len(labels))

    def tensors(self) -> dict[str, NDArray]:
        n_columns = np.array([self.n_columns], np.int64)
        return {"features.n_columns": n_columns, "features.column_weight": self.column_weight}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> VectorFeatures:
        n_columns = take_tensor(tensors, "features.n_columns", np.int64)
        if len(n_columns) != 1 or not 0 <= n_columns[0] <= MOST_IDS:
            raise CorruptedModelError(f"features.n_columns is not one number of columns: {n_columns[:3]}")
        if "features.column_weight" not in tensors:  # as in files before format 3
            return cls(config, int(n_columns[0]))
        weight = take_tensor(tensors, "features.column_weight", np.float32)
        if len(weight) not in (0, n_columns[0]) or not np.all((weight > 0) & (weight <= MOST_IDF)):
            raise CorruptedModelError(
                f"features.column_weight is not {n_columns[0]} positive numbers up to {MOST_IDF:g}"
            )
        return cls(config, int(n_columns[0]), weight)


def _are_weighed(rows: SparseRows, config: Config) -> bool:
    """Whether rows are counts, and their norms are made here."""
    if not config.idf or NORM_CODES[config.row_norm] == NORM_NONE or not len(rows.values):
        return False
    parts = (rows.values[start : start + _AT_ONCE] for start in range(0, len(rows.values), _AT_ONCE))
    return all(part.min() >= 0.0 and np.array_equal(part, np.floor(part)) for part in parts)


def _idf_of_counts(rows: SparseRows) -> NDArray[np.float32]:
    """Of the columns; the square root does better than all of it where they are few."""
    return np.sqrt(inverse_document_frequency(document_frequency(rows), rows.n_rows))


def _holds_text(X: Any) -> bool:
    """Whether X is a text or a list of texts, judged by the first one."""
    if isinstance(X, (str, bytes)):
        return True
    is_list = isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1
    return is_list and isinstance(next(iter(X), None), (str, bytes))


def _holds_numbers(X: Any) -> bool:
    """A list of lists of numbers is a dense matrix, not texts; an array of numbers may have too few axes."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "biufc"
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (list, tuple, np.ndarray))
