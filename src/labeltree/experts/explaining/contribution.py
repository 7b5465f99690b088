"""What an expert says of a label, and how much of that is due to each entry of the row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree


class Path(NamedTuple):
    """The nodes from the root to a label's leaf, and what each of them says.

    Logarithms are those of P(node | parent); those of a path sum to that of the label, before it is mapped.
    """

    tree: LabelTree
    nodes: list[int]
    log_probability: list[float]
    at_empty: list[float]  # the same for the empty row
    shares: NDArray[np.float64]  # (n_nodes, n_entries) of each log's change


class SimilarRows(NamedTuple):
    """The training rows that vote, the most similar first."""

    rows: NDArray[np.int32]
    similarity: NDArray[np.float64]
    votes: NDArray[np.float64]  # each row's part of all votes
    has_label: NDArray[np.bool_]
    shared: NDArray[np.float64]  # (n_rows, n_entries) the parts of a similarity that are due to each entry
    label_start: NDArray[np.int64]  # of all training rows: where their labels begin ...
    labels: NDArray[np.int32]  # ... in these

    def labels_of(self, place: int) -> NDArray[np.int32]:
        """Of one of the rows that vote, all labels."""
        row = self.rows[place]
        return self.labels[self.label_start[row] : self.label_start[row + 1]]


class Leaves(NamedTuple):
    """The leaves of trees over rows to which the row comes."""

    n_trees: int
    n_with_label: int


class Contribution(NamedTuple):
    """Of one expert to one label. Shares and rest sum to the change of the probability."""

    probability: float
    at_empty: float  # for the row without entries
    shares: NDArray[np.float64]  # (n_entries,)
    rest: float = 0.0  # due to no entry in particular
    path: Path | None = None
    similar_rows: SimilarRows | None = None
    leaves: Leaves | None = None
