"""How neighbours share out a label's votes among the entries of a row.

P = V / T, the votes of the neighbours with the label among all votes. What any rows would say, the label's
frequency, is due to having neighbours at all, and shared out evenly. Beyond that a neighbour's vote counts
for the label or against it, and is shared out as its similarity is, a sum over what both rows have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labeltree.data.rows import Arrays, read_only
from labeltree.experts.explaining.contribution import Contribution, SimilarRows
from labeltree.kernels.neighbours.shared import share_votes

if TYPE_CHECKING:
    from labeltree.experts.neighbours import NeighboursExpert

MOST_COMPARED = 200  # rows, of which the nearest are taken where words are deleted


def explain_votes(expert: NeighboursExpert, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
    """What the neighbours of one row say of the labels."""
    compared, n_entries = expert.compare(arrays, MOST_COMPARED), int(arrays[0][1] - arrays[0][0])
    index, contributions = expert.index, []
    of_rows = index.label_start, index.labels
    given = [read_only(array) for array in (*of_rows, expert.weight, compared.rows, compared.shared)]
    for label in labels:
        similar, has_label = np.empty((2, compared.n_voters)), np.empty(len(compared.rows), np.bool_)
        shares, probability = np.zeros(n_entries), 0.0
        if compared.n_voters:
            asked = expert.power, label, float(expert.frequency[label])
            probability = share_votes(*given, *asked, similar, has_label, shares)
        found = SimilarRows(compared, similar[0], similar[1], has_label, n_entries, *of_rows)
        contributions.append(Contribution(probability, 0.0, shares, similar_rows=found))
    return contributions
