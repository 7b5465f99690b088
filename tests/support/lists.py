"""An expert that lists all its labels, for tests of how experts are combined."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays
from labeltree.experts.expert import Above, Expert, Labels, Saved
from labeltree.experts.job import TrainingJob
from labeltree.query import Query


class Lister(Expert):
    """Each feature of a row votes for some labels; the largest vote counts."""

    kind = "lister"
    lists_all = True
    scores_alike = True

    def __init__(self, votes: NDArray[np.float32]) -> None:
        """``votes`` (n_features, n_labels)."""
        self.votes, self.n_labels = votes, votes.shape[1]

    def dense(self, arrays: Arrays) -> NDArray[np.float32]:
        """(n_rows, n_labels) the votes for all labels."""
        indptr, indices, _ = arrays
        rows = [self.votes[indices[start:stop]] for start, stop in pairwise(indptr)]
        none = np.zeros((len(rows), self.n_labels), np.float32)
        return np.array([row.max(axis=0, initial=0.0) for row in rows], np.float32).reshape(none.shape)

    def nonzero(self, arrays: Arrays) -> Above:
        dense = self.dense(arrays)
        rows, ids = np.nonzero(dense)
        return np.bincount(rows, minlength=len(dense)), ids.astype(np.int32), dense[rows, ids]

    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        dense = self.dense(arrays)
        out_ids[:] = np.argsort(-dense, axis=1, kind="stable")[:, : query.k]
        out_probabilities[:] = np.take_along_axis(dense, out_ids, axis=1)
        is_low = out_probabilities < query.threshold
        out_ids[is_low], out_probabilities[is_low] = -1, 0.0
        return np.ones(len(dense), np.bool_)

    def above(self, arrays: Arrays, query: Query) -> Above:
        dense = self.dense(arrays)
        rows, ids = np.nonzero(dense >= query.threshold)
        return np.bincount(rows, minlength=len(dense)), ids.astype(np.int32), dense[rows, ids]

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        rows = np.repeat(np.arange(len(labels[0]) - 1), np.diff(labels[0]))
        return np.where(labels[1] >= 0, self.dense(arrays)[rows, labels[1]], np.float32(0.0))

    @property
    def parameter_bytes(self) -> int:
        return self.votes.nbytes

    def statistics(self) -> dict[str, Any]:
        return {}

    def tensors(self, number: int) -> dict[str, NDArray]:
        return {}

    @classmethod
    def from_saved(cls, saved: Saved) -> Lister:
        raise NotImplementedError

    @classmethod
    def train(cls, job: TrainingJob) -> list[Any]:
        return []


def random_votes(n_features: int, n_labels: int, seed: int) -> NDArray[np.float32]:
    """Few labels have votes, and many of these are equal."""
    random = np.random.default_rng(seed)
    votes = random.choice([0.05, 0.25, 0.5, 1.0], (n_features, n_labels))
    return np.where(random.random(votes.shape) < 0.3, votes, 0.0).astype(np.float32)
