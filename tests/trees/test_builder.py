"""The choice between the builders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows
from labeltree.errors import ParameterError
from labeltree.parallel import Pool
from labeltree.reference import tree as reference
from labeltree.tree import LabelTree
from labeltree.trees.builder import TreeInput, build_tree
from labeltree.trees.file import write_tree

NAMES = [f"label {label}" for label in range(6)]
X = SparseRows(np.arange(13), np.arange(12, dtype=np.int32) % 4, np.ones(12, np.float32), 4)
Y = LabelRows(np.arange(13), np.repeat(np.arange(5, dtype=np.int32), [1, 1, 2, 3, 5]), 6)  # label 5 never


def tree_of(config: Config, X: SparseRows = X, Y: LabelRows = Y) -> LabelTree:
    names = NAMES[: Y.n_labels] + [str(label) for label in range(len(NAMES), Y.n_labels)]
    rows = TrainingRows(X, Y, np.ones(X.n_rows, np.float32))
    return build_tree(TreeInput(rows, names, config, Pool(1)), config.seed)


def build(**parameters: object) -> tuple:
    tree = tree_of(Config(**parameters))  # type: ignore[arg-type]
    return tree.n_labels, int(tree.depth_of_leaves.max()), int(tree.n_children.max())


def test_each_builder_gets_its_parameters() -> None:
    assert build(tree="flat") == (6, 1, 6)
    assert build(tree="complete", arity=2) == (6, 3, 2)
    assert build(tree="complete", arity=3) == (6, 2, 3)
    assert build(tree="huffman", arity=2) == (6, 5, 2)
    assert build(tree="kmeans", arity=2, max_leaves=64) == (6, 1, 6)
    assert build(tree="kmeans", arity=2, max_leaves=3) == (6, 2, 3)
    assert build(tree="kmeans", arity=2, max_leaves=1) == (6, 3, 2)


@pytest.mark.parametrize(("kind", "expected"), [("features", False), ("labels", True), ("both", True)])
def test_profiles_may_be_of_labels(kind: str, expected: bool) -> None:
    # All rows have the same features; the labels 0 and 4, 1 and 5, 2 and 6, 3 and 7 are always together.
    rows = SparseRows(np.arange(9), np.zeros(8, np.int32), np.ones(8, np.float32), 1)
    pairs = np.array([[row % 4, row % 4 + 4] for row in range(8)], np.int32)
    labels = LabelRows(np.arange(0, 17, 2), pairs.ravel(), 8)

    def finds_pairs(seed: int) -> bool:
        config = Config(tree="kmeans", arity=4, max_leaves=2, profiles=kind, seed=seed)
        tree = tree_of(config, rows, labels)
        above = tree.parent[tree.leaf_of_label]
        return above[:4].tolist() == above[4:].tolist() and len(set(above.tolist())) == 4

    # K-means needs a start in each pair, which one seed in four gives.
    assert any(finds_pairs(seed) for seed in range(1, 20)) == expected


def test_kmeans_may_be_uneven_and_collapsed() -> None:
    random = np.random.default_rng(3)
    kind = np.repeat([0, 1, 2], [70, 20, 10])
    indices = 4 * kind + random.integers(0, 4, 100)
    rows = SparseRows(np.arange(101), indices.astype(np.int32), np.ones(100, np.float32), 12)
    labels = LabelRows(np.arange(101), np.arange(100, dtype=np.int32), 100)

    def build_with(**parameters: object) -> LabelTree:
        config = Config(tree="kmeans", arity=2, max_leaves=4, **parameters)  # type: ignore[arg-type]
        return tree_of(config, rows, labels)

    assert reference.imbalances(build_with(), 2, 4) == []
    uneven = build_with(balanced=False)
    assert reference.imbalances(uneven, 2, 4, balanced=False) == []
    assert reference.imbalances(uneven, 2, 4) != []
    assert build_with(collapse=2) == reference.collapse(build_with(), 2)
    assert build_with(collapse=2).depth_of_leaves.max() < build_with().depth_of_leaves.max()


def test_frequent_labels_are_nearer_the_root() -> None:
    tree = tree_of(Config(tree="huffman", arity=2))
    assert np.argmin(tree.depth_of_leaves) == 4


def test_the_seed_makes_another_tree() -> None:
    def tree(seed: int) -> tuple[int, ...]:
        return tuple(tree_of(Config(tree="kmeans", arity=2, max_leaves=1, seed=seed)).label.tolist())

    assert tree(5) == tree(5)
    assert len({tree(seed) for seed in range(1, 20)}) > 1


def test_a_file_or_an_error_that_lists_the_builders(tmp_path: Path) -> None:
    path = tmp_path / "tree.txt"
    tree = tree_of(Config(tree="huffman", arity=2))
    write_tree(path, tree, NAMES)
    assert tree_of(Config(tree=str(path))) == tree
    builders = "kmeans, huffman, complete, flat, learned"
    with pytest.raises(ParameterError, match=f"{builders} or an existing tree file, but is 'k'"):
        tree_of(Config(tree="k"))
