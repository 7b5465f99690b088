"""How neighbours share out a label's votes among the entries of a row.

P = V / T, the votes of the neighbours with the label among all votes. What any rows would say, the label's
frequency, is due to having neighbours at all, and shared out evenly. Beyond that a neighbour's vote counts
for the label or against it, and is shared out as its similarity is, a sum over what both rows have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.explaining.contribution import Contribution, SimilarRows


def share_votes(found: SimilarRows, frequency: float, is_compared: NDArray[np.bool_]) -> Contribution:
    """Of a label of this frequency; ``is_compared`` are the entries that rows can have in common."""
    if not len(found.rows):
        return Contribution(0.0, 0.0, np.zeros(len(is_compared)), similar_rows=found)
    probability = float(found.votes[found.has_label].sum())
    shares = (found.votes * (found.has_label - frequency)) @ found.shared
    shares += is_compared * (frequency / np.count_nonzero(is_compared))
    return Contribution(probability, 0.0, shares, similar_rows=found)


class LabelsOfRows:
    """The labels of some training rows."""

    def __init__(
        self, rows: NDArray[np.int32], label_start: NDArray[np.int64], labels: NDArray[np.int32]
    ) -> None:
        start = label_start[rows]
        lengths = label_start[rows + 1] - start
        before = np.cumsum(lengths) - lengths
        self.n_rows, self._row = len(rows), np.repeat(np.arange(len(rows)), lengths)
        self._labels = labels[np.arange(len(self._row)) + np.repeat(start - before, lengths)]

    def which_have(self, label: int) -> NDArray[np.bool_]:
        """(n_rows,) whether each of them has a label."""
        found = np.zeros(self.n_rows, np.bool_)
        found[self._row[self._labels == label]] = True
        return found
