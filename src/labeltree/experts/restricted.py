"""An expert of any kind that gives some labels only, and lists without the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, pointers
from labeltree.experts.ensemble import best_per_row
from labeltree.experts.expert import Above, Expert, Labels, Saved, Trained
from labeltree.experts.job import TrainingJob
from labeltree.query import Query


class Restricted(Expert):
    """Scores all allowed labels, or filters lists; it is asked, never saved or trained."""

    def __init__(self, expert: Expert, allowed: NDArray[np.bool_]) -> None:
        self._expert, self._allowed = expert, allowed
        self.kind, self.n_labels = expert.kind, expert.n_labels  # type: ignore[misc]
        self.lists_all, self.scores_alike = expert.lists_all, True  # type: ignore[misc]
        self._ids = np.flatnonzero(allowed).astype(np.int32)

    def _all(self, arrays: Arrays, query: Query) -> tuple[Labels, NDArray[np.float32]]:
        n_rows, n = len(arrays[0]) - 1, len(self._ids)
        labels = np.arange(n_rows + 1, dtype=np.int64) * n, np.tile(self._ids, n_rows)
        return labels, self._expert.score(arrays, labels, query)

    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        out_ids[:], out_probabilities[:] = best_per_row(*self._all(arrays, query), query.k)
        is_low = out_probabilities < query.threshold
        out_ids[is_low], out_probabilities[is_low] = -1, 0.0
        return np.ones(len(out_ids), np.bool_)

    def above(self, arrays: Arrays, query: Query) -> Above:
        if self.lists_all and query.threshold > 0.0:
            lengths, ids, probabilities = self.nonzero(arrays)
            indptr = pointers(lengths)
        else:
            (indptr, ids), probabilities = self._all(arrays, query)
        keep = probabilities >= query.threshold
        return np.diff(pointers(keep)[indptr]), ids[keep], probabilities[keep]

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        return self._expert.score(arrays, labels, query)

    def nonzero(self, arrays: Arrays) -> Above:
        return keep_allowed(self._expert.nonzero(arrays), self._allowed)

    @property
    def parameter_bytes(self) -> int:
        return self._expert.parameter_bytes

    def statistics(self) -> dict[str, Any]:
        return self._expert.statistics()

    def tensors(self, number: int) -> Mapping[str, NDArray]:  # type: ignore[override]
        raise NotImplementedError("the whole expert is what is saved")

    @classmethod
    def from_saved(cls, saved: Saved) -> Expert:
        raise NotImplementedError("the whole expert is what was saved")

    @classmethod
    def train(cls, job: TrainingJob) -> list[Trained]:
        raise NotImplementedError("the whole expert is what is trained")


def keep_allowed(listed: Above, allowed: NDArray[np.bool_]) -> Above:
    """Lists without the other labels."""
    lengths, ids, probabilities = listed
    keep = allowed[ids]
    return np.diff(pointers(keep)[pointers(lengths)]), ids[keep], probabilities[keep]
