"""Neighbours as an expert: labels are as probable as similar training rows have them."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, LabelRows, SparseRows, read_only, read_only_rows
from labeltree.errors import CorruptedModelError, show
from labeltree.experts.expert import Above, Labels, Saved, Similar, Trained
from labeltree.experts.explaining.contribution import Compared, Contribution
from labeltree.experts.job import ExpertNeeds, stage
from labeltree.experts.listing import ListingExpert, fill_lists
from labeltree.experts.neighbours_index import (
    BYTES_PER_ENTRY,
    IndexTensors,
    build_index,
    open_index,
    take_index,
)
from labeltree.kernels.neighbours.search import (
    INDEX_TABLE,
    MOST_POSTINGS,
    ONE,
    SCRATCH_TABLE,
    find_neighbours,
    vote_labels,
)

if TYPE_CHECKING:
    from labeltree.experts.job import TrainingJob
    from labeltree.parallel import Pool

_BYTES_WHILE_BUILDING = 8  # for each entry of the rows
POWERS = (1, 2, 3, 4, 6, 8)  # of which held-out rows choose ...
POWER = 3  # ... or, where there are none, this
_MOST_POWER = 50  # of a file: no vote becomes 0
# As kernels take them: single rows have no time to make arrays.
_ALL_POWERS = read_only(np.array(POWERS, np.int64))
_ONE_POWER = {power: read_only(np.array([power], np.int64)) for power in range(1, _MOST_POWER + 1)}


class NeighboursExpert(ListingExpert):
    """The training rows and their labels.

    A label's probability is the share of the rows with it among the ``n_neighbours`` most similar rows, each
    counted by a power of its similarity and by its weight.
    """

    kind = plural = "neighbours"
    usual_share = 0.25

    def __init__(self, index: IndexTensors, n_labels: int, n_neighbours: int, power: int = POWER) -> None:
        self.n_labels, self.n_neighbours, self.index, self.power = n_labels, n_neighbours, index, power
        opened = open_index(index)
        self.n_candidates = opened.n_candidates
        self._fields: dict[str, Any] = dict(
            by_column=opened.by_column,
            by_row=opened.by_row,
            frequent=index.frequent,
            levels=np.round(index.levels.astype(np.float64) * ONE).astype(np.int64),
            label_start=index.label_start,
            labels=index.labels,
            weight=index.weight if len(index.weight) else np.ones(index.n_rows, np.float32),
            n_candidates=opened.n_candidates,
        )
        self._table = INDEX_TABLE.table(**self._fields)
        self._of_thread = threading.local()

    def without(self, rows: NDArray[np.int64]) -> NeighboursExpert:
        """The same, as if it had never seen some of its rows."""
        weight = np.array(self.weight)
        weight[rows] = 0.0
        return NeighboursExpert(
            self.index._replace(weight=weight), self.n_labels, self.n_neighbours, self.power
        )

    @property
    def variants(self) -> Sequence[NeighboursExpert]:
        """With every power."""
        return [self._with_power(power) for power in POWERS]

    def _with_power(self, power: int) -> NeighboursExpert:
        other = copy.copy(self)
        other.power = power
        return other

    def nonzero(self, arrays: Arrays) -> Above:
        lengths, ids, votes = self._votes(arrays, _ONE_POWER[self.power])
        return lengths, ids, votes[0]

    def score_variants(self, arrays: Arrays, labels: Labels) -> NDArray[np.float32]:
        return self.look_up(self._votes(arrays, _ALL_POWERS), labels)

    def _votes(self, arrays: Arrays, powers: NDArray[np.int64]) -> Above:
        """As :meth:`nonzero`, with a row of probabilities for each power."""
        given = self._table, self._scratch(), *read_only_rows(arrays), self.n_neighbours, powers
        return fill_lists(partial(vote_labels, *given), len(arrays[0]) - 1, (len(powers),))

    def similar_rows(self, arrays: Arrays, n: int) -> Similar:
        shape = len(arrays[0]) - 1, n
        rows, similarities = np.empty(shape, np.int32), np.empty(shape, np.float32)
        find_neighbours(self._table, self._scratch(), *read_only_rows(arrays), n, rows, similarities)
        return rows, similarities

    def explain(self, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
        from labeltree.experts.explaining.neighbours import explain_votes

        return explain_votes(self, arrays, labels)

    def compare(self, arrays: Arrays, n_more: int) -> Compared:
        """The neighbours of a single row and others that are similar to it, up to ``n_more``."""
        from labeltree.kernels.neighbours.shared import compare_rows

        start, end = arrays[0].tolist()
        columns, n_more = arrays[1][start:end], max(n_more, self.n_neighbours)
        n_compared = int(columns.searchsorted(len(self.index.column_lengths)))
        rows, shared = np.empty(n_more, np.int32), np.empty((n_compared, n_more), np.int32)
        one = read_only_rows((np.array((0, end - start)), columns, arrays[2][start:end]))
        n_voters, n = compare_rows(
            self._table, self._scratch(), *one, self.n_neighbours, n_more, rows, shared
        )
        found = rows[:n], shared, self.weight[rows[:n]], n_voters
        return Compared(*found, self.n_neighbours, self.power)

    @functools.cached_property
    def frequency(self) -> NDArray[np.float64]:
        """(n_labels,) the part of the training rows that have each label."""
        weight = self.weight.astype(np.float64)
        of_labels = np.repeat(weight, np.diff(self.index.label_start))
        return np.bincount(self.index.labels, of_labels, self.n_labels) / max(weight.sum(), 1e-300)

    @property
    def weight(self) -> NDArray[np.float32]:
        """(n_rows,) of each row's vote."""
        return self._fields["weight"]

    def _scratch(self) -> NDArray[np.int64]:
        """The table of this thread's memory: as many places as there are rows would take too long to make."""
        try:
            return self._of_thread.table
        except AttributeError:
            most_labels = int(np.diff(self.index.label_start).max(initial=1))
            arrays = dict(
                sums=np.zeros(self.index.n_rows, np.uint16),
                votes=np.zeros(self.n_labels, np.float64),
                weights=np.zeros(len(self.index.frequent), np.int64),
                touched=np.empty(MOST_POSTINGS + 1, np.int32),
                of_touched=np.empty(MOST_POSTINGS, np.uint16),
                label_keys=np.empty(min(self.n_labels, self.n_neighbours * most_labels), np.int64),
            )
            self._of_thread.arrays, self._of_thread.table = arrays, SCRATCH_TABLE.table(**arrays)
            return self._of_thread.table

    @property
    def parameter_bytes(self) -> int:
        return sum(array.nbytes for array in self.index)

    def statistics(self) -> dict[str, Any]:
        index = self.index
        return {
            "n_indexed_rows": index.n_rows,
            "n_neighbours": self.n_neighbours,
            "power_of_similarity": self.power,
            "index_bytes": index.index_bytes,
            "label_bytes": self.parameter_bytes - index.index_bytes,
            "n_listed_columns": int(np.count_nonzero(index.column_lengths)),
            "n_frequent_columns": len(index.frequent),
        }

    def tensors(self, number: int) -> dict[str, NDArray]:
        return {f"neighbours.{number}.{name}": array for name, array in self.index._asdict().items()}

    def metadata(self) -> dict[str, Any]:
        return {"power": self.power}

    @classmethod
    def from_saved(cls, saved: Saved) -> NeighboursExpert:
        index = take_index(saved.tensors, f"neighbours.{saved.number}", saved.n_features, saved.n_labels)
        if not saved.config.neighbours:
            raise CorruptedModelError("there are neighbours, but the config has neighbours=0")
        power = saved.metadata.get("power")
        if type(power) is not int or not 1 <= power <= _MOST_POWER:
            raise CorruptedModelError(
                f"power of neighbours must be a whole number of 1 to {_MOST_POWER}, but is {show(power)}"
            )
        return cls(index, saved.n_labels, saved.config.neighbours, power)

    @classmethod
    def needs(cls, job: TrainingJob, *, closely: bool) -> ExpertNeeds:
        if not job.config.neighbours:
            return ExpertNeeds()
        X, Y, _ = job.rows
        n_entries = int(np.count_nonzero(X.indices < job.n_compared))
        n_bytes = int(BYTES_PER_ENTRY * n_entries) + Y.indptr.nbytes + Y.indices.nbytes
        return ExpertNeeds(n_bytes, n_bytes, _BYTES_WHILE_BUILDING * n_entries)

    @classmethod
    def build(
        cls,
        X: SparseRows,
        Y: LabelRows,
        weight: NDArray[np.float32],
        n_neighbours: int,
        pool: Pool | None = None,
    ) -> NeighboursExpert:
        """For these rows; :meth:`without` some of them it can be asked as if it had not seen them."""
        return cls(build_index(X, Y, weight, pool), Y.n_labels, n_neighbours)

    @classmethod
    def train(cls, job: TrainingJob) -> Sequence[Trained]:
        if not job.config.neighbours:
            return []
        job.report(stage("neighbours", job.config, 0.0))
        X, Y, weight = job.rows
        expert = cls.build(X._replace(n_columns=job.n_compared), Y, weight, job.config.neighbours, job.pool)
        job.report(stage("neighbours", job.config, 1.0))
        if not expert.index.column_lengths.any():  # every column is in most rows, as in dense vectors
            return []
        numbers = job.held_out.numbers
        return [Trained(expert, expert.without(numbers) if len(numbers) else None)]
