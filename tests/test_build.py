"""The choice between the builders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labeltree.build import build_tree
from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import ParameterError
from labeltree.parallel import Pool

NAMES = [f"label {label}" for label in range(6)]
X = SparseRows(np.arange(13), np.arange(12, dtype=np.int32) % 4, np.ones(12, np.float32), 4)
Y = LabelRows(np.arange(13), np.repeat(np.arange(5, dtype=np.int32), [1, 1, 2, 3, 5]), 6)  # label 5 never


def build(**parameters: object) -> tuple:
    tree = build_tree(Config(**parameters), X, Y, NAMES, Pool(1))  # type: ignore[arg-type]
    return tree.n_labels, int(tree.depth_of_leaves.max()), int(tree.n_children.max())


def test_each_builder_gets_its_parameters() -> None:
    assert build(tree="flat") == (6, 1, 6)
    assert build(tree="complete", arity=2) == (6, 3, 2)
    assert build(tree="complete", arity=3) == (6, 2, 3)
    assert build(tree="huffman", arity=2) == (6, 5, 2)
    assert build(tree="kmeans", arity=2) == (6, 1, 6)
    assert build(tree="kmeans", arity=2, max_leaves=3) == (6, 2, 3)
    assert build(tree="kmeans", arity=2, max_leaves=1) == (6, 3, 2)


def test_frequent_labels_are_nearer_the_root() -> None:
    tree = build_tree(Config(tree="huffman", arity=2), X, Y, NAMES, Pool(1))
    assert np.argmin(tree.depth_of_leaves) == 4


def test_the_seed_is_the_configs_unless_given() -> None:
    def trees(seed: int | None, given: int | None) -> list[int]:
        config = Config(tree="kmeans", arity=2, max_leaves=1, seed=seed or 1)
        return build_tree(config, X, Y, NAMES, Pool(1), given).label.tolist()

    assert trees(5, None) == trees(1, 5)
    assert len({tuple(trees(seed, None)) for seed in range(1, 20)}) > 1


def test_a_file_or_an_error_that_lists_the_builders(tmp_path: Path) -> None:
    path = tmp_path / "tree.txt"
    tree = build_tree(Config(tree="huffman", arity=2), X, Y, NAMES, Pool(1))
    tree.write(path, NAMES)
    assert build_tree(Config(tree=str(path)), X, Y, NAMES, Pool(1)) == tree
    with pytest.raises(
        ParameterError, match="kmeans, huffman, complete, flat or an existing tree file, but is 'k'"
    ):
        build_tree(Config(tree="k"), X, Y, NAMES, Pool(1))
