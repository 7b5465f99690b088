"""The labels of the highest a·P + b, exactly, with a weight a and a summand b of each label.

One tree, with all that is listed, is searched by a kernel. Of others the most probable labels are found, as
without weights, down to the probability that no label can be wanted with.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, SparseRows, pointers, read_only, take_rows
from labeltree.experts.by_rows import by_rows, part_of
from labeltree.experts.combined_trees import Votes
from labeltree.experts.ensemble import Ensemble, no_votes
from labeltree.experts.expert import Above, Found, empty_found
from labeltree.experts.tree_expert import TreeExpert
from labeltree.query import Query

_FIRST_SETS = 128  # labels that are searched for first, where a row may have any number of them ...
_BLOCK = 1024  # ... of so many rows at once
_FIRST_PROBABLE = 16  # labels that are looked at first
_HALVES = 20  # by which the least probability of labels that are wanted is found


class Wanted(NamedTuple):
    """Labels that have at least the probability ``lowest`` and are worth more than ``least``.

    And where these are too few, if ``is_filled``, the most probable of all others. They have values of their
    own, -1 / P, which must be at most ``least``.
    """

    lowest: float = 0.0
    least: float = -np.inf
    is_filled: bool = False


def values_of(
    worth: tuple[NDArray[np.float32], NDArray[np.float32]], wanted: Wanted, ids: NDArray[Any],
    probabilities: NDArray[Any],
) -> NDArray[np.float32]:  # fmt: skip
    """What labels of these probabilities are worth, by their weights and summands; -inf if not wanted."""
    weight, summand = worth
    values = (weight[ids].astype(np.float64) * probabilities + summand[ids]).astype(np.float32)
    is_wanted = (probabilities >= np.float32(wanted.lowest)) & (values > np.float32(wanted.least))
    with np.errstate(divide="ignore"):
        others = -1.0 / probabilities if wanted.is_filled else np.float32(-np.inf)
    return np.where(ids >= 0, np.where(is_wanted, values, others), -np.inf).astype(np.float32)


class _Values(NamedTuple):
    """For the kernel, as its ``Weights`` has them."""

    weight: NDArray[np.float32]
    summand: NDArray[np.float32]
    bounds: NDArray[np.float32]


class WeightedSearch:
    """For an ensemble, which must outlive it, and weights. Its methods may be called from many threads at
    once."""

    def __init__(
        self, ensemble: Ensemble, weight: NDArray[np.float32], summand: NDArray[np.float32], wanted: Wanted
    ) -> None:
        """``weight`` and ``summand`` are those of the labels, weights at least 0."""
        # The ensemble keeps it: together they would stay in memory until the collector looks for cycles.
        self._ensemble: Ensemble = weakref.proxy(ensemble)
        self._weight, self._summand, self._wanted = weight, summand, wanted
        combination = ensemble.combination
        self._shares = 1.0, 1.0  # of the trees, and the total that it is of
        if ensemble.single is None:
            self._shares = float(combination.weights[ensemble.searched].sum()), ensemble.total_weight
        self._map = read_only(np.ascontiguousarray(combination.map, np.float64))
        searched = [ensemble.experts[number] for number in ensemble.searched]
        self._tree: tuple[TreeExpert, _Values] | None = None
        if len(searched) == 1 and searched[0].searched_with is not None:
            tree = cast("TreeExpert", searched[0])
            self._tree = tree, self._values_of(tree)

    def _values_of(self, expert: TreeExpert) -> _Values:
        from labeltree.kernels.search.weighted import KNOTS

        weight, summand = (read_only(np.ascontiguousarray(each)) for each in (self._weight, self._summand))
        bounds = [expert.tree.most_below(self._weight * np.float32(p) + self._summand) for p in KNOTS]
        return _Values(weight, summand, read_only(np.ascontiguousarray(np.stack(bounds, axis=1))))

    def best(self, rows: SparseRows, query: Query, threads: int) -> Found:
        """The k best labels of each row that are wanted, with their probabilities, ordered by what they are
        worth; -1 and 0 where there are fewer."""
        ids, probabilities, is_exact = found = empty_found(rows.n_rows, query.k)

        def find(part: slice) -> None:
            arrays = part_of(rows, part)
            ids[part], probabilities[part], is_exact[part] = self._find(
                arrays, self._votes(arrays), query, query.k
            )

        by_rows(find, rows.n_rows, threads)
        return found

    def all(self, rows: SparseRows, query: Query, threads: int) -> tuple[SparseRows, NDArray[np.bool_]]:
        """All labels of each row that are wanted, with their probabilities, ordered by what they are worth;
        and which rows are proven."""
        parts: dict[int, tuple[Above, NDArray[np.bool_]]] = {}

        def find(part: slice) -> None:
            for start in range(part.start, part.stop, _BLOCK):
                arrays = part_of(rows, slice(start, min(start + _BLOCK, part.stop)))
                parts[start] = self._find_all(arrays, query)

        by_rows(find, rows.n_rows, threads)
        found = [parts[start] for start in sorted(parts)]
        lengths, ids, probabilities = _joined([part[0] for part in found])
        is_exact = np.concatenate([np.empty(0, np.bool_), *(part[1] for part in found)])
        return SparseRows(pointers(lengths), ids, probabilities, self._ensemble.n_labels), is_exact

    def _find_all(self, arrays: Arrays, query: Query) -> tuple[Above, NDArray[np.bool_]]:
        """Some are searched for first; where there may be more, more."""
        n_labels, n_rows = self._ensemble.n_labels, len(arrays[0]) - 1
        votes, k, open_rows = self._votes(arrays), min(_FIRST_SETS, n_labels), np.arange(n_rows)
        is_exact, found = np.ones(n_rows, np.bool_), []
        while len(open_rows):
            voted = cast("Votes", take_rows(cast("Arrays", votes), open_rows))
            part = take_rows(arrays, open_rows)
            ids, probabilities, is_exact[open_rows] = self._find(part, voted, query, k)
            is_label, is_open = ids >= 0, (ids[:, -1] >= 0) & (k < n_labels)
            is_label[is_open] = False
            rows = np.broadcast_to(open_rows[:, None], ids.shape)
            found.append((rows[is_label], ids[is_label], probabilities[is_label]))
            open_rows, k = open_rows[is_open], min(4 * k, n_labels)
        rows, ids, probabilities = _joined(found)
        if len(found) > 1:
            order = np.argsort(rows, kind="stable")
            rows, ids, probabilities = rows[order], ids[order], probabilities[order]
        return (np.bincount(rows, minlength=n_rows), ids, probabilities), is_exact

    def _votes(self, arrays: Arrays) -> Votes:
        """For the kernel; where that is not asked, none."""
        is_one = self._tree is not None
        return self._ensemble.votes(arrays) if is_one else no_votes(len(arrays[0]) - 1)

    def _find(self, arrays: Arrays, votes: Votes, query: Query, k: int) -> Found:
        """The best k labels of each row."""
        if self._tree is not None:
            return self._of_tree(*self._tree, arrays, votes, query._replace(k=k))
        return self._of_probable(arrays, query._replace(k=k))

    def _of_probable(self, arrays: Arrays, query: Query) -> Found:
        """Of the most probable labels: of more and more, until no other one can be worth enough."""
        n_labels, open_rows = self._ensemble.n_labels, np.arange(len(arrays[0]) - 1)
        ids, probabilities, is_exact = found = empty_found(len(open_rows), query.k)
        ids[:], probabilities[:] = -1, 0.0
        # Rows that are filled have at least the k most probable; after that what is wanted is enough.
        depth, threshold = (query.k, 0.0) if self._wanted.is_filled else (_FIRST_PROBABLE, self._least)
        while len(open_rows):
            depth = min(depth, n_labels)
            likely, p, _ = empty_found(len(open_rows), depth)
            asked = query._replace(k=depth, threshold=np.float32(threshold))
            is_proven = self._ensemble.topk(take_rows(arrays, open_rows), asked, likely, p)
            values = values_of((self._weight, self._summand), self._wanted, likely, p)
            order = np.lexsort((likely, -values))[:, : query.k]
            is_given = np.isfinite(np.take_along_axis(values, order, 1))
            done = (p[:, -1] < self._least) | ~is_proven | (depth == n_labels)
            rows = open_rows[done], slice(0, order.shape[1])
            ids[rows] = np.where(is_given, np.take_along_axis(likely, order, 1), -1)[done]
            probabilities[rows] = np.where(is_given, np.take_along_axis(p, order, 1), 0.0)[done]
            is_exact[open_rows[done]] = is_proven[done]
            open_rows, depth, threshold = open_rows[~done], max(_FIRST_PROBABLE, 2 * depth), self._least
        return found

    @functools.cached_property
    def _least(self) -> float:
        """No label that is less probable is wanted; by halving, a bit lower, as values are rounded."""
        low, high = 0.0, 1.0
        allowed = slice(None) if self._ensemble.allowed is None else self._ensemble.allowed
        weight, summand = self._weight[allowed].astype(np.float64), self._summand[allowed]
        for _ in range(_HALVES):
            middle = 0.5 * (low + high)
            is_low = np.max(weight * middle + summand, initial=-np.inf) <= self._wanted.least
            low, high = (middle, high) if is_low else (low, middle)
        return max(low, self._wanted.lowest) * (1.0 - 1e-5)

    def _of_tree(
        self, tree: TreeExpert, values: _Values, arrays: Arrays, votes: Votes, query: Query
    ) -> Found:
        """By the kernel, which has all experts."""
        ids, probabilities, is_exact = found = empty_found(len(arrays[0]) - 1, query.k)
        given = [read_only(array) for array in (*arrays, *votes)]
        lowest, least, is_filled = self._wanted
        how = *values, *self._shares, self._map, np.float32(lowest), np.float32(least), is_filled
        out = ids, np.empty(ids.shape, np.float32), probabilities, is_exact
        tree.kernels_for(query).weighted(tree.table, *given, *how, query.k, query.budget, *out)
        return found


def _joined(parts: Sequence[Above]) -> Above:
    """One after another."""
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    numbers, ids, probabilities = (np.concatenate(each) for each in zip(none, *parts, strict=True))
    return numbers, ids, probabilities
