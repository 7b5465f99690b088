"""Features that are numbers already: sparse rows, only normalised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines, shorten
from labeltree.data.formats import FORMATS, UTF8_MARK, detect_format, plain_format
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, pointers, read_only
from labeltree.errors import CorruptedModelError, DataError
from labeltree.features.features import Features, Fitted
from labeltree.features.strings import StringTable
from labeltree.kernels.text.counts import NORM_L2, NORM_MEAN, NORM_NONE, TF_COUNT, weigh_rows
from labeltree.parameter import MOST_IDS
from labeltree.storage.tensors import take_tensor

NORM_CODES = {"none": NORM_NONE, "l2": NORM_L2, "mean": NORM_MEAN}

_NO_IDF: NDArray[np.float32] = np.empty(0, np.float32)
_ONE: NDArray[np.float32] = np.ones(1, np.float32)


class VectorFeatures(Features):
    """Maps sparse rows to sparse rows of length 1 (l2), of absolute sum 1 (mean), or to themselves."""

    input = "vectors"

    def __init__(self, config: Config, n_columns: int) -> None:
        self.config = config
        self.n_columns = n_columns
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
        cls, content: tuple[SparseRows, LabelRows], config: Config, bad_lines: BadLines | None = None
    ) -> Fitted:
        """Labels are named by their numbers."""
        rows, Y = content
        features = cls(config, rows.n_columns)
        labels = StringTable.from_strings([str(label) for label in range(Y.n_labels)])
        return Fitted(features, labels, features.prepared(rows), Y)

    def given_rows(self, X: Any) -> SparseRows:
        if _holds_text(X):
            raise DataError(
                f"X is text, but the model was trained on vectors; give a matrix of {self.n_columns} columns"
            )
        return sparse_rows(X, self.n_columns)

    def prepared(self, rows: SparseRows) -> SparseRows:
        """Normalised; the caller's arrays stay as they are."""
        if rows.n_columns != self.n_columns:
            raise DataError(
                f"X has {rows.n_columns} features, but the model was trained with {self.n_columns}"
            )
        if self.norm_of_rows == NORM_NONE:
            return rows
        indptr, indices, values, _ = rows
        values = values.copy()
        weigh_rows(
            read_only(indptr),
            read_only(indices),
            values,
            read_only(_NO_IDF),
            TF_COUNT,
            self.norm_of_rows,
            read_only(np.array([self.n_columns], np.int64)),
            read_only(_ONE),
        )
        return SparseRows(indptr, indices, values, self.n_columns)

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        """All at once."""
        is_auto = fmt == "auto"
        found = detect_format(source.first_bytes, source.path, self.input) if is_auto else FORMATS[fmt]
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
        return {"features.n_columns": np.array([self.n_columns], np.int64)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> VectorFeatures:
        n_columns = take_tensor(tensors, "features.n_columns", np.int64)
        if len(n_columns) != 1 or not 0 <= n_columns[0] <= MOST_IDS:
            raise CorruptedModelError(f"features.n_columns is not one number of columns: {n_columns[:3]}")
        return cls(config, int(n_columns[0]))


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
