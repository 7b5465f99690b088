"""Siblings in blocks (dense nodes) and chunks (sparse nodes): trained, stored and searched together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.tree import LabelTree

BLOCK_CHILDREN = 64  # siblings of a block ...
MAX_BLOCKS = 256  # ... unless that makes more blocks per parent than this


def make_blocks(
    tree: LabelTree, most: int = MAX_BLOCKS
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Cut each node's children into blocks: block starts, and the first and last block of each node.

    A block has BLOCK_CHILDREN nodes, or more where a node would have more than ``most`` blocks.
    """
    inner = np.flatnonzero(tree.n_children > 0)
    n_children = tree.n_children[inner].astype(np.int64)
    size = np.maximum(BLOCK_CHILDREN, -(-n_children // most))
    n_blocks = -(-n_children // size)
    first_block = 1 + np.cumsum(n_blocks) - n_blocks  # block 0 is the root's own
    within = np.arange(int(n_blocks.sum())) - np.repeat(first_block - 1, n_blocks)
    starts = np.repeat(tree.first_child[inner].astype(np.int64), n_blocks) + within * np.repeat(
        size, n_blocks
    )
    start = np.concatenate([[0], starts, [tree.n_nodes]]).astype(np.int32)
    first = np.full(tree.n_nodes, -1, np.int32)
    last = np.full(tree.n_nodes, -2, np.int32)
    first[inner] = first_block
    last[inner] = first_block + n_blocks - 1
    return start, first, last


def chunk_starts(tree: LabelTree) -> NDArray[np.int32]:
    """(n_chunks + 1,) the first node of each chunk: the root's own, then up to 64 siblings each."""
    return make_blocks(tree, most=tree.n_nodes)[0]
