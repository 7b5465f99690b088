"""An ensemble over many rows, shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, LabelRows, SparseRows, pointers
from labeltree.errors import ParameterError
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Above, Expert, Found, Similar, empty_found
from labeltree.parallel import Pool, check_threads, row_slices
from labeltree.query import Query

ROWS_PER_THREAD = 128  # below this a second thread costs more than it saves


def best_of_rows(ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> Found:
    """The k best labels of each row, at most all; -1 and 0 where there are fewer."""
    ids, probabilities, is_exact = found = empty_found(rows.n_rows, query.k)

    def find(part: slice) -> None:
        is_exact[part] = ensemble.topk(part_of(rows, part), query, ids[part], probabilities[part])

    by_rows(find, rows.n_rows, threads)
    return found


def above_of_rows(ensemble: Ensemble, rows: SparseRows, query: Query, threads: int) -> SparseRows:
    """All labels of at least the threshold: rows of probabilities over label ids."""
    parts: dict[int, Above] = {}

    def find(part: slice) -> None:
        parts[part.start] = ensemble.above(part_of(rows, part), query)

    by_rows(find, rows.n_rows, threads)
    found = [parts[start] for start in sorted(parts)]
    lengths = np.concatenate([np.empty(0, np.int64), *(part[0] for part in found)])
    ids = np.concatenate([np.empty(0, np.int32), *(part[1] for part in found)])
    values = np.concatenate([np.empty(0, np.float32), *(part[2] for part in found)])
    return SparseRows(pointers(lengths), ids, values, ensemble.n_labels)


def score_rows(
    ensemble: Ensemble, rows: SparseRows, labels: LabelRows, query: Query, threads: int
) -> NDArray[np.float32]:
    """The probability of each given label of each row."""
    out = np.zeros(len(labels.indices), np.float32)

    def score(part: slice) -> None:
        label_indptr = labels.indptr[part.start : part.stop + 1]
        begin, end = label_indptr[0], label_indptr[-1]
        given = (label_indptr - begin, labels.indices[begin:end])
        out[begin:end] = ensemble.score(part_of(rows, part), given, query)

    by_rows(score, rows.n_rows, threads)
    return out


def similar_of_rows(experts: Sequence[Expert], rows: SparseRows, n: int, threads: int) -> Similar:
    """The n most similar training rows of each row, by the expert that knows them, and how similar."""
    shape = rows.n_rows, n
    numbers, similarities = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)

    def find(part: slice) -> None:
        for expert in experts:
            found = expert.similar_rows(part_of(rows, part), n)
            if found is not None:
                numbers[part], similarities[part] = found
                return
        raise ParameterError(
            "the model has no neighbours, so it knows no training rows; train it with neighbours=50"
        )

    by_rows(find, rows.n_rows, threads)
    return numbers, similarities


def part_of(rows: SparseRows, part: slice) -> Arrays:
    """Some rows for the kernels; their pointers go on counting from the first of all rows."""
    return rows.indptr[part.start : part.stop + 1], rows.indices, rows.values


def by_rows(function: Callable[[slice], None], n_rows: int, threads: int) -> None:
    """Call a function for parts of the rows, by several threads where there are many."""
    threads = check_threads(threads)  # also where none is started: a wrong call is always an error
    if threads == 1 or n_rows < 2 * ROWS_PER_THREAD:
        if n_rows:
            function(slice(0, n_rows))
        return
    with Pool(threads) as pool:
        # several parts per thread: rows differ in cost
        pool.map(function, row_slices(n_rows, min(4 * pool.threads, n_rows // ROWS_PER_THREAD)))
