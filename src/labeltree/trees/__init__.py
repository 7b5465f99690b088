"""Tree builders, one file each, and the choice between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labeltree.config import Config, node_kinds, parameters
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import ParameterError
from labeltree.nodes.defaults import resolve
from labeltree.parallel import Pool
from labeltree.tree import LabelTree

TREES = next(parameter.choices for parameter in parameters() if parameter.name == "tree")


def check_tree(config: Config) -> None:
    """A wrong name is better found before the data is read."""
    if config.tree not in TREES and not Path(config.tree).is_file():
        raise ParameterError(
            f"tree must be one of {', '.join(TREES)} or an existing tree file, but is {config.tree!r}"
        )


def build_tree(
    config: Config,
    X: SparseRows,
    Y: LabelRows,
    label_names: Sequence[str],
    pool: Pool,
    seed: int | None = None,
    profiles: SparseRows | None = None,
) -> LabelTree:
    """The tree that ``config.tree`` names: a builder's, or the one in that file.

    ``seed`` is that of the config, unless an ensemble gives each of its
    trees another; ``profiles`` are those of the labels (of the kind ``config.profiles``), if they are known
    already.
    """
    config = resolve(config, node_kinds(config)[-1], Y.n_labels, Y.examples_per_label)
    if config.tree == "kmeans":
        from labeltree.trees.kmeans import build_kmeans
        from labeltree.trees.profiles import ENTRIES_PER_LABEL, label_profiles

        if profiles is None:
            profiles = label_profiles(X, Y, pool, ENTRIES_PER_LABEL, config.profiles)
        seed = config.seed if seed is None else seed
        eps, balanced = config.kmeans_eps, config.balanced
        tree = build_kmeans(profiles, config.arity, config.max_leaves, eps, seed, pool, balanced)
        return tree.collapse(config.collapse)
    if config.tree == "learned":
        from labeltree.trees.shapes import build_shuffled

        return build_shuffled(Y.n_labels, config.arity, config.seed if seed is None else seed)
    if config.tree in ("huffman", "complete"):
        from labeltree.trees.shapes import build_complete, build_huffman

        label_counts = np.bincount(Y.indices[Y.indices >= 0], minlength=Y.n_labels)
        build = build_huffman if config.tree == "huffman" else build_complete
        return build(label_counts, config.arity)
    if config.tree == "flat":
        from labeltree.trees.shapes import build_flat

        return build_flat(Y.n_labels)
    from labeltree.trees.file import read_tree

    check_tree(config)
    return read_tree(config.tree, label_names)
