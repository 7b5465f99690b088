"""The Huffman tree of any arity: the cheapest tree to train where each example has one label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from labeltree.tree import LabelTree
from labeltree.trees.shapes import check_arity, check_counts


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
