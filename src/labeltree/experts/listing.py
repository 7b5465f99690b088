"""Experts that know all labels of a row whose probability is not 0, which are few."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, pointers
from labeltree.experts.ensemble import best_per_row
from labeltree.experts.expert import Above, Expert, Labels
from labeltree.query import Query


def fill_lists(fill: Callable[..., int], n_rows: int, shape: tuple[int, ...] = ()) -> Above:
    """Labels of rows with their votes, by a kernel that fills as many rows as have room.

    It is called with the row to begin with and arrays, and returns the first row that found no room, or
    ``n_rows``. ``shape`` are the axes of the votes before that of labels.
    """
    indptr, row = np.zeros(n_rows + 1, np.int64), 0
    capacity = max(1024, 128 * n_rows)
    ids, votes = np.empty(capacity, np.int32), np.empty((*shape, capacity), np.float32)
    while (row := fill(row, indptr, ids, votes)) < n_rows:
        ids, votes = np.concatenate([ids, ids]), np.concatenate([votes, votes], axis=-1)
    return indptr[1:] - indptr[:-1], ids[: indptr[-1]], votes[..., : indptr[-1]]


class ListingExpert(Expert):
    """Answers every question from its lists."""

    lists_all = True
    scores_alike = True

    @abstractmethod
    def nonzero(self, arrays: Arrays) -> Above:
        """All labels of each row whose probability is not 0."""

    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        lengths, ids, probabilities = self.nonzero(arrays)
        out_ids[:], out_probabilities[:] = best_per_row((pointers(lengths), ids), probabilities, query.k)
        if query.threshold > 0.0:
            is_low = out_probabilities < query.threshold
            out_ids[is_low], out_probabilities[is_low] = -1, 0.0
            return np.ones(len(out_ids), np.bool_)
        for row in np.flatnonzero(lengths < query.k):  # labels of probability 0, the lowest first
            n = int(lengths[row])
            others = np.setdiff1d(np.arange(min(self.n_labels, query.k)), out_ids[row, :n])[: query.k - n]
            out_ids[row, n : n + len(others)] = others
        return np.ones(len(out_ids), np.bool_)

    def above(self, arrays: Arrays, query: Query) -> Above:
        lengths, ids, probabilities = self.nonzero(arrays)
        if query.threshold <= 0.0:
            return self._all_labels(lengths, ids, probabilities)
        keep = probabilities >= query.threshold
        rows = np.repeat(np.arange(len(lengths)), lengths)[keep]
        return np.bincount(rows, minlength=len(lengths)), ids[keep], probabilities[keep]

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        return self.look_up(self.nonzero(arrays), labels)

    def look_up(self, listed: Above, labels: Labels) -> NDArray[np.float32]:
        """What lists say of given labels; their probabilities may have more axes before the last."""
        lengths, ids, probabilities = listed
        keys = np.repeat(np.arange(len(lengths)), lengths) * self.n_labels + ids
        wanted = np.repeat(np.arange(len(lengths)), np.diff(labels[0])) * self.n_labels + labels[1]
        if not len(keys):
            return np.zeros((*probabilities.shape[:-1], len(wanted)), np.float32)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_listed = (keys[place] == wanted) & (labels[1] >= 0)
        return np.where(is_listed, probabilities[..., place], np.float32(0.0))

    def _all_labels(
        self, lengths: NDArray[np.int64], ids: NDArray[np.int32], probabilities: NDArray[np.float32]
    ) -> Above:
        """Every label has at least the probability 0."""
        n_rows, n_labels = len(lengths), self.n_labels
        values = np.zeros((n_rows, n_labels), np.float32)
        values[np.repeat(np.arange(n_rows), lengths), ids] = probabilities
        return np.full(n_rows, n_labels), np.tile(np.arange(n_labels, dtype=np.int32), n_rows), values.ravel()
