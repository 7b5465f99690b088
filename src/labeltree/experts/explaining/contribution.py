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


class PathWeights(NamedTuple):
    """The nodes of a path: its probability is the product of their logistics, mapped."""

    weights: NDArray[np.float32]  # (n_nodes, n_columns)
    bias: NDArray[np.float32]
    map: NDArray[np.float64]  # (3,) as that of :meth:`labeltree.nodes.kind.NodeKind.map_of_labels`


class Compared(NamedTuple):
    """Training rows that are similar to a row: those that vote, the most similar first, then others."""

    rows: NDArray[np.int32]
    # (n_entries, at least n_rows) what each entry adds to a similarity, of those that are compared: the first
    shared: NDArray[np.int32]
    weight: NDArray[np.float32]  # of each row's vote
    n_voters: int
    most_voters: int
    power: int  # of the similarity that rows count by


class SimilarRows(NamedTuple):
    """The training rows that vote, the most similar first."""

    compared: Compared
    similarity: NDArray[np.float64]
    votes: NDArray[np.float64]  # each row's part of all votes
    may_vote: NDArray[np.bool_]  # (n_rows,) whether each of those compared has the label
    n_entries: int
    label_start: NDArray[np.int64]  # of all training rows: where their labels begin ...
    labels: NDArray[np.int32]  # ... in these

    @property
    def rows(self) -> NDArray[np.int32]:
        return self.compared.rows[: self.compared.n_voters]

    @property
    def has_label(self) -> NDArray[np.bool_]:
        return self.may_vote[: self.compared.n_voters]

    @property
    def shared(self) -> NDArray[np.float64]:
        """(n_rows, n_entries) the parts of a similarity that are due to each entry."""
        amounts = self.compared.shared[:, : self.compared.n_voters].T.astype(np.float64)
        parts = np.zeros((len(amounts), self.n_entries))
        parts[:, : amounts.shape[1]] = amounts / amounts.sum(axis=1, keepdims=True)
        return parts

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
