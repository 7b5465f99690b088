"""Trained weights of siblings as chunks of bytes, and all chunks as the parameters of one tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import pointers
from labeltree.kernels.sparse.arrays import Chunk, SparseParameters
from labeltree.storage.space import IN_MEMORY, Space

ROWS_PER_BUCKET = 3
_STEPS = np.float32(127.0)


class PackedChunk(NamedTuple):
    chunk: Chunk
    bias: NDArray[np.float32]  # (n_children,) what the bias feature adds to the scores


class NotFinite(Exception):
    """Weights have grown beyond all bounds."""


def pack_chunk(
    weights: NDArray[np.float32],
    features: NDArray[np.int32],
    is_learned: NDArray[np.bool_],
    l1: float,
    prune: float,
    bias: float,
) -> PackedChunk:
    """The weights of a chunk's children, pruned, in bytes: 127 steps of a child's scale are its largest one.

    Behind the rows of the features stands that of the bias, if there is one.
    """
    from labeltree.kernels.sparse.chunk import count_entries, fill_chunk, largest_weights

    n_children, n_features, n_columns = len(is_learned), len(features), weights.shape[1]
    shrinkage = np.float32(l1)
    largest = np.empty(n_columns, np.float32)
    largest_weights(weights, n_features, shrinkage, largest)
    of_bias = weights[n_features:, :n_children].sum(axis=0)
    of_bias = np.copysign(np.maximum(np.abs(of_bias) - shrinkage, 0), of_bias) * np.float32(bias)
    # By their sum, from which NaN cannot hide as from a maximum; float64 holds that of any float32.
    with np.errstate(invalid="ignore"):
        total = weights[:, :n_children].sum(dtype=np.float64)
    if not (np.isfinite(total) and np.isfinite(of_bias).all()):
        raise NotFinite
    scale = largest / _STEPS
    scale[scale < np.finfo(np.float32).tiny] = 0.0  # too few digits: its steps would not be 127
    # What is less than half a step would become 0; columns without a learned node keep nothing.
    least = np.maximum(np.float32(prune), scale * np.float32(0.50001))
    is_kept = np.zeros(n_columns, np.bool_)
    is_kept[:n_children] = is_learned & (scale[:n_children] > 0)
    least[~is_kept] = np.inf
    length = np.empty(n_features, np.uint8)
    n_rows, n_entries = count_entries(weights, n_features, shrinkage, least, length)
    n_buckets = max(1, n_rows // ROWS_PER_BUCKET) + 1 if n_rows else 0
    packed = Chunk(
        np.empty((n_buckets, 2), np.int32),
        np.empty(n_rows, np.int32),
        np.empty(n_rows, np.uint8),
        np.empty(n_entries, np.uint16),
        scale[:n_children],
    )
    fill_chunk(weights, features, length, shrinkage, least, scale, packed)
    return PackedChunk(packed, of_bias)


def join_chunks(
    parts: Sequence[PackedChunk | None],
    start: NDArray[np.int32],
    is_learned: NDArray[np.bool_],
    first_bias: NDArray[np.float32],
    log_odds: tuple[float, float],
    space: Space = IN_MEMORY,
) -> SparseParameters:
    """One array of each kind for all chunks; those of which there is None keep their first bias.

    ``start`` are the first nodes of the chunks; a score s becomes ``log_odds[0] * s + log_odds[1]``.
    """
    factor, summand = np.float32(log_odds[0]), np.float32(log_odds[1])
    scale, bias = np.zeros(len(is_learned), np.float32), first_bias.copy()
    nothing = Chunk(
        np.empty((0, 2), np.int32), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint16),
        np.empty(0, np.float32),
    )  # fmt: skip
    chunks = [nothing if part is None else part.chunk for part in parts]
    for number, part in enumerate(parts):
        if part is not None:
            nodes = slice(start[number], start[number + 1])
            learned = is_learned[nodes]
            scale[nodes][learned] = part.chunk.scale[learned] * factor
            bias[nodes][learned] = part.bias[learned] * factor + summand
    n_buckets = [len(chunk.bucket) for chunk in chunks]
    bucket = space.lasting((sum(n_buckets), 2), np.int32)
    np.concatenate([chunk.bucket for chunk in chunks], out=bucket)
    return SparseParameters(
        chunk_bucket=pointers(n_buckets),
        bucket=bucket,
        chunk_row=pointers([len(chunk.feature) for chunk in chunks]),
        feature=space.joined([chunk.feature for chunk in chunks], np.int32),
        length=space.joined([chunk.length for chunk in chunks], np.uint8),
        chunk_entry=pointers([len(chunk.entry) for chunk in chunks]),
        entry=space.joined([chunk.entry for chunk in chunks], np.uint16),
        scale=scale,
        bias=bias,
        calibration=np.array([1.0, 1.0, 0.0], np.float32),
    )
