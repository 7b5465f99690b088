"""What the kernels that train sparse nodes work on: siblings are trained together, at most 64 at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.kernels.addresses import Matrix
from labeltree.kernels.lanes import LANES

# Columns of weights are padded to whole vectors (LANES) or, as in binary trees, to a short one.
FEW_LANES = 4


def padded(n_children: ArrayLike) -> NDArray[np.int64]:
    """How many columns so many siblings get."""
    n_children = np.asarray(n_children)
    return np.where(n_children <= FEW_LANES, FEW_LANES, -(-n_children // LANES) * LANES)


class Rows(NamedTuple):
    """All training rows, and what a row counts."""

    indptr: NDArray[np.int64]  # (n_rows + 1,)
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    weight: NDArray[np.float32]  # (n_rows,)
    held_out: NDArray[np.bool_]  # (n_rows,) left out until the probabilities are calibrated


class Gathered(NamedTuple):
    """The rows of one parent, their features renumbered from 0 on in the order of their first appearance.

    Behind the features stands one that every row has, the bias, unless its value is 0.
    """

    indptr: NDArray[np.int64]  # (n_examples + 1,)
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    squares: NDArray[np.float32]  # (n_examples,) squared lengths
    weight: NDArray[np.float32]  # (n_examples,)
    held_out: NDArray[np.bool_]  # (n_examples,)
    positive_indptr: NDArray[np.int64]  # (n_examples + 1,)
    positive: NDArray[np.int32]  # children that an example is positive for


class State(NamedTuple):
    """Where the training of one chunk is."""

    weights: NDArray[np.float32]  # (n_features, n_columns), n_columns = padded(children)
    dual: NDArray[np.float32]  # (n_examples, n_columns) one variable per example and child
    positive_weight: NDArray[np.float32]  # (n_columns,) of each child's positive examples; softmax: 0 or 1
    order: NDArray[np.int64]  # (n_examples,)
    is_active: NDArray[np.bool_]  # (n_examples,) the others have hardly moved: they are seldom visited
    random: NDArray[np.uint64]  # (1,)
    n_seen: NDArray[np.int64]  # (1,) visits of examples so far


class SquaredHinge(NamedTuple):
    """minimise |w|²/2 + l1 |w| + cost * sum of max(0, 1 - y w·x)², in the dual."""

    cost: np.float32
    l1: np.float32


class Hinge(NamedTuple):
    """minimise |w|²/2 + l1 |w| + cost * sum of max(0, 1 - y w·x), in the dual."""

    cost: np.float32
    l1: np.float32


class LogLoss(NamedTuple):
    """minimise |w|²/2 + l1 |w| + cost * sum of log(1 + exp(-y w·x)), in the dual."""

    cost: np.float32
    l1: np.float32


class OnlineLogLoss(NamedTuple):
    """Steps eta * (1/t)^power along the gradient of the log loss, t counting a node's examples."""

    eta: np.float32
    power: np.float32
    l2: np.float32
    l1: np.float32  # always 0


class SoftmaxLoss(NamedTuple):
    """minimise sum of |w|²/2 + l1 |w| over siblings - cost * sum of log softmax(w·x) at each one's child."""

    cost: np.float32
    l1: np.float32


class OnlineSoftmax(NamedTuple):
    """As :class:`OnlineLogLoss`, along the gradient of -log softmax."""

    eta: np.float32
    power: np.float32
    l2: np.float32
    l1: np.float32  # always 0


class Columns(NamedTuple):
    """The rows of one parent by feature, without the bias."""

    indptr: NDArray[np.int64]  # (n_features + 1,)
    rows: NDArray[np.int32]
    values: NDArray[np.float32]


class Work(NamedTuple):
    """What the training of one child on an active set works on; the children of a task share it in turn."""

    total: NDArray[np.float64]  # (n_features + 1,) sum of dual * y * x, with the bias; blank: 0
    touched: NDArray[np.int32]  # (n_features + 1,) places of it that may not be 0
    is_touched: NDArray[np.bool_]  # (n_features + 1,) blank: False
    dual: NDArray[np.float64]  # (n_examples,) blank: 0
    sign: NDArray[np.float32]  # (n_examples,) blank: -1
    active: NDArray[np.int32]  # (n_examples,) those in the active set
    is_active: NDArray[np.bool_]  # (n_examples,) blank: False
    score: NDArray[np.float64]  # (n_examples,)
    found: NDArray[np.int32]  # (n_examples,) those that might come in ...
    violation: NDArray[np.float32]  # (n_examples,) ... and how far they are within the margin
    violation_bits: NDArray[np.int32]  # (n_examples,) the same memory
    random: NDArray[np.uint64]  # (1,)


class Chunk(NamedTuple):
    """The weights of up to 64 siblings in bytes, by feature (see docs/model-file.md)."""

    bucket: NDArray[np.int32]  # (n_buckets + 1, 2) first row and first entry of each bucket; empty if no rows
    feature: NDArray[np.int32]  # (n_rows,)
    length: NDArray[np.uint8]  # (n_rows,) entries of each row
    entry: NDArray[np.uint16]  # child << 8 | weight + 128
    scale: NDArray[np.float32]  # (n_children,) times the byte: the weight


class SparseParameters(NamedTuple):
    """The weights in chunks of at most 64 siblings (docs/model-file.md), and each node's scale and bias."""

    chunk_bucket: NDArray[np.int64]  # (n_chunks + 1,) where the buckets of a chunk begin
    bucket: Matrix[np.int32]  # (n, 2) first row and first entry of a bucket, within its chunk
    chunk_row: NDArray[np.int64]  # (n_chunks + 1,)
    feature: NDArray[np.int32]  # (n_rows,)
    length: NDArray[np.uint8]  # (n_rows,) entries of a row
    chunk_entry: NDArray[np.int64]  # (n_chunks + 1,)
    entry: NDArray[np.uint16]  # child << 8 | weight + 128
    scale: NDArray[np.float32]  # (n_nodes,)
    bias: NDArray[np.float32]  # (n_nodes,) infinite where a node is constant
    calibration: NDArray[np.float32]  # (3,) of the map from paths to labels (labeltree.experts.calibration)
