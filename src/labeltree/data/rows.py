"""The two shapes all data has inside the package: sparse rows of features, and rows of label ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SparseRows(NamedTuple):
    """A CSR matrix without SciPy: row i is ``indices[indptr[i]:indptr[i + 1]]``, and so for values."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    indices: NDArray[np.int32]  # sorted and unique within a row
    values: NDArray[np.float32]  # finite
    n_columns: int

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1


class LabelRows(NamedTuple):
    """The label ids of each row; an id of -1 is a label the model has never seen (it can only be missed)."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    indices: NDArray[np.int32]  # sorted within a row; unique but for -1
    n_labels: int

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1
