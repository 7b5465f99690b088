"""How good a model's predictions for a data set are: the numbers of ``labeltree test``, and their table."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.bad_lines import BadLines, skipped_lines
from labeltree.data.labels import check_label_rows, label_rows
from labeltree.data.rows import LabelRows, SparseRows, first_rows
from labeltree.errors import DataError
from labeltree.features.features import Features
from labeltree.features.reading import read_rows
from labeltree.features.strings import StringTable
from labeltree.metrics.measures import METRICS, evaluate
from labeltree.query import Query
from labeltree.wording import align, counted, duration

if TYPE_CHECKING:
    from labeltree.model import Model

_LEAST_TIMED_SECONDS = 0.1  # a speed measured in less says nothing


class DataSet(NamedTuple):
    """Rows in a model's features with their true labels, and where they come from."""

    rows: SparseRows
    labels: LabelRows  # -1: unknown to the model
    name: str  # a file's, or Y
    bad_lines: BadLines

    def counts(self, purpose: str) -> LabelCounts:
        """What the labels are; refuses data without rows, on which nothing can be done for the purpose."""
        if self.rows.n_rows == 0:
            skipped = "; ".join(skipped_lines(self.bad_lines.skipped, self.bad_lines.messages[:1]))
            hint = skipped if self.bad_lines.skipped else "give a file with a row per line, or lists of rows"
            raise DataError(f"{self.name}: no rows to {purpose} on; {hint}")
        n_unknown = int(np.count_nonzero(self.labels.indices < 0))
        n_empty = int(np.count_nonzero(np.diff(self.labels.indptr) == 0))
        return LabelCounts(len(self.labels.indices), n_unknown, n_empty, self.labels.n_rows)


def read_data_set(
    features: Features, labels: StringTable, path: str | Path, fmt: str, *, skip_bad_lines: bool
) -> DataSet:
    """A file in a model's features and labels."""
    bad_lines = BadLines(skip=skip_bad_lines)
    rows, found = read_rows(features, labels, path, fmt, bad_lines)
    bad_lines.log()
    return DataSet(rows, found, "standard input" if str(path) == "-" else str(path), bad_lines)


def given_data_set(rows: SparseRows, Y: Any, label_names: Sequence[str]) -> DataSet:
    """Rows and their labels: lists, an indicator, or the ids that a file was read into."""
    if Y is None:
        raise DataError("Y is missing: give the labels of each row, or the path of a file as X")
    if type(Y) is LabelRows:
        check_label_rows(Y, rows.n_rows, len(label_names))
    else:
        Y, _ = label_rows(Y, label_names, n_rows=rows.n_rows)
    return DataSet(rows, Y, "Y", BadLines())


class LabelCounts(NamedTuple):
    """The true labels of a data set, and those that no prediction can match."""

    labels: int
    unknown_labels: int  # not among the model's
    rows_without_labels: int
    rows: int

    def facts(self) -> dict[str, int]:
        """For ``--json``, where the rows have an entry of their own."""
        return {name: number for name, number in self._asdict().items() if name != "rows"}

    def notices(self, name: str) -> list[str]:
        """What lowers the scores for other reasons than the model, a line each."""
        if self.labels == 0:
            return [
                f"No row of {name} has a label, so all scores are 0; of a file, check the format (--format)."
            ]
        lines = []
        if self.rows_without_labels:
            lines.append(
                f"{self.rows_without_labels:,} of {self.rows:,} rows of {name} have no label: they score 0."
            )
        if self.unknown_labels == self.labels:
            lines.append(
                f"All {self.labels:,} labels of {name} are unknown to the model, so all scores are 0."
            )
        elif self.unknown_labels:
            lines.append(
                f"{self.unknown_labels:,} of {self.labels:,} labels of {name} are unknown to the model: "
                "they count as not found."
            )
        return lines


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
        found: tuple[NDArray[np.int32], NDArray[np.float32]],
        seconds: float,
    ) -> None:
        self.ranks = ranks  # rising
        self.data = data
        self.ids, self.probabilities = found
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
        """The table, in percent: a row per metric and a column per k; then the rows and the speed."""
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
        head = ["", *(f"@{k}" for k in self.ranks)]
        body = [
            [metric.name, *(f"{100 * self[f'{key}@{k}']:.2f}" for k in self.ranks)]
            for key, metric in METRICS.items()
            if f"{key}@{self.ranks[0]}" in self
        ]
        return [head, *body]

    def _rows_and_speed(self) -> str:
        text = counted(int(self["examples"]), "row")
        if self["seconds"] >= _LEAST_TIMED_SECONDS:
            text += f"; search alone: {duration(self['seconds'])}, {self['rows_per_second']:,.0f} rows/s"
        return text


def measure(model: Model, data: DataSet, ranks: Sequence[int], query: Query, threads: int) -> Measures:
    """Predict the labels of all rows, as many as the largest rank, and compare them with the true ones."""
    counts = data.counts("test")
    rows, labels = data.rows, data.labels
    model.best(first_rows(rows, 2), query, threads)  # loading machine code is no part of the speed ...
    started = time.perf_counter()  # ... and one row would go another way
    found = model.best(rows, query, threads)
    seconds = time.perf_counter() - started
    scores = evaluate(found[0], labels, ranks, model.label_counts, model.n_examples, probs=found[1])
    return Measures(scores, ranks, data, counts, found, seconds)
