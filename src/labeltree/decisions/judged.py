"""Rows whose labels are known, with what a model says of them: what rules are fitted to and judged by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, entries_of, pointers
from labeltree.decisions.goals import PRECISION_GOAL, Goal
from labeltree.metrics.measures import evaluate_sets, propensities

_USUAL_PART = 0.25
_MOST_SCALE = 5.0  # from few rows nothing is known of very many
_BLOCK = 10  # rows that stand together are often alike: they go to the same half


class Judged(NamedTuple):
    """Rows with their most probable labels, and which of these are right."""

    ids: NDArray[np.int32]  # (n_rows, n) -1: none
    probabilities: NDArray[np.float32]
    hits: NDArray[np.bool_]
    labels: LabelRows  # the true ones
    # (n_labels,) training rows of each label for the model that said this, and for the one to get a rule:
    # others where held-out rows are what is judged, and the model is trained on them at last.
    label_counts: NDArray[np.int64]
    final_counts: NDArray[np.int64]
    n_examples: int  # training rows of the model that is to get a rule

    def part(self, rows: NDArray[np.int64]) -> Judged:
        """Some of the rows."""
        indptr, entries = entries_of(self.labels.indptr, rows)
        labels = LabelRows(indptr, self.labels.indices[entries], self.labels.n_labels)
        return self._replace(
            ids=self.ids[rows], probabilities=self.probabilities[rows], hits=self.hits[rows], labels=labels
        )

    def halves(self) -> list[tuple[Judged, Judged]]:
        """Each half of the rows, to fit something to, with the other one, to judge it by."""
        first, second = (self.part(rows) for rows in self.rows_of_halves())
        return [(first, second), (second, first)]

    def rows_of_halves(self) -> list[NDArray[np.int64]]:
        rows = np.arange(self.n_rows)
        half = (rows // _BLOCK if self.n_rows >= 4 * _BLOCK else rows) % 2
        return [np.flatnonzero(half == side) for side in (0, 1)]

    @property
    def n_rows(self) -> int:
        return len(self.ids)

    @property
    def n_labels(self) -> int:
        return len(self.label_counts)

    @property
    def scale(self) -> float:
        """How many times as many rows as these there are where labels are given: at least a fourth of the
        training rows, as in usual test sets, if that is not too many more.

        It matters to measures of labels that have few rows: of a label with one row nothing is lost by giving
        it to ten others in vain unless it is found; of one with a hundred, all that is found.
        """
        return min(max(1.0, _USUAL_PART * self.n_examples / max(1, self.n_rows)), _MOST_SCALE)

    def scores(self, chosen: NDArray[np.bool_], k: int) -> dict[str, float]:
        """The measures of chosen labels, k of each row or any number."""
        ids = np.where(chosen, self.ids, -1)
        rows = np.nonzero(ids >= 0)[0]
        order = np.lexsort((ids[ids >= 0], rows))
        indptr = pointers((ids >= 0).sum(axis=1))
        sets = LabelRows(indptr, ids[ids >= 0][order].astype(np.int32), self.n_labels)
        found = evaluate_sets(sets, self.labels, self.n_labels)
        found[PRECISION_GOAL] = found["micro-precision"]
        if k:
            is_right = self.hits & chosen
            found["p"] = int(np.count_nonzero(is_right)) / (k * len(ids))
            found["psp"] = float(self.inverse[self.ids[is_right]].sum()) / self.most_propensity(k)
        return found

    @property
    def inverse(self) -> NDArray[np.float64]:
        """(n_labels,) inverse propensities."""
        return 1.0 / propensities(self.final_counts, self.n_examples)

    def most_propensity(self, k: int) -> float:
        """The sum of inverse propensities of each row's k rarest labels."""
        weights = np.append(self.inverse, 1.0 / propensities([0], self.n_examples))[self.labels.indices]
        rows = np.repeat(np.arange(self.labels.n_rows), np.diff(self.labels.indptr))
        weights = weights[np.lexsort((-weights, rows))]
        is_best = np.arange(len(rows)) - self.labels.indptr[rows] < k
        return max(float(weights[is_best].sum()), 1e-9)

    def value(self, goal: Goal, chosen: NDArray[np.bool_]) -> float:
        """How good that is; more is better."""
        return goal.value(self.scores(chosen, goal.k))


def sums_of_labels(ids: NDArray[Any], values: NDArray[Any], n_labels: int) -> NDArray[np.float64]:
    """(n_labels,) the sum of the values of each label."""
    sums: NDArray[Any] = np.bincount(ids, weights=values, minlength=n_labels)
    return sums.astype(np.float64)
