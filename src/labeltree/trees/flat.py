"""The flat tree: every label is a child of the root, as in one classifier per label."""

from __future__ import annotations

import numpy as np

from labeltree.errors import TreeError
from labeltree.tree import LabelTree


def build_flat(n_labels: int) -> LabelTree:
    """The root and its leaves in order of label; a single label is a root that is a leaf."""
    if n_labels < 1:
        raise TreeError(f"a tree needs at least one label, but there are {n_labels}")
    if n_labels == 1:
        return LabelTree(np.array([-1]), np.array([0]))
    parent = np.zeros(n_labels + 1, np.int32)
    parent[0] = -1
    return LabelTree(parent, np.arange(-1, n_labels, dtype=np.int32))
