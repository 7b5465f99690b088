"""Words or sparse vectors with a dense vector of each row beside them.

The dense numbers are a block of columns behind the others: scaled to length 1, times ``dense_weight``, and
then the whole row is scaled. Rows are similar, for neighbours, by the others alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, keep_entries, pointers
from labeltree.errors import CorruptedModelError, DataError, ParameterError, show
from labeltree.features.features import Features, Fitted
from labeltree.features.places import Places
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures
from labeltree.kernels.text.rows import NORM_NONE
from labeltree.storage.space import IN_MEMORY, Space
from labeltree.storage.tensors import take_tensor

MOST_DENSE = 1 << 16  # numbers of a dense vector

Dense = NDArray[np.float32]  # (n_rows, n_dense)


class JoinedFeatures(Features):
    """Rows of other features, the base, and dense vectors beside them, given as a pair of both."""

    input = "joined"
    takes_pairs = True
    norm_of_rows = NORM_NONE  # a prepared row stays as it is

    def __init__(self, config: Config, base: Features, n_dense: int) -> None:
        self.config, self.base, self.n_dense = config, base, n_dense
        self.n_columns = base.n_columns + n_dense

    @property
    def n_compared(self) -> int:
        return self.base.n_compared

    @property
    def n_sparse(self) -> int:
        return self.base.n_columns

    def facts(self) -> dict[str, str]:
        return self.base.facts() | {"beside": "vectors"}

    @classmethod
    def recognises(cls, X: Any) -> bool:
        """A pair whose second part is a matrix, or lists of numbers; beside texts also what has numbers at
        all, to say what is wrong with it."""
        if type(X) is SparseRows or not isinstance(X, (list, tuple)) or len(X) != 2:
            return False
        rows, beside = X
        if isinstance(rows, (str, bytes, Path)):
            return False
        is_nested = _begins_with(beside, (list, tuple, np.ndarray))
        return (
            getattr(beside, "ndim", 0) == 2
            or is_nested
            or (_begins_with(rows, str) and _begins_with(beside, (int, float, np.number)))
        )

    @classmethod
    def facts_of(cls, X: Any) -> dict[str, str]:
        return _base_of(X[0]).facts_of(X[0]) | {"beside": "vectors"}

    @classmethod
    def content(cls, X: Any) -> Any:
        return _base_of(X[0]), X[0], read_dense(X[1])

    @classmethod
    def fit(
        cls, content: Any, config: Config, bad_lines: BadLines | None = None, space: Space = IN_MEMORY
    ) -> Fitted:
        kind, X, dense = content
        if config.embed != "none":
            raise DataError(f"X has vectors beside the rows, and embed is {config.embed}: give one of both")
        if not 1 <= dense.shape[1] <= MOST_DENSE:
            raise DataError(
                f"the vectors beside X have {dense.shape[1]} columns, but must have 1 to {MOST_DENSE}"
            )
        if not config.trees:
            raise DataError("vectors beside X are for trees of labels, but trees is 0; give X alone")
        check_norm(config)
        fitted = kind.fit(kind.content(X), config, bad_lines, space)
        return cls(config, fitted.features, dense.shape[1])._with(fitted, dense)

    def _with(self, fitted: Fitted, dense: Dense) -> Fitted:
        return fitted._replace(features=self, rows=self._join(fitted.rows, dense))

    def given_rows(self, X: Any) -> SparseRows:
        """Rows of all columns are those of :meth:`prepared` already."""
        if type(X) is SparseRows or is_sparse(X):
            return sparse_rows(X, self.n_columns)
        if not self.recognises(X):
            raise DataError(
                f"X must be a pair, [texts or rows, vectors of {self.n_dense} columns], as the model was "
                f"trained on, but is {show(X)}"
            )
        return self._join(self.base.prepared(self.base.given_rows(X[0])), read_dense(X[1]))

    def prepared(self, rows: SparseRows) -> SparseRows:
        return rows

    def as_unseen(self, rows: SparseRows, held_out: NDArray[np.int64]) -> SparseRows:
        """The dense vectors stay as they are: nothing of them was learned from the rows."""
        n_base = self.base.n_columns
        of_base = keep_entries(rows, rows.indices < n_base)._replace(n_columns=n_base)
        part = super().as_unseen(rows, held_out)
        return self._join(self.base.as_unseen(of_base, held_out), self._dense_of(part))

    def _dense_of(self, rows: SparseRows) -> Dense:
        dense = np.zeros((rows.n_rows, self.n_dense), np.float32)
        row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        chosen = rows.indices >= self.base.n_columns
        dense[row[chosen], rows.indices[chosen] - self.base.n_columns] = rows.values[chosen]
        return dense

    def _join(self, rows: SparseRows, dense: Dense) -> SparseRows:
        """Prepared rows of the base with their dense vectors, of any length, ready for the experts."""
        if dense.shape != (rows.n_rows, self.n_dense):
            raise DataError(
                f"the vectors beside X are of shape {dense.shape}, but must be ({rows.n_rows}, "
                f"{self.n_dense}): one of {self.n_dense} numbers for each row of X"
            )
        length = np.sqrt(np.square(dense, dtype=np.float64).sum(axis=1, keepdims=True))
        beside = (dense * (self.config.dense_weight / np.maximum(length, 1e-30))).astype(np.float32)
        filled = beside != 0
        n_entries = np.diff(rows.indptr)
        indptr = pointers(n_entries + filled.sum(axis=1))
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        place = np.repeat(indptr[:-1] - rows.indptr[:-1], n_entries) + np.arange(len(rows.indices))
        indices[place], values[place] = rows.indices, rows.values
        is_beside = np.ones(len(indices), np.bool_)
        is_beside[place] = False
        indices[is_beside] = rows.n_columns + np.nonzero(filled)[1]
        values[is_beside] = beside[filled]
        if self.config.row_norm == "l2":
            _scale(indptr, values)
        return SparseRows(indptr, indices, values, self.n_columns)

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        raise DataError(
            f"{source.name}: the model was trained on rows with vectors beside them, which no file format "
            "has; call the model from Python with [X, vectors]"
        )

    def feature_name(self, column: int) -> str:
        n_base = self.base.n_columns
        return self.base.feature_name(column) if column < n_base else f"number {column - n_base} beside"

    def text_of(self, X: Any) -> str | None:
        return self.base.text_of(X[0]) if self.recognises(X) else None

    def places(self, text: str, farthest: int = 1) -> Places:
        """Of the base: a vector beside a text is of all of it."""
        return self.base.places(text, farthest)

    def tensors(self) -> dict[str, NDArray]:
        return self.base.tensors() | {"features.n_dense": np.array([self.n_dense], np.int64)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> JoinedFeatures:
        n_dense = take_tensor(tensors, "features.n_dense", np.int64)
        if len(n_dense) != 1 or not 1 <= n_dense[0] <= MOST_DENSE:
            raise CorruptedModelError(f"features.n_dense is not one number of columns: {n_dense[:3]}")
        kind: type[Features] = TextFeatures if "features.words" in tensors else VectorFeatures
        return cls(config, kind.from_tensors(tensors, config), int(n_dense[0]))


def check_norm(config: Config) -> None:
    """Means of words and vectors beside them have no length in common."""
    if config.row_norm == "mean":
        raise ParameterError(
            "row_norm='mean' is not for rows with dense vectors beside them; set row_norm='l2'"
        )


def _begins_with(values: Any, kind: Any) -> bool:
    return isinstance(values, (list, tuple, np.ndarray)) and len(values) > 0 and isinstance(values[0], kind)


def _base_of(X: Any) -> type[Features]:
    return VectorFeatures if VectorFeatures.recognises(X) else TextFeatures


def read_dense(X: Any) -> Dense:
    """A matrix of finite numbers."""
    try:
        array = np.asarray(X.todense() if is_sparse(X) else X)
    except ValueError as error:
        raise DataError(
            f"the vectors beside X must be a 2-D array of numbers, but cannot be one ({error}); give all of "
            "them the same length"
        ) from error
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(
            f"the vectors beside X must be a 2-D array of numbers, but have shape {array.shape} and type "
            f"{array.dtype}"
        )
    with np.errstate(over="ignore"):  # what overflows is not finite then
        dense = np.ascontiguousarray(array, np.float32)
    bad = np.argwhere(~np.isfinite(dense))
    if len(bad):
        row, column = bad[0].tolist()
        raise DataError(
            f"the vectors beside X, row {row}, column {column}: the value is {array[row, column]}; NaN, inf "
            "and what exceeds 32-bit floats cannot be used: replace or remove it"
        )
    return dense


def _scale(indptr: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Rows to length 1, in place."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    squares = np.bincount(row, np.square(values, dtype=np.float64), len(indptr) - 1)
    values /= np.sqrt(np.maximum(squares, 1e-30))[row].astype(np.float32)
