"""Siblings in chunks: what is trained, stored and searched together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree

CHUNK_CHILDREN = 64  # siblings of a chunk ...
MAX_CHUNKS = 256  # ... unless that makes more chunks per parent than this


def make_chunks(
    tree: LabelTree, most: int = MAX_CHUNKS
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Cut each node's children into chunks: chunk starts, and the first and last chunk of each node.

    A chunk has CHUNK_CHILDREN nodes, or more where a node would have more than ``most`` chunks.
    """
    inner = np.flatnonzero(tree.n_children > 0)
    n_children = tree.n_children[inner].astype(np.int64)
    size = np.maximum(CHUNK_CHILDREN, -(-n_children // most))
    n_chunks = -(-n_children // size)
    first_chunk = 1 + np.cumsum(n_chunks) - n_chunks  # chunk 0 is the root's own
    within = np.arange(int(n_chunks.sum())) - np.repeat(first_chunk - 1, n_chunks)
    starts = np.repeat(tree.first_child[inner].astype(np.int64), n_chunks) + within * np.repeat(
        size, n_chunks
    )
    start = np.concatenate([[0], starts, [tree.n_nodes]]).astype(np.int32)
    first = np.full(tree.n_nodes, -1, np.int32)
    last = np.full(tree.n_nodes, -2, np.int32)
    first[inner] = first_chunk
    last[inner] = first_chunk + n_chunks - 1
    return start, first, last


def chunk_starts(tree: LabelTree) -> NDArray[np.int32]:
    """(n_chunks + 1,) the first node of each chunk: the root's own, then up to 64 siblings each."""
    return make_chunks(tree, most=tree.n_nodes)[0]
