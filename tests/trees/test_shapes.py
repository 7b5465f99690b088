"""Complete and flat trees; Huffman trees against a heap, and against every binary tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeltree.data.rows import LabelRows
from labeltree.errors import ParameterError, TreeError
from labeltree.reference import tree as reference
from labeltree.trees.shapes import build_complete, build_flat, build_huffman, build_shuffled


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(2, 9))
def test_complete(counts: list[int], arity: int) -> None:
    tree = build_complete(counts, arity)
    depth = tree.depth_of_leaves
    assert tree.n_labels == len(counts)
    assert depth.max() - depth.min() <= 1
    inner = tree.n_children[tree.n_children > 0]
    assert (inner[:-1] == arity).all()
    # As shallow as possible: one level less could not hold all labels.
    assert len(counts) == 1 or arity ** (int(depth.max()) - 1) < len(counts)
    by_leaf = tree.label[tree.label >= 0].tolist()
    assert by_leaf == sorted(range(len(counts)), key=lambda label: (-counts[label], label))


@given(st.integers(1, 60), st.integers(2, 9), st.integers(0, 2**64 - 1))
def test_shuffled(n_labels: int, arity: int, seed: int) -> None:
    """The complete tree with its labels in the order of the seed."""
    tree = build_shuffled(n_labels, arity, seed)
    assert np.array_equal(tree.parent, build_complete([1] * n_labels, arity).parent)
    by_leaf = tree.label[tree.label >= 0].tolist()
    assert by_leaf == np.random.default_rng(seed).permutation(n_labels).tolist()
    assert build_shuffled(n_labels, arity, seed) == tree


def test_shuffled_trees_of_other_seeds_differ() -> None:
    trees = {build_shuffled(100, 4, seed) for seed in range(10)}
    assert len(trees) == 10
    # No label is where its number would put it more often than chance has it: one of a hundred.
    n_inner = 33
    kept = [int((tree.label[n_inner:] == np.arange(100)).sum()) for tree in trees]
    assert sum(kept) < 30


def test_a_shuffled_tree_needs_an_arity_of_two() -> None:
    with pytest.raises(ParameterError, match="arity must be at least 2, but is 1"):
        build_shuffled(3, 1, 0)


def one_label_rows(counts: list[int]) -> LabelRows:
    indices = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return LabelRows(np.arange(len(indices) + 1), indices, len(counts))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.integers(2, 9))
def test_huffman_agrees_with_the_heap(counts: list[int], arity: int) -> None:
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
def test_no_binary_tree_is_cheaper_than_huffmans_on_multi_class_data(counts: list[int]) -> None:
    cost = build_huffman(counts, 2).cost(one_label_rows(counts))
    assert cost == pytest.approx(reference.cheapest_binary_cost(counts))


def test_huffman_has_frequent_labels_nearer_the_root() -> None:
    assert build_huffman([1, 2, 4, 8, 16], 2).depth_of_leaves.tolist() == [4, 4, 3, 2, 1]


def test_huffman_balances_labels_without_examples_among_themselves() -> None:
    assert build_huffman(np.zeros(64, np.int64), 2).depth_of_leaves.tolist() == [6] * 64


@pytest.mark.parametrize("n_labels", [1, 2, 7])
def test_flat(n_labels: int) -> None:
    tree = build_flat(n_labels)
    assert tree.n_labels == n_labels
    assert tree.label.tolist() == ([0] if n_labels == 1 else list(range(-1, n_labels)))
    assert tree.depth_of_leaves.max() == min(1, n_labels - 1)


@pytest.mark.parametrize("build", [build_complete, build_huffman])
def test_impossible_counts_and_arity_are_refused(build: object) -> None:
    for counts, message in [
        ([], "at least one label"),
        ([[1, 2]], "shape"),
        ([1.5, 2.0], "integers"),
        ([3, -1], "label 1: its count must be at least 0, but is -1"),
        ([2**62, 1], "2\\*\\*62"),
    ]:
        with pytest.raises(TreeError, match=message):
            build(counts, 2)  # type: ignore[operator]
    with pytest.raises(ParameterError, match="arity must be at least 2, but is 1"):
        build([1, 2], 1)  # type: ignore[operator]


def test_no_labels_are_refused() -> None:
    with pytest.raises(TreeError, match="at least one label, but there are 0"):
        build_flat(0)


def test_a_million_labels() -> None:
    counts = np.random.default_rng(1).zipf(1.5, 1_000_000) % 1000
    assert build_complete(counts, 16).n_labels == len(counts)
    assert build_huffman(counts, 16).n_labels == len(counts)
