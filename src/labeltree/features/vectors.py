"""Features that are numbers already: sparse rows, only normalised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import SparseRows
from labeltree.errors import CorruptedModelError, DataError
from labeltree.kernels.text.counts import NORM_L2, NORM_MEAN, NORM_NONE, TF_COUNT, weigh_rows
from labeltree.storage.tensors import read_only, take_tensor

NORM_CODES = {"none": NORM_NONE, "l2": NORM_L2, "mean": NORM_MEAN}

_NO_IDF: NDArray[np.float32] = np.empty(0, np.float32)


class VectorFeatures:
    """Maps sparse rows to sparse rows of length 1 (l2), of absolute sum 1 (mean), or to themselves."""

    def __init__(self, config: Config, n_columns: int) -> None:
        self.config = config
        self.n_columns = n_columns
        self.norm_of_rows = NORM_CODES[config.row_norm]  # what is done to a prepared row

    @classmethod
    def fit(cls, rows: SparseRows, config: Config) -> tuple[VectorFeatures, SparseRows]:
        features = cls(config, rows.n_columns)
        return features, features.transform(rows)

    def transform(self, rows: SparseRows) -> SparseRows:
        """Normalised rows; the caller's arrays stay as they are."""
        if rows.n_columns != self.n_columns:
            raise DataError(
                f"X has {rows.n_columns} features, but the model was trained with {self.n_columns}"
            )
        if self.norm_of_rows == NORM_NONE:
            return rows
        indptr, indices, values, _ = rows
        values = values.copy()
        weigh_rows(
            read_only(indptr), read_only(indices), values, read_only(_NO_IDF), TF_COUNT, self.norm_of_rows
        )
        return SparseRows(indptr, indices, values, self.n_columns)

    def tensors(self) -> dict[str, NDArray]:
        """Everything but the config, by name, for the model file."""
        return {"features.n_columns": np.array([self.n_columns], np.int64)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> VectorFeatures:
        """The features whose :meth:`tensors` these are."""
        n_columns = take_tensor(tensors, "features.n_columns", np.int64)
        if len(n_columns) != 1 or not 0 <= n_columns[0] < 2**31:
            raise CorruptedModelError(f"features.n_columns is not one number of columns: {n_columns[:3]}")
        return cls(config, int(n_columns[0]))
