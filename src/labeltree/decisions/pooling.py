"""Numbers of labels that rows say little of are drawn to those of labels of as many training rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.decisions.judged import Judged
from labeltree.decisions.recalibration import N_GROUPS, group_labels


class Pool:
    """For the labels of some rows."""

    def __init__(self, rows: Judged, expected: NDArray[np.float64], of_others: float, scale: float) -> None:
        """``expected`` is how many rows have each label, by their candidates alone; there will be ``scale``
        times as many rows.

        Others count ``of_others`` / (1 + rows that have the label) as much as the label's own numbers.
        """
        self._groups, self._final = group_labels(rows.label_counts), group_labels(rows.final_counts)
        # What is not among the candidates counts too: a label is at least as frequent as in training.
        often = np.maximum(expected, rows.n_rows * rows.final_counts / max(1, rows.n_examples))
        self._weight, self.scale = of_others / (1.0 + often), scale
        self.support = self.drawn(often)  # (n_labels,) how many rows have each label

    def drawn(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n_labels,) with a part of the mean of similar labels; for as many rows as there will be."""
        n = np.maximum(np.bincount(self._groups, minlength=N_GROUPS), 1)
        means = np.bincount(self._groups, values, N_GROUPS) / n
        return self.scale * (values + self._weight * means[self._final]) / (1.0 + self._weight)
