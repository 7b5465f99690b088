"""How good a model's predictions for a data set are: the numbers of ``labeltree test``, and their table."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, SparseRows, distinct_labels, first_rows, take_rows
from labeltree.errors import ParameterError, show
from labeltree.features.reading import DataSet, LabelCounts
from labeltree.metrics.measures import METRICS, Metric, evaluate, evaluate_sets
from labeltree.query import ALL, NO_BEAM, SET_THRESHOLD, Query, check_set_threshold
from labeltree.wording import align, counted, duration

if TYPE_CHECKING:
    from labeltree.decisions.rule import Rule
    from labeltree.model import Model

Found = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]

_LEAST_TIMED_SECONDS = 0.1  # a speed measured in less says nothing


class Measures(Mapping[str, float]):
    """The keys and numbers of ``labeltree test --json``, shown as its table.

    ``ids`` and ``probabilities`` (n_rows, largest k) are the predictions for ``data``.
    """

    def __init__(
        self,
        scores: Mapping[str, float],
        ranks: Sequence[int],
        data: DataSet,
        counts: LabelCounts,
        found: Found,
        seconds: float,
        threshold: float | None = SET_THRESHOLD,
        rule: Rule | None = None,
    ) -> None:
        self.ranks = ranks  # rising
        self.threshold = threshold  # labels of at least this probability are a row's set; None: a rule says
        self.rule = rule
        self.data = data
        self.ids, self.probabilities, _ = found
        self.notices = counts.notices(data.name)
        self._values = {
            **scores,
            "examples": counts.rows,
            "seconds": seconds,  # of the search alone
            "rows_per_second": counts.rows / max(seconds, 1e-9),
            "skipped": data.bad_lines.skipped,
            **counts.facts(),
        }

    def __getitem__(self, key: str) -> float:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def lines(self) -> list[str]:
        """The table, in percent: a row per metric, a column per k, and one for the sets of labels of at least
        the threshold; then the rows and the speed."""
        return [*align(self._table()), self._rows_and_speed()]

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *self.notices])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._table()]
        table = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "<br>".join(map(html.escape, [self._rows_and_speed(), *self.notices]))
        return f"<table>{table}</table><p>{notes}</p>"

    def _table(self) -> list[list[str]]:
        of_sets = "rule" if self.threshold is None else f"p>={self.threshold:g}"
        head = ["", *(f"@{k}" for k in self.ranks), of_sets]
        body = [
            [metric.title, *(self._cell(name, metric) for name in (*(f"{key}@{k}" for k in self.ranks), key))]
            for key, metric in METRICS.items()
            if f"{key}@{self.ranks[0]}" in self
        ]
        return [head, *body]

    def _cell(self, name: str, metric: Metric) -> str:
        return f"{100 * self[name]:{metric.form}}" if name in self else ""

    def _rows_and_speed(self) -> str:
        text = counted(int(self["examples"]), "row")
        if self["seconds"] >= _LEAST_TIMED_SECONDS:
            text += f"; search alone: {duration(self['seconds'])}, {self['rows_per_second']:,.0f} rows/s"
        return text


def measure(
    model: Model,
    data: DataSet,
    ranks: Sequence[int],
    query: Query,
    threads: int,
    threshold: float | None = None,
) -> Measures:
    """Predict the labels of all rows, as many as the largest rank, and compare them with the true ones.

    A row's set are the labels of at least the threshold (or 0.5), unless a rule says them.
    """
    if threshold is not None and query.rule is not None:
        raise ParameterError(
            f"threshold={show(threshold)} has no effect by the model's rule, which says which labels are a "
            "row's set; leave it out, or use rule none (--rule none)"
        )
    threshold = float(check_set_threshold(SET_THRESHOLD if threshold is None else threshold))
    counts = data.counts("test")
    rows, labels, rule = data.rows, data.labels, query.rule
    if rule is not None and rule.k == ALL:  # it says which labels, not in which order
        query = query._replace(rule=None)
    if query.mask is not None:
        query.mask.check_rows(rows.n_rows)
    # Loading machine code is no part of the speed, and one row would go another way.
    model.best(first_rows(rows, 2), _of_rows(query, np.arange(min(2, rows.n_rows))), threads)
    started = time.perf_counter()
    found = model.best(rows, query, threads)
    seconds = time.perf_counter() - started
    scores = evaluate(found[0], labels, ranks, model.label_counts, model.n_examples, probs=found[1])
    if rule is not None:
        decided, _ = model.decided(rows, query._replace(rule=rule, k=ALL), threads)
        numbers = np.repeat(np.arange(rows.n_rows), np.diff(decided.indptr))
        sets = LabelRows(*distinct_labels(numbers, decided.indices, rows.n_rows), model.n_labels)
    else:
        sets = _sets_above(model, rows, found, query._replace(threshold=np.float32(threshold)), threads)
    scores |= evaluate_sets(sets, labels, model.n_labels)
    least = None if rule is not None else threshold
    return Measures(scores, ranks, data, counts, found, seconds, least, rule)


def _of_rows(query: Query, numbers: NDArray[np.int64]) -> Query:
    """The same of some rows: a mask may have labels for each."""
    return query if query.mask is None else query._replace(mask=query.mask.of_rows(numbers))


def _sets_above(model: Model, rows: SparseRows, found: Found, query: Query, threads: int) -> LabelRows:
    """All labels of at least the threshold. Only rows whose k labels all are may have more of them."""
    ids, probabilities, _ = found
    is_in = (probabilities >= query.threshold) & (ids >= 0)
    pairs = [(np.nonzero(is_in)[0], ids[is_in])]
    is_full = is_in.all(axis=1)
    if is_full.any() and ids.shape[1] < model.n_labels:
        full = np.flatnonzero(is_full)
        asked = _of_rows(query, full)._replace(k=ALL, beam=NO_BEAM, is_bounded=False)
        more = model.above(SparseRows(*take_rows(rows[:3], full), rows.n_columns), asked, threads)
        pairs.append((np.repeat(full, np.diff(more.indptr)), more.indices))
    numbers, labels = map(np.concatenate, zip(*pairs, strict=True))
    return LabelRows(*distinct_labels(numbers, labels, rows.n_rows), model.n_labels)
