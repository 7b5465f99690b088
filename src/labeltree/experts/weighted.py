"""The labels of the highest a·P + b, exactly, with a weight a and a summand b of each label.

One tree, with all that is listed, is searched by a kernel. Of several each gives its best labels as if it
were alone; these and all that are listed are scored by all experts. A label that no tree gives has, where no
list has it, an average of at most the trees' share of its largest probability: so it is worth at most what
the last label is worth that a tree gave.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, SparseRows, distinct_labels, pointers, read_only, take_rows
from labeltree.experts.by_rows import by_rows, part_of
from labeltree.experts.combined_trees import Votes
from labeltree.experts.ensemble import Ensemble, no_votes
from labeltree.experts.expert import Above, Found, Labels, empty_found
from labeltree.experts.tree_expert import TreeExpert
from labeltree.query import Query

_FIRST_SETS = 128  # labels that are searched for first, where a row may have any number of them ...
_BLOCK = 1024  # ... of so many rows at once


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
        self._searched = [ensemble.experts[number] for number in ensemble.searched]
        self._by_summand = np.lexsort((np.arange(len(summand)), -summand)).astype(np.int32)
        if ensemble.allowed is not None:
            self._by_summand = self._by_summand[ensemble.allowed[self._by_summand]]
        is_tree = all(expert.searched_with is not None for expert in self._searched)
        trees = cast("list[TreeExpert]", self._searched) if is_tree else []
        self._trees = [(expert, self._values_of(expert)) for expert in trees]

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
        is_one = len(self._trees) == 1 == len(self._searched)
        return self._ensemble.votes(arrays) if is_one else no_votes(len(arrays[0]) - 1)

    def _find(self, arrays: Arrays, votes: Votes, query: Query, k: int) -> Found:
        """The best k labels of each row."""
        if len(self._trees) == 1 == len(self._searched):
            ids, _, probabilities, is_exact = self._of_tree(0, arrays, votes, query, k)
            return ids, probabilities, is_exact
        return self._of_any(arrays, query._replace(k=k))

    def _of_any(self, arrays: Arrays, query: Query) -> Found:
        """By Fagin's threshold algorithm."""
        n_rows, n_labels = len(arrays[0]) - 1, len(self._by_summand)
        ids, probabilities, is_exact = found = empty_found(n_rows, query.k)
        open_rows = np.arange(n_rows)
        depth = query.k + (len(self._trees) > 1)
        while len(open_rows):
            depth = min(depth, n_labels)
            part = take_rows(arrays, open_rows)
            labels, bound, is_proven = self._candidates(part, query, depth)
            marginals = self._ensemble.score(part, labels, query)
            values = values_of((self._weight, self._summand), self._wanted, labels[1], marginals)
            places = _best_places(labels, values, query.k)
            is_found = (places >= 0) & np.isfinite(np.append(values, 0)[places])
            last = np.where(places[:, -1] >= 0, values[places[:, -1]], -np.inf)
            # A little more than the bound, as probabilities are rounded in another order.
            higher = bound + 1e-5 * np.abs(np.where(np.isfinite(bound), bound, 0.0))
            done = (last >= higher) | ~is_proven | (depth == n_labels)
            chosen = open_rows[done]
            ids[chosen] = np.where(is_found, labels[1][places], -1)[done]
            probabilities[chosen] = np.where(is_found, marginals[places], 0.0)[done]
            is_exact[chosen] = is_proven[done]
            open_rows, depth = open_rows[~done], 2 * depth
        return found

    def _candidates(
        self, arrays: Arrays, query: Query, depth: int
    ) -> tuple[Labels, NDArray[np.float32], NDArray[np.bool_]]:
        """Labels of each row, what others are worth at most, and whether that is proven."""
        n_rows = len(arrays[0]) - 1
        bound, is_proven = np.full(n_rows, -np.inf, np.float32), np.ones(n_rows, np.bool_)
        rows, ids = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for expert in self._ensemble.experts:
            if expert.lists_all:
                lengths, listed, _ = expert.nonzero(arrays)
                rows.append(np.repeat(np.arange(n_rows), lengths))
                ids.append(listed)
        for number in range(len(self._trees)):
            found, values, _, is_exact = self._of_tree(number, arrays, no_votes(n_rows), query, depth)
            if len(self._trees) > 1:  # of one tree others are worth no more than what it gave itself
                bound = np.maximum(bound, values[:, -1])
            is_proven &= is_exact
            is_label = found >= 0
            rows.append(np.nonzero(is_label)[0])
            ids.append(found[is_label])
        if not self._trees:  # what nobody lists is worth its summand; others must be asked about all labels
            n_most = max((int(np.bincount(part).max(initial=0)) for part in rows[1:]), default=0)
            some = self._by_summand[: query.k + n_most] if not self._searched else self._by_summand
            rows.append(np.repeat(np.arange(n_rows), len(some)))
            ids.append(np.tile(some, n_rows))
        indptr, merged = distinct_labels(np.concatenate(rows), np.concatenate(ids), n_rows)
        return (indptr, merged), bound, is_proven

    def _of_tree(
        self, number: int, arrays: Arrays, votes: Votes, query: Query, depth: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Labels, what they are worth, their probabilities; and where that is proven."""
        tree, values = self._trees[number]
        shape = len(arrays[0]) - 1, depth
        out = np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.float32)
        is_exact = np.empty(shape[0], np.bool_)
        given = [read_only(array) for array in (*arrays, *votes)]
        lowest, least, is_filled = self._wanted
        how = *values, *self._shares, self._map, np.float32(lowest), np.float32(least), is_filled
        asked = depth, query._replace(k=depth).budget
        tree.kernels_for(query).weighted(tree.table, *given, *how, *asked, *out, is_exact)
        return *out, is_exact


def _joined(parts: Sequence[Above]) -> Above:
    """One after another."""
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
    numbers, ids, probabilities = (np.concatenate(each) for each in zip(none, *parts, strict=True))
    return numbers, ids, probabilities


def _best_places(labels: Labels, values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """(n_rows, k) where the k highest values of a row are, of equal ones the lower label; -1 if fewer."""
    indptr, ids = labels
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((ids, -values, rows))
    take = indptr[:-1, None] + np.arange(k)
    return np.where(take < indptr[1:, None], np.append(order, -1)[np.minimum(take, len(order))], -1)
