"""The rows of a parent as examples for its children."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.sparse.arrays import Gathered
from labeltree.nodes.sparse.plan import Plan
from labeltree.storage.space import IN_MEMORY, Space


class Scratch:
    """Buffers that the tasks of a thread share."""

    def __init__(self, plan: Plan) -> None:
        self.local_of_feature = np.full(plan.n_features, -1, np.int32)
        self.place_of_row = np.empty(len(plan.rows.weight), np.int32)


class Material(NamedTuple):
    """What siblings are trained on."""

    examples: Gathered
    features: NDArray[np.int32]  # the numbers that the examples' ones have among all
    positive_weight: NDArray[np.float32]  # (n_children,) as :class:`State` has it
    visits: list[NDArray[np.uint8]] | None  # bits of each pass: which examples it visits; None: all
    space: Space = IN_MEMORY  # for what the training needs besides


def gather_rows(
    plan: Plan, chosen: NDArray[np.int32], n_positive: int, scratch: Scratch
) -> tuple[Gathered, NDArray[np.int32]]:
    """The chosen rows as examples, with places for their positive children; and their features."""
    from labeltree.kernels.sparse.gathering import gather_examples

    n, bias, indptr = len(chosen), np.float32(plan.config.bias), plan.rows.indptr
    n_entries = int((indptr[chosen + 1] - indptr[chosen]).sum())
    n_features = min(n_entries, plan.n_features)
    n_entries += n * bool(bias)
    empty = plan.space.empty
    examples = Gathered(
        np.empty(n + 1, np.int64), empty(n_entries, np.int32), empty(n_entries, np.float32),
        np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.bool_),
        np.empty(n + 1, np.int64), np.empty(n_positive, np.int32),
    )  # fmt: skip
    features = np.empty(n_features, np.int32)
    n_features = gather_examples(plan.rows, chosen, bias, scratch.local_of_feature, examples, features)
    return examples, features[:n_features]


def gather_parent(plan: Plan, first: int, last: int, scratch: Scratch) -> Material:
    """Each row of the parent, positive for any number of the siblings from first to last."""
    from labeltree.kernels.sparse.gathering import gather_positive

    parent = int(plan.tree.parent[first])
    chosen = plan.all_rows if parent < 0 else plan.positive_rows(parent, parent + 1)
    examples, features = gather_rows(plan, chosen, len(plan.positive_rows(first, last)), scratch)
    gather_positive(
        plan.node_indptr, plan.node_rows, first, last - first, chosen, scratch.place_of_row,
        examples.positive_indptr, examples.positive,
    )  # fmt: skip
    positive_weight = plan.positive_weight[first:last].astype(np.float32)
    return Material(examples, features, positive_weight, None, plan.space)
