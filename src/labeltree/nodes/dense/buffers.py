"""Buffers that training of dense nodes works in; :mod:`labeltree.kernels.dense.arrays` says what is what."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import SparseRows
from labeltree.kernels.dense.arrays import Buffers, Chunks, Plan, Scratch
from labeltree.tree import LabelTree


def aligned_zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    """Zeros that start on a cache line, so that a row touches as few lines as it can."""
    n_bytes = shape[0] * shape[1] * 4
    raw = np.zeros(n_bytes + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + n_bytes].view(np.float32).reshape(shape)


def largest_batch(counts: NDArray[np.int64], batch_size: int) -> int:
    """No batch can have more than the sum of the largest counts."""
    if len(counts) <= batch_size:
        return int(counts.sum())
    return int(np.partition(counts, len(counts) - batch_size)[-batch_size:].sum())


def make_plan(
    X: SparseRows, tree: LabelTree, chunks: Chunks, batch_size: int, n_visits: int, n_positives: int
) -> Plan:
    n_entries = largest_batch(np.diff(X.indptr), batch_size)

    def ids(*shape: int) -> NDArray[np.int32]:
        return np.empty(shape, np.int32)

    return Plan(
        positive=ids(n_positives),
        node_stamp=np.full(tree.n_nodes, -1, np.int64),
        chunk_slot=np.full(len(chunks.start) - 1, -1, np.int32),
        visit_chunk=ids(n_visits),
        visit_example=ids(n_visits),
        visit_positive=ids(n_visits, 2),
        example_visit=ids(batch_size + 1),
        by_chunk=ids(n_visits),
        chunk=ids(n_visits),
        chunk_visit=ids(n_visits + 1),
        feature_slot=np.full(X.n_columns, -1, np.int32),
        feature=ids(n_entries),
        feature_entry=ids(n_entries + 1),
        entry_example=ids(n_entries),
        entry_value=np.empty(n_entries, np.float32),
        sizes=np.zeros(3, np.int64),
    )


def make_buffers(batch_size: int, n_visits: int, dim: int) -> Buffers:
    return Buffers(
        hidden=aligned_zeros((batch_size, dim)),
        example_gradient=aligned_zeros((batch_size, dim)),
        nothing=np.zeros(batch_size, np.float32),
        visit_gradient=aligned_zeros((n_visits, dim)),
        visit_loss=np.zeros(n_visits),
        sync=np.zeros(112, np.int64),
    )


def make_scratch(max_chunk: int, batch_size: int, dim: int) -> Scratch:
    return Scratch(
        gradients=np.empty(max_chunk * batch_size, np.float32),
        visitors=np.empty(batch_size, np.int32),
        gradient=np.empty((1, dim), np.float32),
        scores=np.empty(max_chunk, np.float32),
    )
