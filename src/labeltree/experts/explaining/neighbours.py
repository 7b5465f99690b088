"""How neighbours share out a label's votes among the entries of a row.

P = V / T, the votes of the neighbours with the label among all votes. A neighbour's vote is shared out as its
similarity is, a sum over the entries that both rows have; and each entry moves all votes besides. As P is the
same for a row of any length, these moves sum to 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.experts.explaining.contribution import Contribution, SimilarRows


def share_votes(found: SimilarRows, power: int) -> Contribution:
    """Of a label: votes are the ``power`` of similarities."""
    n_entries = found.shared.shape[1]
    if not len(found.rows):
        return Contribution(0.0, 0.0, np.zeros(n_entries), similar_rows=found)
    own = found.has_label.astype(np.float64)
    probability = float(found.votes[found.has_label].sum())
    counts = found.votes * (own + power * (own - probability))
    return Contribution(probability, 0.0, counts @ found.shared, similar_rows=found)


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
