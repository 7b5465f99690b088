"""Huffman trees against a heap, and against every binary tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeltree.data.rows import LabelRows
from labeltree.reference import tree as reference
from labeltree.trees.shapes import build_huffman


def one_label_rows(counts: list[int]) -> LabelRows:
    indices = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return LabelRows(np.arange(len(indices) + 1), indices, len(counts))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.integers(2, 9))
def test_agrees_with_the_heap(counts: list[int], arity: int) -> None:
    tree = build_huffman(counts, arity)
    assert tree == reference.huffman(counts, arity)
    inner = np.flatnonzero(tree.n_children > 0)
    smaller = inner[tree.n_children[inner] < arity]
    assert len(smaller) <= 1
    if len(smaller):  # its leaves are among the deepest
        labels = list(reference.labels_below(tree, int(smaller[0])))
        assert tree.depth_of_leaves[labels].max() == tree.depth_of_leaves.max()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(lambda counts: sum(counts) > 0))
@settings(max_examples=60)
def test_no_binary_tree_is_cheaper_on_multi_class_data(counts: list[int]) -> None:
    cost = build_huffman(counts, 2).cost(one_label_rows(counts))
    assert cost == pytest.approx(reference.cheapest_binary_cost(counts))


def test_frequent_labels_are_nearer_the_root() -> None:
    assert build_huffman([1, 2, 4, 8, 16], 2).depth_of_leaves.tolist() == [4, 4, 3, 2, 1]


def test_labels_without_examples_are_balanced_among_themselves() -> None:
    assert build_huffman(np.zeros(64, np.int64), 2).depth_of_leaves.tolist() == [6] * 64
