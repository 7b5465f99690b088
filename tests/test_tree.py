"""LabelTree: numbering, checks, statistics, cost, tensors."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeltree import LabelTree
from labeltree.data.rows import LabelRows
from labeltree.errors import CorruptedModelError, ParameterError, TreeError
from labeltree.reference import tree as reference

# The tree of the module's docstring.
PARENT, LABEL = np.array([-1, 0, 0, 2, 2]), np.array([-1, 1, -1, 0, 2])


@st.composite
def random_trees(draw: st.DrawFn, max_labels: int = 12) -> LabelTree:
    """Grow from the leaves: join random neighbours until one root is left."""
    n_labels = draw(st.integers(1, max_labels))
    labels = draw(st.permutations(range(n_labels)))
    parent, label, roots = [-1] * n_labels, list(labels), list(range(n_labels))
    while len(roots) > 1:
        size = draw(st.integers(2, len(roots)))
        start = draw(st.integers(0, len(roots) - size))
        for node in roots[start : start + size]:
            parent[node] = len(parent)
        roots[start : start + size] = [len(parent)]
        parent.append(-1)
        label.append(-1)
    return LabelTree.from_parents(np.array(parent), np.array(label))


def label_rows(label_sets: list[set[int]], n_labels: int) -> LabelRows:
    lengths = [len(labels) for labels in label_sets]
    indices = [label for labels in label_sets for label in sorted(labels)]
    return LabelRows(np.cumsum([0, *lengths]), np.array(indices, np.int32), n_labels)


def test_arrays_of_a_small_tree() -> None:
    tree = LabelTree(PARENT, LABEL)
    assert tree.first_child.tolist() == [1, -1, 3, -1, -1]
    assert tree.n_children.tolist() == [2, 0, 2, 0, 0]
    assert tree.leaf_of_label.tolist() == [3, 1, 4]
    assert tree.depth_of_leaves.tolist() == [2, 1, 2]
    assert (tree.n_nodes, tree.n_labels) == (5, 3)
    for name in ("parent", "label", "first_child", "n_children", "leaf_of_label"):
        array = getattr(tree, name)
        assert array.dtype == np.int32
        assert not array.flags.writeable


def test_the_callers_arrays_stay_his() -> None:
    parent, label = PARENT.astype(np.int32), LABEL.astype(np.int32)
    tree = LabelTree(parent, label)
    parent[1] = 4
    assert tree.parent[1] == 0


def test_single_label() -> None:
    tree = LabelTree.from_parents(np.array([-1]), np.array([0]))
    assert (tree.n_nodes, tree.n_labels) == (1, 1)
    assert tree.statistics()["depth_max"] == 0
    assert tree.cost(label_rows([{0}, set()], 1)) == 1.0


def test_statistics() -> None:
    expected = dict(n_labels=3, n_nodes=5, n_inner_nodes=2, depth_min=1, depth_mean=5 / 3, depth_max=2)
    assert LabelTree(PARENT, LABEL).statistics() == expected | dict(arity_min=2, arity_mean=2.0, arity_max=2)


@pytest.mark.parametrize(
    ("parent", "label", "message"),
    [
        ([], [], "is empty"),
        ([[-1]], [0], "shape"),
        ([-1.0], [0], "float64"),
        (["a"], [0], "integers"),
        ([[-1], [0, 1]], [0], "integers"),
        ([-1, 0, 0], [-1, 0], "3 nodes, but label has 2"),
        ([-1, 0, 0], [-1, 0, 2**40], "node 2: label must be"),
        ([-2, 0, 0], [-1, 0, 1], "node 0: parent must be"),
        ([-1, 0], [-1, 0], "node 0: has a single child"),
        ([-1, 0, 0], [-1, 0, 0], "nodes 1 and 2 both have the label 0"),
        ([-1, 0, 0], [-1, 0, 2], "node 2: a leaf's label must be one of 0..1"),
        ([-1, 0, 0], [-1, 0, -1], "node 2: a leaf's label"),
        ([-1, 0, 0], [2, 0, 1], "node 0: has children and the label 2"),
    ],
)
def test_refused_by_both_constructors(parent: list, label: list, message: str) -> None:
    for make in (LabelTree, LabelTree.from_parents):
        with pytest.raises(TreeError, match=message):
            make(parent, label)


@pytest.mark.parametrize(
    ("parent", "label", "message"),
    [
        ([0, 0, 0], [-1, 0, 1], "node 0: its parent must be -1"),
        ([-1, 0, 3, 0], [-1, 0, 1, 2], "node 2: its parent must be one of the nodes 0..1, but is 3"),
        ([-1, -1, 0], [-1, 0, 1], "node 1: its parent must be"),
        ([-1, 0, 0, 1, 1, 0], [-1, -1, 0, 1, 2, 3], "node 5: its parent 0 comes after 1"),
    ],
)
def test_numbering_must_be_breadth_first(parent: list, label: list, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        LabelTree(np.array(parent), np.array(label))


@pytest.mark.parametrize(
    ("parent", "label", "message"),
    [
        ([1, 0], [0, 1], "exactly one root"),
        ([-1, -1], [0, 1], "nodes 0 and 1 both have the parent -1"),
        ([-1, 0, 0, 9], [-1, 0, 1, 2], "node 3: its parent is 9"),
        ([-1, 0, 0, 4, 3], [-1, 0, 1, -1, -1], "node 3: .*a cycle"),
        ([-1, 0, 0, 3], [-1, 0, 1, 2], "node 3: .*a cycle"),
    ],
)
def test_from_parents_refuses(parent: list, label: list, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        LabelTree.from_parents(np.array(parent), np.array(label))


@given(st.lists(st.tuples(st.integers(-3, 8), st.integers(-3, 8)), max_size=8))
def test_any_arrays_give_a_tree_or_a_tree_error(nodes: list[tuple[int, int]]) -> None:
    parent, label = np.array(nodes, np.int64).reshape(-1, 2).T
    for make in (LabelTree, LabelTree.from_parents):
        try:
            tree = make(parent, label)
        except TreeError:
            continue
        assert reference.labels_below(tree, 0) == set(range(tree.n_labels))


@given(random_trees(), st.randoms(use_true_random=False))
def test_from_parents_takes_any_numbering(tree: LabelTree, random: object) -> None:
    order = list(range(tree.n_nodes))
    random.shuffle(order)  # type: ignore[attr-defined]
    number_of = np.argsort(order)
    parent = np.array([-1 if tree.parent[n] < 0 else number_of[tree.parent[n]] for n in order])
    other = LabelTree.from_parents(parent, tree.label[order])
    families = []
    for each in (tree, other):
        families.append(sorted(sorted(reference.labels_below(each, n)) for n in range(each.n_nodes)))
    assert families[0] == families[1]
    assert LabelTree.from_parents(tree.parent, tree.label) == tree


@given(random_trees(), st.data())
def test_cost_and_depth_follow_their_definitions(tree: LabelTree, data: st.DataObject) -> None:
    sets = st.lists(st.sets(st.integers(0, tree.n_labels - 1)), min_size=1, max_size=8)
    label_sets = data.draw(sets)
    assert tree.cost(label_rows(label_sets, tree.n_labels)) == pytest.approx(reference.cost(tree, label_sets))
    for label, depth in enumerate(tree.depth_of_leaves):
        above = sum(label in reference.labels_below(tree, n) for n in range(tree.n_nodes))
        assert depth == above - 1


def test_cost_leaves_out_unknown_labels_and_refuses_foreign_ones() -> None:
    tree = LabelTree(PARENT, LABEL)
    known = LabelRows(np.array([0, 1, 1]), np.array([0], np.int32), 3)
    unknown = LabelRows(np.array([0, 2, 3]), np.array([-1, 0, -1], np.int32), 3)
    assert tree.cost(known) == tree.cost(unknown) == 1 + 0.5 * 2 + 0.5 * 2
    assert tree.cost(LabelRows(np.array([0]), np.array([], np.int32), 3)) == 1.0
    with pytest.raises(TreeError, match="label 3, but this tree has 3 labels"):
        tree.cost(LabelRows(np.array([0, 1]), np.array([3], np.int32), 4))


def complete_tree(arity: int, depth: int) -> LabelTree:
    n_inner = (arity**depth - 1) // (arity - 1)
    parent = (np.arange(n_inner * arity + 1) - 1) // arity
    return LabelTree(parent, np.maximum(np.arange(len(parent)) - n_inner, -1))


@pytest.mark.parametrize(
    ("n", "children_of_levels"),
    [
        (0, [2, 2, 2, 2, 2, 2]),
        (1, [4, 4, 2, 2]),  # levels 0, 2, 4 stay, and level 5, whose children are leaves
        (2, [8, 4, 2]),
        (3, [16, 2, 2]),
        (4, [32, 2]),
        (9, [32, 2]),
    ],
)
def test_collapsed_levels(n: int, children_of_levels: list[int]) -> None:
    tree = complete_tree(2, 6).collapse(n)
    assert tree.n_labels == 64
    node, found = 0, []
    while tree.n_children[node]:
        found.append(int(tree.n_children[node]))
        node = int(tree.first_child[node])
    assert found == children_of_levels
    assert tree.label[tree.label >= 0].tolist() == list(range(64))  # neighbours stay neighbours


@given(random_trees(max_labels=30), st.integers(0, 5))
def test_collapse_agrees_with_its_rule(tree: LabelTree, n: int) -> None:
    collapsed = tree.collapse(n)
    assert collapsed == reference.collapse(tree, n)
    assert collapsed.n_labels == tree.n_labels
    families = [
        {frozenset(reference.labels_below(each, node)) for node in range(each.n_nodes)}
        for each in (tree, collapsed)
    ]
    assert families[1] <= families[0]
    assert tree.collapse(0) == tree


def test_collapse_refuses_negative_numbers() -> None:
    with pytest.raises(ParameterError, match="collapse must be at least 0, but is -1"):
        LabelTree(PARENT, LABEL).collapse(-1)


@given(random_trees())
@settings(max_examples=30)
def test_tensors_round_trip(tree: LabelTree) -> None:
    tensors = tree.tensors("tree.1")
    again = LabelTree.from_tensors(tensors, "tree.1")
    assert again == tree
    assert hash(again) == hash(tree)
    assert again.parent is tensors["tree.1.parent"]  # read-only arrays of a mapped file are not copied


def test_broken_tensors_are_a_corrupted_model() -> None:
    tensors = LabelTree(PARENT, LABEL).tensors()
    with pytest.raises(CorruptedModelError, match=r"tree\.label"):
        LabelTree.from_tensors({"tree.parent": tensors["tree.parent"]})
    with pytest.raises(CorruptedModelError, match="single child"):
        LabelTree.from_tensors({"tree.parent": np.array([-1, 0]), "tree.label": np.array([-1, 0])})


def test_a_million_labels_in_a_list_shaped_tree_are_quick() -> None:
    n_inner = 1_000_000
    parent = np.concatenate([np.arange(-1, n_inner - 1), np.arange(n_inner), [n_inner - 1]])
    label = np.concatenate([np.full(n_inner, -1), np.arange(n_inner + 1)])
    LabelTree.from_parents(np.array([-1]), np.array([0]))  # compiles
    start = time.process_time()
    tree = LabelTree.from_parents(parent, label)
    assert tree.depth_of_leaves.max() == n_inner
    assert tree.collapse(9).depth_of_leaves.max() == n_inner // 10 + 1
    assert time.process_time() - start < 5.0
