"""Masks: which labels may be given. The best labels are then the best of these, exactly.

A mask of labels, the same for all rows, makes other experts of a model's: trees in which nodes without an
allowed label below them are never opened, and lists without the others. A mask of rows says for each row
which labels it may get; these are scored one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.bad_lines import shorten
from labeltree.data.formats import UTF8_MARK
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, distinct_labels, entries_of, keep_entries
from labeltree.errors import DataError, ParameterError, show
from labeltree.experts.by_rows import above_of_rows, best_of_rows, score_rows
from labeltree.experts.ensemble import Ensemble, best_per_row
from labeltree.experts.expert import Found
from labeltree.features.features import is_list
from labeltree.features.strings import StringTable
from labeltree.query import Query
from labeltree.wording import FIND_NAMES, unescape_name


class Mask(ABC):
    """What a query has of it."""

    n_most: int  # labels that a row may get

    @abstractmethod
    def best(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Found:
        """As :func:`best_of_rows` among the allowed labels."""

    @abstractmethod
    def above(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> SparseRows:
        """As :func:`above_of_rows` among the allowed labels."""

    def check_rows(self, n_rows: int) -> None:  # noqa: B027
        """Refuse rows of another number than it is for; most are for any."""

    def of_rows(self, numbers: NDArray[np.int64]) -> Mask:
        """What it is for some of the rows."""
        return self


class LabelMask(Mask):
    """The same labels for all rows. What follows from it is computed once, for the model it is used with."""

    def __init__(self, allowed: NDArray[np.bool_], labels: StringTable) -> None:
        self.allowed, self.labels = allowed, labels  # (n_labels,) of these
        self.n_most = int(np.count_nonzero(allowed))
        self._restricted: tuple[Ensemble, Ensemble] | None = None  # the whole one, and what follows

    def __repr__(self) -> str:
        return f"<labeltree mask: {self.n_most:,} of {len(self.allowed):,} labels>"

    def check_labels(self, labels: StringTable) -> None:
        """Refuse a model of other labels, or of the same in another order."""
        if len(self.labels) != len(labels):
            said = f"is for {len(self.labels)} labels, but the model has {len(labels)}"
        elif not self.labels.is_same(labels):
            said = "is of another model, whose labels are others or in another order"
        else:
            return
        raise ParameterError(f"the mask {said}; make it with this model's method mask")

    def restrict(self, ensemble: Ensemble) -> Ensemble:
        """The same experts, as if there were no other labels."""
        kept = self._restricted  # read once: another thread may use the mask with another model
        if kept is None or kept[0] is not ensemble:
            self._restricted = kept = ensemble, ensemble.restricted(self.allowed)
        return kept[1]

    def best(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Found:
        return best_of_rows(self.restrict(ensemble), rows, query, threads)

    def above(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> SparseRows:
        return above_of_rows(self.restrict(ensemble), rows, query, threads)


class RowMask(Mask):
    """Labels of each row."""

    def __init__(self, labels: LabelRows) -> None:
        self.labels = labels
        self.n_most = int(np.diff(labels.indptr).max(initial=0))

    def check_rows(self, n_rows: int) -> None:
        if n_rows != self.labels.n_rows:
            raise DataError(
                f"allowed has lists for {self.labels.n_rows} rows, but X has {n_rows}; give one for each"
            )

    def of_rows(self, numbers: NDArray[np.int64]) -> RowMask:
        indptr, entries = entries_of(self.labels.indptr, numbers)
        return RowMask(LabelRows(indptr, self.labels.indices[entries], self.labels.n_labels))

    def _scores(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> SparseRows:
        self.check_rows(rows.n_rows)
        probabilities = score_rows(ensemble, rows, self.labels, query, threads)
        scored = SparseRows(self.labels.indptr, self.labels.indices, probabilities, ensemble.n_labels)
        return keep_entries(scored, probabilities >= query.threshold)

    def best(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Found:
        scored = self._scores(ensemble, rows, query, threads)
        ids, probabilities = best_per_row((scored.indptr, scored.indices), scored.values, query.k)
        return ids, probabilities.astype(np.float32), np.ones(rows.n_rows, np.bool_)

    def above(self, ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> SparseRows:
        return self._scores(ensemble, rows, query, threads)


def make_mask(labels: StringTable, allowed: Any, without: Any) -> Mask | None:
    """From names of labels, or a list of these for each row; None where nothing is asked for."""
    if isinstance(allowed, Mask):
        if without is not None:
            raise ParameterError("without has no effect beside a mask: make the mask with it")
        if isinstance(allowed, LabelMask):
            allowed.check_labels(labels)
        return allowed
    if allowed is None and without is None:
        return None
    if is_list(allowed):
        allowed = list(allowed)  # what can be read only once is looked at twice
        if not allowed:
            raise ParameterError("allowed is an empty list, so no label may be given; None allows all")
    is_out = np.zeros(len(labels), np.bool_)
    if without is not None:
        is_out[_ids_of(labels, without, "without")] = True
    if is_list(allowed) and any(map(is_list, allowed)):
        return RowMask(_rows_of_lists(labels, allowed, is_out))
    is_in = np.ones(len(labels), np.bool_)
    if allowed is not None:
        is_in[:] = False
        is_in[_ids_of(labels, allowed, "allowed")] = True
    is_in &= ~is_out
    if not is_in.any():
        raise ParameterError("the mask allows no label: of allowed, none is left after without")
    return LabelMask(is_in, labels)


def mask_of_files(labels: StringTable, only: Path | None, without: Path | None) -> LabelMask:
    """From files, or standard input (``-``), with a label per line, as it is or as commands print it."""
    is_in = np.full(len(labels), only is None)
    if only is not None:
        is_in[_ids_in(labels, only)] = True
    if without is not None:
        is_in[_ids_in(labels, without)] = False
    if not is_in.any():
        named = " and ".join(str(path) for path in (only, without) if path is not None)
        raise ParameterError(f"{named}: no label is left that may be given")
    return LabelMask(is_in, labels)


def _ids_in(labels: StringTable, path: Path) -> NDArray[np.int32]:
    with Source(path) as source:
        content, name = b"".join(block.tobytes() for block in source.blocks()), source.name
    lines = content.removeprefix(UTF8_MARK).splitlines()
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    ids = labels.ids([lines[number] for number in numbers])
    others = np.flatnonzero(ids < 0)
    escaped = [lines[numbers[i]].decode("utf-8", "surrogateescape") for i in others.tolist()]
    ids[others] = labels.ids([unescape_name(each).encode("utf-8", "surrogateescape") for each in escaped])
    if len(ids) and ids.min() < 0:
        number = numbers[int(np.argmin(ids))]
        raise DataError(
            f"{name}, line {number + 1}: {shorten(lines[number])} is not among the model's "
            f"{len(labels)} labels{FIND_NAMES}"
        )
    return ids


def _rows_of_lists(labels: StringTable, lists: Any, is_out: NDArray[np.bool_]) -> LabelRows:
    """The allowed labels of each row."""
    for number, row in enumerate(lists):
        if not is_list(row):
            raise DataError(f"allowed, row {number}: {show(row)} is not a list of labels; wrap it in a list")
    ids = _ids_of(labels, [label for row in lists for label in row], "allowed")
    rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
    keep = ~is_out[ids]
    return LabelRows(*distinct_labels(rows[keep], ids[keep], len(lists)), len(labels))


def _ids_of(labels: StringTable, given: Any, name: str) -> NDArray[np.int32]:
    if not is_list(given):
        raise DataError(f"{name} must be a list of labels, but is {show(given)}; wrap a label in a list")
    wanted = [str(label) for label in given]
    ids = labels.ids(wanted)
    if len(ids) and ids.min() < 0:
        unknown = wanted[int(np.argmin(ids))]
        raise DataError(
            f"{name}: label {show(unknown)} is not among the model's {len(labels)} labels{FIND_NAMES}"
        )
    return ids
