"""Predictor: experts, with what turns texts into their rows. It answers; the rest is in model.py."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.labels import check_label_rows
from labeltree.data.rows import LabelRows, SparseRows, emptied, without_entries
from labeltree.decisions.rule import Decided, Rule, as_columns
from labeltree.errors import DataError, ParameterError, show
from labeltree.experts.by_rows import above_of_rows, best_of_rows, score_rows, similar_of_rows
from labeltree.experts.combination import Combination
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Expert, Found
from labeltree.experts.masks import LabelMask, make_mask
from labeltree.experts.single_row import SingleRow
from labeltree.features.features import Features, is_list
from labeltree.features.strings import StringTable
from labeltree.parallel import check_threads
from labeltree.query import (
    ALL,
    DEFAULT_SEARCH,
    OF_MODEL,
    RULES,
    USUAL_K,
    WITH_LABELS,
    Query,
    check_columns,
    make_query,
    query_all,
)
from labeltree.wording import FIND_NAMES, did_you_mean

if TYPE_CHECKING:
    from labeltree.explain.labels import LabelSearch

Answers = list[list[tuple[str, float]]]  # of each row: labels and probabilities, best first

Neighbours = list[list[tuple[int, float]]]  # of each row: numbers of training rows and similarities


class Predictor:
    """Says which labels are probable for texts or rows. Its methods may be called from many threads."""

    def __init__(
        self,
        features: Features,
        labels: StringTable,
        label_counts: NDArray[np.int64],
        n_examples: int,
        experts: Sequence[Expert],
        combination: Combination,
        rule: Rule | None,
    ) -> None:
        self.features = features
        self.labels = labels
        self.label_counts = label_counts  # (n_labels,) training rows of each label
        self.n_examples = n_examples
        self.experts, self.combination = experts, combination
        self.rule = rule
        self.n_labels, self.n_features = len(labels), features.n_columns
        self._ensemble = Ensemble(experts, combination)
        self._names: list[str] | None = None
        self._single_row = SingleRow(features, self._ensemble)

    @property
    def rule(self) -> Rule | None:
        """Which labels are given, if not the most probable ones."""
        return self._rule

    @rule.setter
    def rule(self, rule: Rule | None) -> None:
        if rule is not None:
            if not isinstance(rule, Rule):
                raise ParameterError(f"rule must be a Rule, as `tune` finds it, or None, but is {show(rule)}")
            rule.check_labels(self.labels)
            rule.labels = self.labels
        self._rule = rule

    @property
    def label_names(self) -> list[str]:
        if self._names is None:
            self._names = self.labels.strings()
        return self._names

    def predict(
        self, X: Any, k: int | None = USUAL_K, *, threshold: float = 0.0, normalize: bool = False,
        search: str = DEFAULT_SEARCH, beam: int | None = None, if_unknown: str = WITH_LABELS,
        allowed: Any = None, without: Any = None, rule: Any = OF_MODEL, threads: int = 0,
    ) -> Answers:  # fmt: skip
        """For each text or row its most probable labels with their probabilities, best first.

        At most ``k`` labels of at least ``threshold``; with k 0 or None and a threshold above 0 all, or as
        many of them as a rule says.
        ``search="auto"`` is exact for nearly all rows; where a model is unsure among very many labels, it
        ends with the best of those found so far (:meth:`predict_arrays` tells where). ``"exact"`` always goes
        on to the end; ``"beam"`` opens only the ``beam`` (or 10) most probable nodes of each level, and may
        miss labels or find fewer than ``k``. A row that the model :meth:`knows` nothing of gets the labels
        that are probable for any row, or none with ``if_unknown="nothing"``.

        Only ``allowed`` labels are given, a list of them, one list for each row or a :meth:`mask`; and none
        of those ``without`` lists. A model that was tuned (``tune``) gives what its rule says, as many as
        that says unless ``k`` does; ``rule="none"`` gives the most probable ones, and another rule may be
        given.
        """
        query = self.masked(make_query(k, threshold, normalize, search, beam, if_unknown), allowed, without)
        return self.answer(X, self.ruled(query, rule, is_usual=k is USUAL_K), threads)[0]

    def predict_arrays(
        self, X: Any, k: int = 5, *, threshold: float = 0.0, normalize: bool = False,
        search: str = DEFAULT_SEARCH, beam: int | None = None, if_unknown: str = WITH_LABELS,
        allowed: Any = None, without: Any = None, rule: Any = OF_MODEL, threads: int = 0,
        return_exact: bool = False,
    ) -> tuple[NDArray[Any], ...]:  # fmt: skip
        """Label ids and probabilities, both (n_rows, k), best first; -1 and 0 where fewer are found.

        With ``return_exact`` also (n_rows,) whether these are proven to be the most probable labels.
        """
        query = make_query(check_columns(k), threshold, normalize, search, beam, if_unknown)
        asked = self.ruled(self.masked(query, allowed, without), rule)
        ids, probabilities, is_exact = self.best(X, asked, threads)
        n_more = query.k - ids.shape[1]
        if n_more:
            places = ((0, 0), (0, n_more))
            ids, probabilities = np.pad(ids, places, constant_values=-1), np.pad(probabilities, places)
        return (ids, probabilities, is_exact) if return_exact else (ids, probabilities)

    def predict_rows(
        self, X: Any, threshold: float, *, normalize: bool = False, if_unknown: str = WITH_LABELS,
        allowed: Any = None, without: Any = None, threads: int = 0,
    ) -> SparseRows:  # fmt: skip
        """All labels of at least ``threshold``: rows of probabilities over label ids."""
        query = query_all(threshold, normalize, if_unknown)
        return self.above(X, self.masked(query, allowed, without), threads)

    def mask(self, allowed: Any = None, without: Any = None) -> LabelMask:
        """Labels that may be given, as ``allowed=`` of :meth:`predict`: what follows from it is kept with it,
        so that it is quick to use again."""
        mask = make_mask(self.labels, allowed, without)
        if not isinstance(mask, LabelMask):
            raise ParameterError(
                "a mask needs allowed, a list of labels, or without; not a list for each row"
            )
        return mask

    def masked(self, query: Query, allowed: Any, without: Any) -> Query:
        """The query for some labels only, in the forms of :meth:`predict`."""
        if allowed is None and without is None:
            return query
        return query._replace(mask=make_mask(self.labels, allowed, without))

    def ruled(self, query: Query, rule: Any = OF_MODEL, *, is_usual: bool = False) -> Query:
        """The query by a rule: the model's own, if it has one, ``"none"``, or another."""
        if isinstance(rule, str) and rule in RULES:
            chosen = self.rule if rule == OF_MODEL else None
        elif isinstance(rule, Rule):
            chosen = rule
        elif rule is None:
            chosen = None
        else:
            raise ParameterError(f"rule must be one of {', '.join(RULES)} or a Rule, but is {show(rule)}")
        if chosen is None:
            return query
        chosen.check_labels(self.labels)
        return query._replace(rule=chosen, k=ALL if is_usual else query.k)

    def decided(self, X: Any, query: Query, threads: int = 0) -> Decided:
        """What the query's rule gives each row: label ids in order, probabilities; and where it is proven."""
        assert query.rule is not None
        rows, ensemble = self._rows(X), self._ensemble
        if query.mask is not None:
            if not isinstance(query.mask, LabelMask):
                raise ParameterError("a rule takes a mask for all rows, no list for each; or rule none")
            ensemble = query.mask.restrict(ensemble)
        found, is_exact = query.rule.decide(ensemble, rows, query, check_threads(threads))
        if not query.labels_unknown:
            found = emptied(found, without_entries(rows))
        return found, is_exact

    def answer(self, X: Any, query: Query, threads: int = 0) -> tuple[Answers, NDArray[np.bool_]]:
        """What :meth:`predict` returns, to a query that is made already; and which rows are proven exact."""
        names = self.label_names
        if query.rule is not None:
            found, is_exact = self.decided(X, query, threads)
            pairs = (_row(found, i) for i in range(found.n_rows))
            by_rule = [[(names[id], float(p)) for id, p in zip(*pair, strict=True)] for pair in pairs]
            return by_rule, is_exact
        if query.k == ALL:
            rows = self.above(X, query, threads)
            return [
                sorted(
                    ((names[id], float(p)) for id, p in zip(*_row(rows, i), strict=True)),
                    key=lambda pair: -pair[1],
                )
                for i in range(rows.n_rows)
            ], np.ones(rows.n_rows, np.bool_)
        ids, probabilities, is_exact = self.best(X, query, threads)
        return self._named(ids, probabilities), is_exact

    def answer_known(self, text: str, query: Query) -> tuple[list[tuple[str, float]], bool] | None:
        """As :meth:`answer`, of a short text that the model knows something of, without a mask or a rule.

        None where that is not so, or not seen at once.
        """
        if query.k > self.n_labels:
            query = query._replace(k=self.n_labels)
        found = self._single_row.best([text], query._replace(labels_unknown=False))
        return None if found is None else (self._named(*found[:2])[0], bool(found[2][0]))

    def _named(self, ids: NDArray[np.int32], probabilities: NDArray[np.float32]) -> Answers:
        names, answers = self.label_names, []
        # Without `strict=`, whose handing over is a good part of the time of all this for a single row.
        for row_ids, row_probabilities in zip(ids.tolist(), probabilities.tolist()):  # noqa: B905
            if row_ids[-1] < 0:
                del row_ids[row_ids.index(-1) :]
            answers.append(list(zip(map(names.__getitem__, row_ids), row_probabilities)))  # noqa: B905
        return answers

    def best(self, X: Any, query: Query, threads: int = 0) -> Found:
        """The best labels, of (n_rows, k), or as many columns as there are labels."""
        threads = check_threads(threads)
        n_most = self.n_labels if query.mask is None else max(1, query.mask.n_most)
        if query.k > n_most:  # there are no more, and their places would take memory
            query = query._replace(k=n_most)
        if query.rule is not None:
            return as_columns(*self.decided(X, query, threads), query.k)
        if query.mask is None:
            found = self._single_row.best(X, query)
            if found is not None:
                return found
        rows, find = self._rows(X), best_of_rows if query.mask is None else query.mask.best
        ids, probabilities, is_exact = found = find(self._ensemble, rows, query, threads)
        if not query.labels_unknown:
            unknown = without_entries(rows)
            ids[unknown], probabilities[unknown], is_exact[unknown] = -1, 0.0, True
        return found

    def above(self, X: Any, query: Query, threads: int = 0) -> SparseRows:
        """All labels of at least the threshold: rows of probabilities over label ids."""
        rows, find = self._rows(X), above_of_rows if query.mask is None else query.mask.above
        found = find(self._ensemble, rows, query, threads)
        return found if query.labels_unknown else emptied(found, without_entries(rows))

    def knows(self, X: Any) -> NDArray[np.bool_]:
        """(n_rows,) whether a text has a word or n-gram of the model's, or a vector a value other than 0."""
        return ~without_entries(self.features.given_rows(X))

    def neighbours(self, X: Any, n: int = 10, *, threads: int = 0) -> Neighbours:
        """For each text or row the numbers of the n most similar training rows, and the similarities.

        Numbers count the rows that were trained on from 0; the similarity is about the cosine. Rows that have
        nothing but frequent words or values in common with it are not found.
        """
        if type(n) is not int or n < 1:
            raise ParameterError(f"n must be a whole number of at least 1, but is {show(n)}")
        numbers, similarities = similar_of_rows(self.experts, self._rows(X), min(n, self.n_examples), threads)
        return [
            [pair for pair in zip(*row, strict=True) if pair[0] >= 0]
            for row in zip(numbers.tolist(), similarities.tolist(), strict=True)
        ]

    def probability(
        self, X: Any, labels: Sequence[str], *, normalize: bool = False, threads: int = 0
    ) -> NDArray[np.float32]:
        """The marginal probabilities (n_rows, len(labels)) of the given labels."""
        if not is_list(labels):
            raise DataError(f"labels must be a list of labels, but is {show(labels)}; wrap a label in a list")
        try:
            wanted = [str(label) for label in labels]
        except ValueError as error:  # a number of more digits than Python writes
            raise DataError(f"labels has a number that is no label's name ({error})") from error
        ids = self.check_labels(wanted)
        rows = self._rows(X)
        indptr = np.arange(rows.n_rows + 1, dtype=np.int64) * len(ids)
        given = LabelRows(indptr, np.tile(ids, rows.n_rows), self.n_labels)
        found = score_rows(self._ensemble, rows, given, query_all(normalize=normalize), threads)
        return found.reshape(rows.n_rows, len(ids))

    def probability_rows(
        self, X: Any, labels: LabelRows, *, normalize: bool = False, threads: int = 0
    ) -> NDArray[np.float32]:
        """The marginal probability of each label of each row, in the order of ``labels.indices``."""
        if not isinstance(labels, LabelRows):
            raise DataError(f"labels must be LabelRows, as `read` gives them, but is {show(labels)}")
        rows = self._rows(X)
        check_label_rows(labels, rows.n_rows, self.n_labels)
        return score_rows(self._ensemble, rows, labels, query_all(normalize=normalize), threads)

    def check_labels(self, wanted: Sequence[str]) -> NDArray[np.int32]:
        """The ids of labels; where there is no such label, the error tells names that are near."""
        ids = self.labels.ids(wanted)
        if len(ids) and ids.min() < 0:
            unknown = wanted[int(np.argmin(ids))]
            near = did_you_mean(self._label_search.near(unknown)) or FIND_NAMES
            raise DataError(f"label {show(unknown)} is not among the model's {self.n_labels} labels{near}")
        return ids

    @functools.cached_property
    def _label_search(self) -> LabelSearch:
        from labeltree.explain.labels import LabelSearch

        return LabelSearch(self.labels, self.label_counts)

    def _rows(self, X: Any) -> SparseRows:
        """X in the model's features, ready for the experts."""
        return self.features.prepared(self.features.given_rows(X))


def _row(rows: SparseRows, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return rows.indices[part], rows.values[part]
