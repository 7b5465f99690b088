"""Rules: which labels a row gets, from their probabilities. A model keeps the one that it was tuned with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import SparseRows, keep_entries, pointers, take_rows
from labeltree.decisions.describing import rule_text
from labeltree.decisions.goals import MOST_TEXT
from labeltree.errors import CorruptedModelError, ParameterError, show
from labeltree.experts.by_rows import best_of_rows
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Found
from labeltree.experts.weighted import Wanted, WeightedSearch, values_of
from labeltree.features.strings import StringTable
from labeltree.query import ALL, NO_BEAM, Query
from labeltree.storage.tensors import take_tensor

# Numbers that can be reckoned with: of probabilities and bounds that follow from them no sum is infinite.
_LARGEST, _LEAST_THRESHOLD, _MOST_THRESHOLD = np.float32(1e6), np.float32(1e-6), np.float32(2.0)
# Of labels that are less probable there are very many, of which hardly any is right; but where rare ones have
# great weights, many of those that a rule gives would come from among them. They take long to find, too.
_LEAST_PROBABILITY, _LEAST_SHARE, _LEAST_RANKED = 0.05, 0.05, 0.03
_RANGES_OF_LINES = ((np.float32(0.0), _LARGEST), (-_LARGEST, _LARGEST))  # weights and summands

# Labels of each row in order, with their probabilities; and whether they are proven to be what the rule says.
Decided = tuple[SparseRows, NDArray[np.bool_]]


class Rule(ABC):
    """Says for rows which labels they get, best first."""

    labels: StringTable | None = None  # of the model that it was tuned for

    kind: ClassVar[str]  # in the model file
    tensor_names: ClassVar[tuple[str, ...]]
    ranges: ClassVar[tuple[tuple[np.float32, np.float32], ...]]  # of the tensors' numbers
    wanted: ClassVar[Wanted]  # labels
    measure: str  # that it was tuned for
    k: int  # labels of a row; ALL: as many as are worth it

    def __repr__(self) -> str:
        return f"<labeltree rule: {rule_text(self)}>"

    @property
    @abstractmethod
    def arrays(self) -> tuple[NDArray[np.float32], ...]:
        """(n_labels,) each, by the names of the tensors."""

    def _within(self, *arrays: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
        """No further than a file may go: what is beyond says the same."""
        return tuple(np.clip(array, *range) for array, range in zip(arrays, self.ranges, strict=True))

    @abstractmethod
    def decide(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Decided:
        """The labels of each row, in order, with their probabilities; of a ``query.k`` of ALL as many as the
        rule itself says."""

    @abstractmethod
    def choose(self, ids: NDArray[Any], probabilities: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of a row's most probable labels (n_rows, n), best first, it gets: quick, for tuning."""

    def _worth(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """A weight and a summand of each label, by which it is searched for."""
        weight, summand = self.arrays
        return weight, summand

    def _found_in(self, ensemble: Ensemble, query: Query) -> WeightedSearch:
        """The search by the rule, which is kept with the ensemble for the next time."""
        if query.beam != NO_BEAM:
            raise ParameterError("a rule has no effect with search=beam: use another search, or rule none")
        return ensemble.kept(self, lambda: WeightedSearch(ensemble, *self._worth(), self.wanted))

    def check_labels(self, labels: StringTable) -> None:
        """Refuse a model of other labels, or of the same in another order."""
        n_own = len(self.arrays[0])
        if n_own != len(labels):
            raise ParameterError(f"the rule is of a model of {n_own} labels, but this has {len(labels)}")
        if self.labels is not None and not self.labels.is_same(labels):
            raise ParameterError("the rule is of another model, whose labels are others; tune this one")

    def metadata(self) -> dict[str, Any]:
        return {"kind": self.kind, "measure": self.measure, "k": self.k}

    def tensors(self) -> dict[str, NDArray]:
        return {f"rule.{name}": array for name, array in zip(self.tensor_names, self.arrays, strict=True)}


class RankingRule(Rule):
    """The k labels of the highest weight · probability + summand, but none that is worth nothing.

    Where fewer than k labels have a probability of 0.03 and are worth something, the places that are
    left are for the most probable ones of all others.
    """

    kind, tensor_names, ranges = "ranking", ("weight", "summand"), _RANGES_OF_LINES
    wanted = Wanted(_LEAST_RANKED, 0.0, is_filled=True)

    def __init__(
        self, measure: str, k: int, weight: NDArray[np.float32], summand: NDArray[np.float32]
    ) -> None:
        self.measure, self.k = measure, k
        self.weight, self.summand = self._within(weight, summand)

    @property
    def arrays(self) -> tuple[NDArray[np.float32], ...]:
        return self.weight, self.summand

    def decide(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Decided:
        k = min(query.k or self.k, ensemble.n_labels)
        ids, probabilities, is_exact = self._found_in(ensemble, query).best(
            rows, query._replace(k=k), threads
        )
        is_taken = self._is_worth_it(ids, probabilities) & (probabilities >= query.threshold)
        indptr = pointers(is_taken.sum(axis=1))
        return SparseRows(indptr, ids[is_taken], probabilities[is_taken], ensemble.n_labels), is_exact

    def choose(self, ids: NDArray[Any], probabilities: NDArray[Any]) -> NDArray[np.bool_]:
        values = values_of(self._worth(), self.wanted, ids, probabilities)
        return best_of_columns(values, self.k) & self._is_worth_it(ids, probabilities)

    def _is_worth_it(self, ids: NDArray[Any], probabilities: NDArray[Any]) -> NDArray[np.bool_]:
        return (ids >= 0) & (self.weight[ids] * probabilities + self.summand[ids] > 0.0)


class ThresholdRule(Rule):
    """All labels of at least their threshold; and at least so many."""

    kind, tensor_names, k = "thresholds", ("threshold",), ALL
    ranges = ((_LEAST_THRESHOLD, _MOST_THRESHOLD),)
    wanted = Wanted(least=1.0 - 1e-5)  # of a threshold: a bit less, as values are rounded

    def __init__(self, measure: str, threshold: NDArray[np.float32], at_least: int = 0) -> None:
        self.measure, self.at_least = measure, at_least
        (self.threshold,) = self._within(threshold)

    @property
    def arrays(self) -> tuple[NDArray[np.float32], ...]:
        return (self.threshold,)

    def _worth(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.float32(1.0) / self.threshold, np.zeros_like(self.threshold)

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "at_least": self.at_least}

    def decide(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Decided:
        asked = query._replace(k=ALL, is_bounded=False)
        found, is_exact = self._found_in(ensemble, query).all(rows, asked, threads)
        least = np.maximum(self.threshold, query.threshold)
        found = keep_entries(found, found.values >= least[found.indices])
        if self.at_least:
            found, is_exact = _with_best((found, is_exact), ensemble, rows, query, threads)
        order = np.lexsort((found.indices, -found.values, rows_of(found)))
        found = found._replace(indices=found.indices[order], values=found.values[order])
        places = np.arange(len(order)) - np.repeat(found.indptr[:-1], np.diff(found.indptr))
        found = found if query.k == ALL else keep_entries(found, places < query.k)
        return found, is_exact

    def choose(self, ids: NDArray[Any], probabilities: NDArray[Any]) -> NDArray[np.bool_]:
        chosen = (probabilities >= self.threshold[ids]) & (ids >= 0)
        if self.at_least:
            chosen[:, 0] |= (ids[:, 0] >= 0) & ~chosen.any(axis=1)
        return chosen


class ExpectedRule(Rule):
    """So many of a row's labels that the F1 of the row is expected to be the highest.

    A label is right with the probability q = weight · probability + summand. The first t labels by q are
    expected to have an F1 of about 2 (sum of their q) / (t + sum of all q): so a label is one of them as long
    as its q is above half of the F1 of those before it. Labels of less than a twentieth are not searched for:
    together they are taken to be as much as those between that and a tenth.
    """

    kind, tensor_names, k = "expected-f1", ("weight", "summand"), ALL
    ranges = _RANGES_OF_LINES
    wanted = Wanted(_LEAST_PROBABILITY, _LEAST_SHARE)

    def __init__(self, measure: str, weight: NDArray[np.float32], summand: NDArray[np.float32]) -> None:
        self.measure = measure
        self.weight, self.summand = self._within(weight, summand)

    @property
    def arrays(self) -> tuple[NDArray[np.float32], ...]:
        return self.weight, self.summand

    def decide(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Decided:
        asked = query._replace(k=ALL, is_bounded=False)
        found, is_exact = self._found_in(ensemble, query).all(rows, asked, threads)
        found, is_exact = _with_best((found, is_exact), ensemble, rows, query, threads)
        shares = self._shares(found.indices, found.values)
        taken = expected_best(found.indptr, shares, query.k, _LEAST_SHARE)
        return keep_entries(found, taken & (found.values >= query.threshold)), is_exact

    def _shares(self, ids: NDArray[Any], probabilities: NDArray[Any]) -> NDArray[np.float64]:
        """How often labels are right."""
        line = self.weight[ids].astype(np.float64) * probabilities + self.summand[ids]
        is_possible = (ids >= 0) & (probabilities >= _LEAST_PROBABILITY) & (line > _LEAST_SHARE)
        return np.where(is_possible, np.clip(line, 0.0, 1.0), 0.0)

    def choose(self, ids: NDArray[Any], probabilities: NDArray[Any]) -> NDArray[np.bool_]:
        shares = self._shares(ids, probabilities)
        order = np.argsort(-shares, axis=1, kind="stable")
        indptr = np.arange(len(ids) + 1, dtype=np.int64) * ids.shape[1]
        shares = np.take_along_axis(shares, order, 1)
        taken = expected_best(indptr, shares.ravel(), ALL, _LEAST_SHARE).reshape(ids.shape)
        chosen = np.zeros(ids.shape, np.bool_)
        np.put_along_axis(chosen, order, taken, axis=1)
        return chosen & (ids >= 0)


def expected_best(
    indptr: NDArray[np.int64], shares: NDArray[np.float64], k: int = ALL, least: float = 0.0
) -> NDArray[np.bool_]:
    """Which of each row's labels, the surest first, are worth more than half of the F1 of those before.

    Of shares that are below ``least`` nothing is known: they sum to about as much as those of up to twice it.
    """
    lengths = np.diff(indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    before = sums[:-1] - sums[indptr[:-1]][rows]
    places = np.arange(len(rows)) - indptr[rows]
    low = np.concatenate([[0.0], np.cumsum(np.where(shares < 2.0 * least, shares, 0.0))])
    whole = places + (sums[indptr[1:]] - sums[indptr[:-1]] + low[indptr[1:]] - low[indptr[:-1]])[rows]
    taken = (places == 0) | (shares * whole > before)
    return taken if k == ALL else taken & (places < k)


def rows_of(found: SparseRows) -> NDArray[np.int64]:
    """The number of the row of each entry."""
    return np.repeat(np.arange(found.n_rows), np.diff(found.indptr))


def _with_best(decided: Decided, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Decided:
    """With the most probable label of rows that have none, which may not be proven to be that."""
    found, is_exact = decided
    lengths = np.diff(found.indptr)
    empty = np.flatnonzero(lengths == 0)
    if not len(empty):
        return decided
    part = SparseRows(*take_rows(rows[:3], empty), rows.n_columns)
    ids, probabilities, is_best = best_of_rows(ensemble, part, query._replace(k=1, beam=NO_BEAM), threads)
    is_exact[empty] &= is_best
    is_found = ids[:, 0] >= 0
    empty, ids, probabilities = empty[is_found], ids[is_found, 0], probabilities[is_found, 0]
    lengths[empty] = 1
    places = found.indptr[empty]
    with_best = SparseRows(
        pointers(lengths),
        np.insert(found.indices, places, ids),
        np.insert(found.values, places, probabilities),
        found.n_columns,
    )
    return with_best, is_exact


def as_columns(decided: SparseRows, is_exact: NDArray[np.bool_], k: int) -> Found:
    """As a search gives it: label ids and probabilities, with k columns or as many as the longest row has."""
    lengths = np.diff(decided.indptr)
    shape = decided.n_rows, k or max(1, int(lengths.max(initial=0)))
    ids, probabilities = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)
    rows = np.repeat(np.arange(decided.n_rows), lengths)
    places = np.arange(len(rows)) - decided.indptr[rows]
    ids[rows, places], probabilities[rows, places] = decided.indices, decided.values
    return ids, probabilities, is_exact


def best_of_columns(values: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """(n_rows, n) whether a value is one of the k highest of its row, of equal ones the first."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    chosen = np.zeros(values.shape, np.bool_)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def rule_from_saved(metadata: Any, tensors: Mapping[str, NDArray], n_labels: int) -> Rule | None:
    """The rule of a model file, checked; None if it has none."""
    if metadata is None:
        return None
    kind, measure, k = metadata["kind"], metadata["measure"], metadata["k"]
    is_text = isinstance(measure, str) and len(measure) <= MOST_TEXT and measure.isprintable()
    if not is_text or type(k) is not int or not 0 <= k <= 1_000_000:
        raise CorruptedModelError(f"the rule is {show(metadata)}, which names no measure and k")
    names = {each.kind: each for each in (RankingRule, ThresholdRule, ExpectedRule)}
    if kind not in names:
        raise CorruptedModelError(f"the rule is of kind {show(kind)}, which is none of {', '.join(names)}")
    arrays = [
        _saved_array(tensors, names[kind], number, n_labels) for number in range(len(names[kind].ranges))
    ]
    if names[kind] is RankingRule:
        return RankingRule(measure, max(k, 1), *arrays)
    if names[kind] is ExpectedRule:
        return ExpectedRule(measure, *arrays)
    at_least = metadata["at_least"]
    if type(at_least) is not int or at_least not in (0, 1):
        raise CorruptedModelError(
            f"the rule gives at least {show(at_least)} labels, which is neither 0 nor 1"
        )
    return ThresholdRule(measure, arrays[0], at_least)


def _saved_array(
    tensors: Mapping[str, NDArray], kind: type[Rule], number: int, n_labels: int
) -> NDArray[np.float32]:
    name, (least, most) = f"rule.{kind.tensor_names[number]}", kind.ranges[number]
    array = take_tensor(tensors, name, np.float32, (n_labels,))
    if not np.all((array >= least) & (array <= most)):  # nor what is no number
        raise CorruptedModelError(f"{name} has numbers that are not from {least:g} to {most:g}")
    return array
