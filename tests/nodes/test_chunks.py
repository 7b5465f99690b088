"""Siblings in chunks and chunks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from support.strategies import label_trees

from labeltree import LabelTree
from labeltree.nodes.chunks import CHUNK_CHILDREN, MAX_CHUNKS, chunk_starts, make_chunks
from labeltree.trees.shapes import build_flat


@settings(max_examples=60)
@given(tree=label_trees())
def test_chunks_cover_each_node_once(tree: LabelTree) -> None:
    start, first, last = make_chunks(tree)
    assert start[0] == 0
    assert start[-1] == tree.n_nodes
    assert start[1] == 1  # the root has a chunk of its own
    assert np.diff(start).min() >= 1
    assert np.diff(start).max() <= CHUNK_CHILDREN
    for node in range(tree.n_nodes):
        n_children = int(tree.n_children[node])
        if n_children == 0:
            assert (first[node], last[node]) == (-1, -2)  # so that a leaf has last - first + 1 = 0 chunks
        else:
            assert start[first[node]] == tree.first_child[node]
            assert start[last[node] + 1] == tree.first_child[node] + n_children


def test_chunks_of_very_many_children_are_limited() -> None:
    start, first, last = make_chunks(build_flat(100_000))
    assert last[0] - first[0] + 1 <= MAX_CHUNKS
    assert start[-1] == 100_001


def test_a_softmax_has_all_siblings_in_one_chunk() -> None:
    start, first, last = make_chunks(build_flat(1000), most=1)
    assert start.tolist() == [0, 1, 1001]
    assert first[0] == last[0] == 1


def test_chunks_of_sparse_nodes_are_never_larger() -> None:
    """However many there are: a weight names its child by a byte."""
    starts = chunk_starts(build_flat(100_000))
    assert np.diff(starts).max() == CHUNK_CHILDREN
    assert len(starts) - 1 == 1 + -(-100_000 // CHUNK_CHILDREN)
