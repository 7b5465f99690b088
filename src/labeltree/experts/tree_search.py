"""Search of one tree over arrays."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays
from labeltree.errors import ParameterError, show
from labeltree.kernels.check import CANONICAL
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.dense.quantized import QuantizedParameters
from labeltree.parameter import plain
from labeltree.query import NO_BEAM
from labeltree.storage.tensors import read_only
from labeltree.tree import LabelTree

if TYPE_CHECKING:
    from labeltree.features.text import ShortText
    from labeltree.kernels.search.kernels import Kernels

Labels = tuple[NDArray[np.int64], NDArray[np.int32]]  # indptr, label ids
Found = tuple[NDArray[np.int32], NDArray[np.float32]]  # label ids, probabilities; both (n_rows, k)
_NO_THRESHOLD = np.float32(0.0)
LONGEST_ROW = 1 << 14  # entries of a single row that takes the fast path

Parameters = QuantizedParameters | SparseParameters


class OneRow(threading.local):
    """A buffer for a single row, in each thread its own."""

    def __init__(self) -> None:
        self.indices = np.empty(LONGEST_ROW, np.int32)
        self.values = np.empty(LONGEST_ROW, np.float32)


class TreeSearch:
    """A tree with its node parameters, ready for the kernels (which get read-only arrays only)."""

    def __init__(self, tree: LabelTree, parameters: Parameters, n_features: int, link: str = "plt") -> None:
        self.tree, self.link = tree, link
        self.parameters = type(parameters)(*[read_only(array) for array in parameters])
        kind = KINDS["dense" if isinstance(parameters, QuantizedParameters) else "sparse"]
        # Kernels are imported late, but not anew at each call: a call takes microseconds.
        make_kernels, self.table, self._fields = kind.search(tree, self.parameters, n_features)
        self._plain = make_kernels(LINKS[link].kernel)
        self._normalized = make_kernels(LINKS[link].normalized)
        # Whether a search and `score` give a label the same bits. Dense siblings are summed in fours, a node
        # alone is not.
        self.scores_alike = not isinstance(parameters, QuantizedParameters)

    def _kernels_of(self, normalize: bool) -> Kernels:
        return self._normalized if normalize else self._plain

    @property
    def parameter_bytes(self) -> int:
        return sum(array.nbytes for array in self.parameters)

    def topk(
        self, arrays: Arrays, k: int, threshold: np.float32, normalize: bool,
        out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32], beam: int = NO_BEAM,
    ) -> None:  # fmt: skip
        """Fill the k best labels of each row; with a beam the best it finds, -1 where those are fewer."""
        rows, kernels = _read_only(arrays), self._kernels_of(normalize)
        if beam == NO_BEAM:
            kernels.topk(self.table, *rows, k, threshold, out_ids, out_probabilities)
        else:
            kernels.beam(self.table, *rows, k, beam, threshold, out_ids, out_probabilities)

    def topk_row(
        self, row: OneRow, n: int, norm: int, k: int, threshold: np.float32, normalize: bool
    ) -> Found | None:
        """As :meth:`topk` for the first n entries of a row, after their normalisation.

        None if there is something wrong with them.
        """
        ids, probabilities = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
        kernels = self._kernels_of(normalize)
        code = kernels.topk_row(
            self.table, row.indices, row.values, n, norm, k, threshold, ids, probabilities
        )
        return (ids, probabilities) if code == CANONICAL else None

    def topk_text(
        self, short: ShortText, text: bytes, k: int, threshold: np.float32, normalize: bool
    ) -> Found | None:
        """As :meth:`topk` for a short text; None if there is something wrong with it."""
        ids, probabilities = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
        kernels = self._kernels_of(normalize)
        is_good = kernels.topk_text(self.table, short.table, text, k, threshold, ids, probabilities)
        return (ids, probabilities) if is_good else None

    def above(
        self, arrays: Arrays, threshold: np.float32, normalize: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """How many labels each row has above the threshold; their ids, sorted within rows; probabilities."""
        n_rows, kernels = len(arrays[0]) - 1, self._kernels_of(normalize)
        capacity = max(1024, 8 * n_rows)
        indptr = np.zeros(n_rows + 1, np.int64)
        ids, probabilities = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        row = 0
        while True:
            row = kernels.above(self.table, *_read_only(arrays), row, threshold, indptr, ids, probabilities)
            if row == n_rows:
                break
            ids, probabilities = (np.concatenate([array, array]) for array in (ids, probabilities))
        lengths = np.diff(indptr)
        ids, probabilities = ids[: indptr[-1]], probabilities[: indptr[-1]]
        order = np.lexsort((ids, np.repeat(np.arange(n_rows), lengths)))
        return lengths, ids[order], probabilities[order]

    def score(self, arrays: Arrays, labels: Labels, normalize: bool) -> NDArray[np.float32]:
        """The probability of each given label of each row."""
        out, kernels = np.empty(len(labels[1]), np.float32), self._kernels_of(normalize)
        kernels.labels(self.table, *_read_only(arrays), read_only(labels[0]), read_only(labels[1]), out)
        return out


def _read_only(arrays: Arrays) -> Arrays:
    return read_only(arrays[0]), read_only(arrays[1]), read_only(arrays[2])


def check_threshold(threshold: Any) -> np.float32:
    if type(threshold) is float and threshold == 0.0:  # the default, for the sake of single rows
        return _NO_THRESHOLD
    threshold = plain(threshold)
    if type(threshold) not in (int, float):
        raise ParameterError(f"threshold must be a number from 0 to 1, but is {show(threshold)}")
    if not 0.0 <= threshold <= 1.0:
        raise ParameterError(f"threshold must be from 0 to 1, but is {show(threshold)}")
    return np.float32(threshold)
