"""Experts over the same rows: the exact top k of their combined evidence.

Most experts, such as trees, can only be searched; some list all labels that are not 0 for a row
(``Expert.lists_all``). A label that is in no list can be no better than the searched experts say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, distinct_labels, pointers, read_only, take_rows
from labeltree.experts.combination import Combination
from labeltree.experts.combined_trees import Votes, combine_trees
from labeltree.experts.expert import Above, Expert, Found, Labels, empty_found
from labeltree.query import NO_BEAM, Query

if TYPE_CHECKING:
    from labeltree.features.text import ShortText

_NO_THRESHOLD = np.float32(0.0)
_MOST_KEPT = 4  # of what follows from rules: a model has one, and others may be tried

_Kept = TypeVar("_Kept")


class Ensemble:
    """Some experts and how they are combined. Its methods may be called from many threads at once."""

    def __init__(self, experts: Sequence[Expert], combination: Combination) -> None:
        self.experts, self.combination = experts, combination
        self.total_weight = float(combination.weights.sum())
        self.searched = [number for number, expert in enumerate(experts) if not expert.lists_all]
        pairs = zip(combination.weights.tolist(), experts, strict=True)
        self._listed = [(weight, expert) for weight, expert in pairs if expert.lists_all and weight > 0.0]
        # The only expert, where its probabilities are the answer.
        self.single = experts[0] if len(experts) == 1 and not len(combination.map) else None
        self.trees = combine_trees(experts, combination) if self.single is None else None
        self.allowed: NDArray[np.bool_] | None = None  # labels, if not all
        self._kept: dict[object, Any] = {}
        self._keeping = threading.Lock()

    def restricted(self, allowed: NDArray[np.bool_]) -> Ensemble:
        """The same, as if there were no other labels than the allowed ones."""
        other = Ensemble([expert.restricted(allowed) for expert in self.experts], self.combination)
        other.allowed = allowed
        return other

    def kept(self, owner: object, make: Callable[[], _Kept]) -> _Kept:
        """What an owner, such as a rule, needs again and again of these experts: made once, by one thread.

        It goes when the ensemble does, and so must not hold it.
        """
        with self._keeping:
            if owner not in self._kept:
                if len(self._kept) == _MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[owner] = make()
            return self._kept[owner]

    @property
    def n_labels(self) -> int:
        return self.experts[0].n_labels

    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """As :meth:`Expert.topk` for the combination: by one kernel where that can search all experts."""
        if not self.searched:
            return self._topk_of_lists(arrays, query, out_ids, out_probabilities)
        if self.single is not None:
            return self.single.topk(arrays, query, out_ids, out_probabilities)
        if self.trees is not None and query.beam == NO_BEAM:
            return self.trees.topk(arrays, self.votes(arrays), query, out_ids, out_probabilities)
        return self._topk_of_any(arrays, query, out_ids, out_probabilities)

    def _topk_of_lists(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Where all experts list their labels there is nothing to search."""
        from labeltree.kernels.search.answer import best_of_votes

        votes = [read_only(array) for array in self.votes(arrays)]
        map_of_average = read_only(np.ascontiguousarray(self.combination.map, np.float64))
        labels, left_out = np.arange(self.n_labels, dtype=np.int32), np.zeros(self.n_labels, np.int32)
        if self.allowed is not None:
            left_out[~self.allowed] = -1
        asked = self.total_weight, read_only(labels), read_only(left_out), query.k, query.threshold
        best_of_votes(map_of_average, *votes, *asked, out_ids, out_probabilities)
        return np.ones(len(out_ids), np.bool_)

    def _topk_of_any(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """By Fagin's threshold algorithm, for any experts.

        Each searched expert gives its best ``depth`` labels; those and the listed ones are scored by all. No
        other label can have a higher average than that of the experts' last ones: rows whose k-th label
        beats that are done, the others go on with twice the depth. Where an expert's labels are not proven to
        be its best ones, the answer is not either, and the row is done too.
        """
        open_rows = np.arange(len(arrays[0]) - 1)
        is_exact = np.ones(len(open_rows), np.bool_)
        depth = query.k + 1  # where all agree on the k-th label, only the next one can tell that it is safe
        while len(open_rows):
            depth = min(depth, self.n_labels)
            part = take_rows(arrays, open_rows)
            found = find_evidence(self.experts, part, query._replace(k=depth, threshold=_NO_THRESHOLD))
            best_ids, best = best_per_row(found.labels, self._average(found.probabilities), query.k)
            weights = self.combination.weights[self.searched, None]
            bound = (weights * found.last).sum(axis=0) / self.total_weight
            # A little more than the bound, as averages are rounded in another order. With a bound of 0 all
            # other labels have probability 0, and each expert gave those of the lowest ids.
            done = (best[:, -1] > bound * (1 + 1e-5)) | (bound == 0.0) | (depth == self.n_labels)
            done |= ~found.is_exact
            is_exact[open_rows] = found.is_exact
            probabilities = self.combination.mapped(best)
            is_missing = (best_ids < 0) | (probabilities < query.threshold)
            best_ids[is_missing], probabilities[is_missing] = -1, 0.0
            out_ids[open_rows[done]], out_probabilities[open_rows[done]] = best_ids[done], probabilities[done]
            open_rows = open_rows[~done]
            depth *= 2
        return is_exact

    def topk_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], n: int, norm: int, query: Query
    ) -> Found | None:
        """As :meth:`Expert.topk_row`."""
        if self.trees is None or not self.trees.make_ready(indices, values, n, norm):
            return None
        return self._topk_one(indices[:n], values[:n], query)

    def topk_text(self, buffer: ShortText, text: bytes, query: Query) -> Found | None:
        """As :meth:`Expert.topk_text`."""
        n = -1 if self.trees is None else self.trees.fill_row(buffer, text)
        return self._topk_one(buffer.indices[:n], buffer.values[:n], query) if n >= 0 else None

    def _topk_one(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> Found:
        ids, probabilities, _ = empty_found(1, query.k)
        arrays = np.array((0, len(indices))), indices, values
        return ids, probabilities, self.topk(arrays, query, ids, probabilities)

    def above(self, arrays: Arrays, query: Query) -> Above:
        """As :meth:`Expert.above`: a label that is in no list must reach it for a searched expert."""
        if self.single is not None:
            return self.single.above(arrays, query)
        n_rows, least = len(arrays[0]) - 1, self.combination.least_average(query.threshold)
        of_searched = float(self.combination.weights[self.searched].sum())
        found: list[Above] = [expert.nonzero(arrays) for expert in self.experts if expert.lists_all]
        if query.threshold <= 0.0 and of_searched == 0.0:  # lists lack the labels of probability 0
            every = np.flatnonzero(self.allowed) if self.allowed is not None else np.arange(self.n_labels)
            found.append((np.full(n_rows, len(every)), *_all_labels(n_rows, every)))
        if of_searched > 0.0:
            lower = query._replace(threshold=np.float32(min(1.0, least * self.total_weight / of_searched)))
            found += [self.experts[number].above(arrays, lower) for number in self.searched]
        rows = np.concatenate([np.repeat(np.arange(n_rows), lengths) for lengths, _, _ in found])
        indptr, ids = distinct_labels(rows, np.concatenate([ids for _, ids, _ in found]), n_rows)
        probabilities = self.score(arrays, (indptr, ids), query)
        keep = probabilities >= query.threshold
        row_of = np.repeat(np.arange(n_rows), np.diff(indptr))
        return np.bincount(row_of[keep], minlength=n_rows), ids[keep], probabilities[keep]

    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        """As :meth:`Expert.score`."""
        if self.single is not None:
            return self.single.score(arrays, labels, query)
        scores = np.stack([expert.score(arrays, labels, query) for expert in self.experts])
        probabilities = self.combination.mapped(self._average(scores))
        probabilities[labels[1] < 0] = 0.0
        return probabilities

    def _average(self, probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
        """Of (n_experts, n), in 32 bits; first the searched experts, then the votes, as kernels do."""
        listed = [number for number in range(len(self.experts)) if number not in self.searched]
        sums = [np.zeros(probabilities.shape[1]), np.zeros(probabilities.shape[1])]
        for total, numbers in zip(sums, (self.searched, listed), strict=True):
            for number in numbers:
                total += self.combination.weights[number] * probabilities[number].astype(np.float64)
        return ((sums[0] + sums[1]) / self.total_weight).astype(np.float32).astype(np.float64)

    def votes(self, arrays: Arrays) -> Votes:
        """What the experts say that list all their labels, with their weights."""
        n_rows = len(arrays[0]) - 1
        if not self._listed:
            return no_votes(n_rows)
        weight, expert = self._listed[0]
        lengths, ids, probabilities = expert.nonzero(arrays)
        votes = pointers(lengths), ids, weight * probabilities.astype(np.float64)
        for weight, expert in self._listed[1:]:
            votes = _with_list(votes, weight, expert.nonzero(arrays))
        return votes


def no_votes(n_rows: int) -> Votes:
    """Of rows that no expert lists labels for."""
    return np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float64)


def _with_list(votes: Votes, weight: float, found: Above) -> Votes:
    """With what another expert says, with its weight."""
    from labeltree.kernels.search.votes import add_votes

    lengths, ids, probabilities = found
    n_most = len(votes[1]) + len(ids)
    out = np.zeros(len(lengths) + 1, np.int64), np.empty(n_most, np.int32), np.empty(n_most, np.float64)
    # Weighted here: a kernel may add a product without rounding it, and sums made elsewhere would differ.
    more = pointers(lengths), ids, weight * probabilities.astype(np.float64)
    n = add_votes(*[read_only(array) for array in (*votes, *more)], *out)
    return out[0], out[1][:n], out[2][:n]


def _all_labels(n_rows: int, every: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Those of every row, as a list that says nothing of them."""
    return np.tile(every.astype(np.int32), n_rows), np.zeros(n_rows * len(every), np.float32)


class Evidence(NamedTuple):
    """What experts say of the labels that some of them finds probable."""

    labels: Labels  # of each row
    probabilities: NDArray[np.float32]  # (n_experts, n) of these labels
    last: NDArray[np.float64]  # (n_searched, n_rows) other labels are at most as probable for an expert ...
    is_exact: NDArray[np.bool_]  # (n_rows,) ... where all found their best labels for certain


def find_evidence(experts: Sequence[Expert], arrays: Arrays, query: Query) -> Evidence:
    """The labels that are among the k best of a searched expert, or in a list; each expert scores the others
    too."""
    n_rows, n_labels = len(arrays[0]) - 1, experts[0].n_labels
    own = [_found_by(expert, arrays, query) for expert in experts]
    indptr, merged = distinct_labels(
        np.concatenate([rows for rows, _, _, _ in own]), np.concatenate([ids for _, ids, _, _ in own]), n_rows
    )
    rows = np.repeat(np.arange(n_rows), np.diff(indptr))
    keys = rows * n_labels + merged
    scores = np.zeros((len(experts), len(merged)), np.float32)
    last = []
    for number, (expert, (own_rows, ids, probabilities, _)) in enumerate(zip(experts, own, strict=True)):
        is_known = np.zeros(len(merged), bool)
        if expert.lists_all or expert.scores_alike:
            place = np.searchsorted(keys, own_rows * n_labels + ids)
            scores[number, place] = probabilities
            is_known[place] = True
        if expert.lists_all:
            continue
        asked = pointers(np.bincount(rows[~is_known], minlength=n_rows)), merged[~is_known]
        scores[number, ~is_known] = expert.score(arrays, asked, query)
        last.append(_last_of_rows(own_rows, probabilities, n_rows, query.k))
    is_exact = np.all([is_exact for _, _, _, is_exact in own], axis=0)
    return Evidence((indptr, merged), scores, np.array(last).reshape(-1, n_rows), is_exact)


def _found_by(
    expert: Expert, arrays: Arrays, query: Query
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """Rows, labels, their probabilities: the best of an expert, or all but 0; and which rows are proven."""
    n_rows = len(arrays[0]) - 1
    if expert.lists_all:
        lengths, ids, probabilities = expert.nonzero(arrays)
        return np.repeat(np.arange(n_rows), lengths), ids, probabilities, np.ones(n_rows, np.bool_)
    best_ids = np.empty((n_rows, query.k), np.int32)
    best = np.empty((n_rows, query.k), np.float32)
    is_exact = expert.topk(arrays, query, best_ids, best)
    is_label = best_ids >= 0
    rows = np.broadcast_to(np.arange(n_rows)[:, None], best.shape)
    return rows[is_label], best_ids[is_label], best[is_label], is_exact


def _last_of_rows(
    rows: NDArray[np.int64], probabilities: NDArray[np.float32], n_rows: int, k: int
) -> NDArray[np.float64]:
    """(n_rows,) the probability of a row's k-th label; 0 where it has fewer."""
    ends = np.cumsum(np.bincount(rows, minlength=n_rows))
    is_full = np.diff(ends, prepend=0) == k
    last = np.zeros(n_rows)
    last[is_full] = probabilities[ends[is_full] - 1]
    return last


def best_per_row(
    labels: Labels, scores: NDArray[np.floating[Any]], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The k best of each row's labels, -1 and 0 where it has fewer; ties to the lower label.

    Scores count as the 32 bits that they are told in: what looks equal is equal.
    """
    indptr, ids = labels
    told = scores.astype(np.float32)
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((ids, -told, rows))
    take = indptr[:-1, None] + np.arange(k)
    found = take < indptr[1:, None]
    best_ids, best = np.full(take.shape, -1, np.int32), np.zeros(take.shape)
    best_ids[found], best[found] = ids[order[take[found]]], scores[order[take[found]]]
    return best_ids, best
