"""How neighbours share out a label's votes among the entries of a row.

P = V / T, the votes of the neighbours with the label among all votes. A neighbour's vote is shared out as its
similarity is, a sum over the entries that both rows have; and each entry moves all votes besides. As P is the
same for a row of any length, these moves sum to 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def which_have(
    label: int, rows: Sequence[int], label_start: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """(n_rows,) whether training rows have a label."""
    return np.array([label in labels[label_start[row] : label_start[row + 1]] for row in rows], np.bool_)
