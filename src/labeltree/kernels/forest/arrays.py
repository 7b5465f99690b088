"""What the kernels of forests work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HALF_BITS = 16  # of an id that is in the lower half
LARGEST = 127  # of a byte


def halves_of(ids: NDArray[np.int32], n: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """The lower bits of ids below n, and the upper ones; none where all are 0."""
    low = (ids & (1 << HALF_BITS) - 1).astype(np.uint16)
    is_wide = n > 1 << HALF_BITS
    return low, (ids >> HALF_BITS).astype(np.uint16) if is_wide else np.empty(0, np.uint16)


class Examples(NamedTuple):
    """The rows that trees are grown from."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    label_indptr: NDArray[np.int64]  # (n_rows + 1,)
    labels: NDArray[np.int32]
    weight: NDArray[np.float32]  # (n_rows,) what each row counts, above 0 for those that are used
    gain: NDArray[np.float64]  # of each of the labels: what it adds to its row's nDCG in the first place
    leaf_gain: NDArray[np.float64]  # (n_rows,) what a row's labels count in its leaf
    discount: NDArray[np.float64]  # (n_labels,) of each place in an order of labels


class Scratch(NamedTuple):
    """The memory of one task; all zeros between nodes where it is said."""

    weights: NDArray[np.float32]  # (n_columns + 1,) zeros; the last is that of the bias
    place: NDArray[np.int32]  # (n_columns,) zeros
    columns: NDArray[np.int32]  # (n_columns,)
    scores: NDArray[np.float64]  # (n_labels,) zeros
    others: NDArray[np.float64]  # (n_labels,) zeros
    lead: NDArray[np.float64]  # (n_labels,) zeros
    labels: NDArray[np.int32]  # (n_labels,)
    side: NDArray[np.int8]  # (n_rows,) of the node's rows, one after another: 1 or -1
    dual: NDArray[np.float32]  # (n_rows,)
    random: NDArray[np.uint64]  # (1,)


class Nodes(NamedTuple):
    """The nodes of a tree that grows: of a leaf, first_child is 0."""

    first_child: NDArray[np.int32]  # (most nodes,) the other child is the next one
    bias: NDArray[np.float32]
    scale: NDArray[np.float32]  # what 1 of a byte stands for
    begin: NDArray[np.int64]  # of the rows of a node, among members
    end: NDArray[np.int64]
    entry_begin: NDArray[np.int64]  # of the weights of an inner node
    entry_end: NDArray[np.int64]
    members: NDArray[np.int32]  # row numbers


class L1Split(NamedTuple):
    """Logistic regression with |w|: most weights are exactly 0."""

    cost: float
    bias: float
    tolerance: float
    most_steps: int


class L2Split(NamedTuple):
    """Squared hinge loss with |w|²/2, weights below ``prune`` times the largest dropped."""

    cost: float
    bias: float
    tolerance: float
    most_passes: int
    prune: float


class Trees(NamedTuple):
    """A whole forest, as a model file has it: a node's list has columns with weights, a leaf's labels."""

    root: NDArray[np.int32]  # (n_trees,)
    first_child: NDArray[np.int32]  # (n_nodes,) of a leaf 0
    bias: NDArray[np.float32]  # (n_nodes,) of a leaf, the share of a label that all its rows have
    scale: NDArray[np.float32]  # (n_nodes,)
    start: NDArray[np.int64]  # (n_nodes + 1,) of each node's list
    low: NDArray[np.uint16]  # ids of columns or labels: the lower bits ...
    high: NDArray[np.uint16]  # ... and the upper ones, or nothing where all are 0
    amount: NDArray[np.int8]  # weights or shares, times the node's scale


class Tail(NamedTuple):
    """What votes are ranked by besides (PfastreXML): what they count, and the mean rows of labels."""

    weight: NDArray[np.float32]  # (n_labels,) above 0, at most 1
    scale: NDArray[np.float32]  # (n_labels,) what 1 of a byte stands for
    start: NDArray[np.int64]  # (n_labels + 1,) of each label's mean row; of length 1, or empty
    low: NDArray[np.uint16]  # columns, as in Trees
    high: NDArray[np.uint16]
    amount: NDArray[np.int8]


class Work(NamedTuple):
    """What one thread asks a forest with; zeros between rows where it is said."""

    row: NDArray[np.float32]  # (n_columns,) of those that trees know, the first ones; zeros
    votes: NDArray[np.float64]  # (n_labels,) zeros
    keys: NDArray[np.int64]  # (n_labels,)
