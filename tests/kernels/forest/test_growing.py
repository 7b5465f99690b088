"""Trees lead rows to leaves, and leaves say what the reference says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.forests import N_COLUMNS, N_LABELS, N_ROWS, POOL, ROWS, random_problem, row_of

from labeltree.config import make_config
from labeltree.data.rows import TrainingRows
from labeltree.experts.forest import ForestExpert
from labeltree.experts.forest_training import Grower, GrownTree, join_trees
from labeltree.kernels.forest.arrays import HALF_BITS, Trees
from labeltree.reference import forest as reference


def grower(split: str = "l1", **parameters: int) -> tuple[Grower, NDArray[np.float64]]:
    X, Y, weight, dense = random_problem(N_ROWS, N_COLUMNS, N_LABELS, seed=9)
    config = make_config({"trees": 0, "forest": 3, "forest_split": split, **parameters})
    return Grower(TrainingRows(X, Y, weight), config, N_COLUMNS), dense


def decoded(trees: Trees) -> list[reference.Node]:
    nodes = []
    for number, child in enumerate(trees.first_child.tolist()):
        part = slice(trees.start[number], trees.start[number + 1])
        ids = trees.low[part].astype(int)
        if len(trees.high):
            ids = ids | trees.high[part].astype(int) << HALF_BITS
        amounts = trees.amount[part].astype(np.float64) * trees.scale[number]
        entries = dict(zip(ids.tolist(), amounts.tolist(), strict=True))
        children = (child, child + 1) if child else ()
        nodes.append(reference.Node(entries, float(trees.bias[number]), children))
    return nodes


def expert_of(trees: list[GrownTree], n_labels: int = N_LABELS) -> ForestExpert:
    return ForestExpert(join_trees(trees, N_COLUMNS, n_labels), n_labels, N_COLUMNS)


@pytest.mark.parametrize("n_labels", [N_LABELS, 100_000])
@pytest.mark.parametrize("split", ["l1", "l2"])
def test_rows_get_the_votes_of_their_leaves(split: str, n_labels: int) -> None:
    """With many labels ids have an upper half."""
    grow, _ = grower(split)
    expert = expert_of([grow.grow(number) for number in range(3)], n_labels)
    assert (len(expert.forest.high) > 0) == (n_labels > 1 << HALF_BITS)
    nodes, roots = decoded(expert.forest), expert.forest.root.tolist()
    leaves = expert.leaves(ROWS[:3])
    lengths, ids, votes = expert.nonzero(ROWS[:3])
    ends = np.cumsum(lengths)
    for i in range(N_ROWS):
        row = row_of(ROWS, i)
        assert leaves[i].tolist() == [reference.leaf_of(nodes, root, row) for root in roots]
        expected = reference.vote(nodes, roots, row)
        part = slice(ends[i] - lengths[i], ends[i])
        assert ids[part].tolist() == list(expected)
        np.testing.assert_allclose(votes[part], list(expected.values()), rtol=1e-6)


@pytest.mark.parametrize("most", [100, 3])
@pytest.mark.parametrize("split", ["l1", "l2"])
def test_a_leaf_has_the_shares_of_its_rows(split: str, most: int) -> None:
    grow, dense = grower(split, forest_labels=most)
    expert = expert_of([grow.grow(0)])
    nodes, leaves = decoded(expert.forest), expert.leaves(ROWS[:3])[:, 0]
    sizes = np.bincount(leaves, minlength=len(nodes))
    assert sizes.max() <= N_ROWS // 2
    assert sum(bool(node.children) for node in nodes) > 10
    weight = grow.examples.weight.astype(np.float64)
    for leaf in np.unique(leaves):
        own = np.flatnonzero(leaves == leaf)
        expected = reference.shares(dense[own] > 0, weight[own], most)
        assert list(nodes[leaf].entries) == list(expected)
        mean_gain = weight[own] @ reference.leaf_gains(dense[own] > 0) / weight[own].sum()
        assert nodes[leaf].bias == pytest.approx(mean_gain)
        found = np.array(list(nodes[leaf].entries.values()))
        largest = max(expected.values(), default=0.0)
        np.testing.assert_allclose(found, list(expected.values()), atol=0.5001 * largest / 127)


def test_rows_that_are_left_out_are_as_if_they_had_no_weight() -> None:
    grow, _ = grower()
    X, Y, weight, _ = random_problem(N_ROWS, N_COLUMNS, N_LABELS, seed=9)
    left_out = np.arange(20, 60)
    weight[left_out] = 0.0
    without = Grower(TrainingRows(X, Y, weight), grow.config, N_COLUMNS).grow(0)
    assert all(map(np.array_equal, grow.without(left_out).grow(0), without))


def test_rows_of_the_same_labels_are_one_leaf() -> None:
    X, Y, weight, _ = random_problem(40, N_COLUMNS, 3, seed=1)
    same = Y._replace(indptr=np.arange(41), indices=np.full(40, 2, np.int32))
    grow = Grower(TrainingRows(X, same, weight), make_config({"forest": 1}), N_COLUMNS)
    tree = grow.grow(0)
    assert tree.first_child.tolist() == [0]
    assert tree.ids.tolist() == [2]
    np.testing.assert_allclose(tree.scale * tree.amount, 1.0, rtol=1e-6)


def test_shares_that_are_too_small_for_their_bits_are_left_out() -> None:
    """A row that has all labels of its leaf weighs next to nothing there."""
    X, Y, weight, _ = random_problem(2, N_COLUMNS, 3, seed=1)
    one = Y._replace(indptr=np.array([0, 1, 1]), indices=np.array([2], np.int32))
    weight[:] = 1e-44, 1e3
    tree = Grower(TrainingRows(X, one, weight), make_config({"forest": 1}), N_COLUMNS).grow(0)
    assert tree.scale.tolist() == [0.0]
    assert not len(tree.ids)


def test_only_columns_that_are_compared_count() -> None:
    X, Y, weight, _ = random_problem(N_ROWS, N_COLUMNS, N_LABELS, seed=9)
    few = Grower(TrainingRows(X, Y, weight), make_config({"forest": 1}), 8)
    tree = few.grow(0)
    is_inner = np.repeat(tree.first_child > 0, np.diff(tree.start))
    assert tree.ids[is_inner].max() == 7
    expert = few.expert([tree], POOL)
    nodes = decoded(expert.forest)
    leaves = [reference.leaf_of(nodes, 0, row_of(X, i, 8)) for i in range(N_ROWS)]
    assert expert.leaves(X[:3])[:, 0].tolist() == leaves


def test_trees_and_seeds_differ() -> None:
    grow, _ = grower()
    one, other = grow.grow(0), grow.grow(1)
    assert not np.array_equal(one.ids, other.ids)
    assert all(map(np.array_equal, one, grow.grow(0)))
