"""Trees whose evidence one kernel combines: those with the same kind of nodes and link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, read_only
from labeltree.experts.combination import Combination
from labeltree.experts.expert import Expert
from labeltree.kernels.check import CANONICAL
from labeltree.query import Query

if TYPE_CHECKING:
    from labeltree.experts.tree_expert import TreeExpert
    from labeltree.features.text import ShortText

# Of each row: indptr, sorted label ids, and the weighted sum of what experts give that list all their labels.
Votes = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


class CombinedTrees:
    """Searches all trees at once. Its methods may be called from many threads at once."""

    def __init__(
        self, trees: Sequence[TreeExpert], weights: NDArray[np.float64], combination: Combination
    ) -> None:
        # Kernels are imported late, but not anew at each call: a call takes microseconds.
        from labeltree.kernels.search import rows
        from labeltree.kernels.search.combined import TREES_TABLE

        self._trees, self._rows = trees, rows
        # The kernel has only their addresses, so they must live as long as this.
        self._arrays = {
            "tables": np.concatenate([tree.table for tree in trees]),
            "weights": weights.astype(np.float64),
            "total": np.array([combination.weights.sum()], np.float64),
            "map": np.ascontiguousarray(combination.map, np.float64),
        }
        self._table = TREES_TABLE.table(**self._arrays)

    def topk(
        self, arrays: Arrays, votes: Votes, query: Query, out_ids: NDArray[np.int32],
        out_probabilities: NDArray[np.float32],
    ) -> NDArray[np.bool_]:  # fmt: skip
        """As :meth:`Expert.topk` for the trees and votes together."""
        is_exact = np.empty(len(out_ids), np.bool_)
        given = [read_only(array) for array in (*arrays, *votes)]
        asked = query.k, query.threshold, query.budget
        search = self._trees[0].kernels_for(query).combined
        search(self._table, *given, *asked, out_ids, out_probabilities, is_exact)
        return is_exact

    def make_ready(self, indices: NDArray[np.int32], values: NDArray[np.float32], n: int, norm: int) -> bool:
        """Normalise the first n entries of a row, in place; False if there is something wrong with them."""
        return self._rows.ready_row(indices, values, n, norm, self._trees[0].n_features) == CANONICAL

    def fill_row(self, buffer: ShortText, text: bytes) -> int:
        """The row of a text, in its buffer: its length, or -1 if there is something wrong with the text."""
        return int(self._rows.ready_text(buffer.table, text))


def combine_trees(experts: Sequence[Expert], combination: Combination) -> CombinedTrees | None:
    """The experts that do not list their labels; None unless one kernel can search them."""
    searched = [number for number, expert in enumerate(experts) if not expert.lists_all]
    kernels = {experts[number].searched_with for number in searched}
    if len(kernels) != 1 or None in kernels:
        return None
    trees = cast("list[TreeExpert]", [experts[number] for number in searched])
    return CombinedTrees(trees, combination.weights[searched], combination)
