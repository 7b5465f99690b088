"""Trees whose shape follows from their size and the labels' counts alone: complete, Huffman and flat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows
from labeltree.errors import ParameterError, TreeError
from labeltree.tree import LabelTree, Shape
from labeltree.trees.builder import TreeBuilder, TreeInput


def build_complete(label_counts: ArrayLike, arity: int) -> LabelTree:
    """All inner nodes but the last have ``arity`` children; leaves lie on at most two neighbouring levels.

    Leaves take the labels in order of falling count, ties by id.
    """
    counts, arity = check_counts(label_counts), check_arity(arity)
    return _complete_tree(np.argsort(-counts, kind="stable"), arity)


def build_shuffled(n_labels: int, arity: int, seed: int) -> LabelTree:
    """A complete tree with the labels in random order: where a learned tree starts."""
    return _complete_tree(np.random.default_rng(seed).permutation(n_labels), check_arity(arity))


def _complete_tree(labels: NDArray[np.int64], arity: int) -> LabelTree:
    # Each inner node turns one open place into `arity` ones; the last one may need fewer, but at least two.
    n_inner = -(-(len(labels) - 1) // (arity - 1))
    parent = (np.arange(n_inner + len(labels)) - 1) // arity
    label = np.full(len(parent), -1)
    label[n_inner:] = labels
    return LabelTree(parent.astype(np.int32), label.astype(np.int32))


def check_counts(label_counts: ArrayLike) -> NDArray[np.int64]:
    """How often each label occurs, as int64, or an error that names the label."""
    counts = np.asarray(label_counts)
    if counts.ndim != 1 or len(counts) == 0:
        raise TreeError(f"a tree needs the counts of at least one label, but their shape is {counts.shape}")
    if counts.dtype.kind not in "iu":
        raise TreeError(f"label counts must be integers, but are of type {counts.dtype}")
    if counts.min() < 0:
        label = int(np.argmin(counts))
        raise TreeError(f"label {label}: its count must be at least 0, but is {counts[label]}")
    # The sum of all counts must fit too: it is the weight of a Huffman tree's root.
    if float(counts.astype(np.float64).sum()) >= 2.0**62:
        raise TreeError(f"label counts must sum to less than 2**62; the greatest is {counts.max()}")
    return counts.astype(np.int64)


def check_arity(arity: int) -> int:
    if arity < 2:
        raise ParameterError(f"arity must be at least 2, but is {arity}")
    return int(arity)


def build_huffman(label_counts: ArrayLike, arity: int) -> LabelTree:
    """Join the ``arity`` rarest groups of labels until one is left; only the first join may be smaller.

    Ties go to single labels before groups, then to the lower id or the older group.
    """
    from labeltree.kernels.trees.shapes import merge_huffman

    counts, arity = check_counts(label_counts), check_arity(arity)
    n_labels = len(counts)
    n_inner = -(-(n_labels - 1) // (arity - 1))
    by_count = np.argsort(counts, kind="stable")
    parent = np.full(n_labels + n_inner, -1, np.int32)
    if n_labels > 1:
        merge_huffman(counts[by_count], arity, parent)
    label = np.full(len(parent), -1, np.int32)
    label[:n_labels] = by_count
    return LabelTree.from_parents(parent, label)


def build_flat(n_labels: int) -> LabelTree:
    """The root and its leaves in order of label; a single label is a root that is a leaf."""
    if n_labels < 1:
        raise TreeError(f"a tree needs at least one label, but there are {n_labels}")
    if n_labels == 1:
        return LabelTree(np.array([-1]), np.array([0]))
    parent = np.zeros(n_labels + 1, np.int32)
    parent[0] = -1
    return LabelTree(parent, np.arange(-1, n_labels, dtype=np.int32))


class _Complete(TreeBuilder):
    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        return build_complete(_label_counts(given.rows.Y), given.config.arity)

    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        arity = min(config.arity, n_labels)
        depth = math.ceil(math.log(n_labels) / math.log(config.arity))
        return Shape(math.ceil(n_labels / max(1, arity - 1)), arity, max(1, depth))


class _Huffman(_Complete):
    """About as large as a complete tree: only deeper for rare labels."""

    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        return build_huffman(_label_counts(given.rows.Y), given.config.arity)


class _Flat(TreeBuilder):
    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        return build_flat(given.rows.Y.n_labels)

    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        return Shape(1, n_labels, 1)


def _label_counts(Y: LabelRows) -> NDArray[np.int64]:
    return np.bincount(Y.indices[Y.indices >= 0], minlength=Y.n_labels)


COMPLETE, HUFFMAN, FLAT = _Complete(), _Huffman(), _Flat()
