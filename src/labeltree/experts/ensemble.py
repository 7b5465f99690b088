"""Several experts over many rows: the exact average of their answers, shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, LabelRows, SparseRows, distinct_labels, pointers, take_rows
from labeltree.experts.expert import Above, Expert, Found, Labels
from labeltree.parallel import Pool, check_threads, row_slices
from labeltree.query import Query

ROWS_PER_THREAD = 128  # below this a second thread costs more than it saves
_NO_THRESHOLD = np.float32(0.0)


def best_of_rows(experts: Sequence[Expert], rows: SparseRows, query: Query, threads: int) -> Found:
    """The k best labels of each row, at most all, and their probabilities; -1 and 0 where there are fewer."""
    ids = np.empty((rows.n_rows, query.k), np.int32)
    probabilities = np.empty((rows.n_rows, query.k), np.float32)

    def find(part: slice) -> None:
        best_on_average(experts, _part(rows, part), query, ids[part], probabilities[part])

    _by_rows(find, rows.n_rows, threads)
    return ids, probabilities


def above_of_rows(experts: Sequence[Expert], rows: SparseRows, query: Query, threads: int) -> SparseRows:
    """All labels of at least the threshold: rows of probabilities over label ids."""
    parts: dict[int, Above] = {}

    def find(part: slice) -> None:
        parts[part.start] = above_on_average(experts, _part(rows, part), query)

    _by_rows(find, rows.n_rows, threads)
    found = [parts[start] for start in sorted(parts)]
    lengths = np.concatenate([np.empty(0, np.int64), *(part[0] for part in found)])
    ids = np.concatenate([np.empty(0, np.int32), *(part[1] for part in found)])
    values = np.concatenate([np.empty(0, np.float32), *(part[2] for part in found)])
    return SparseRows(pointers(lengths), ids, values, experts[0].n_labels)


def score_rows(
    experts: Sequence[Expert], rows: SparseRows, labels: LabelRows, query: Query, threads: int
) -> NDArray[np.float32]:
    """The probability of each given label of each row."""
    out = np.zeros(len(labels.indices), np.float32)

    def score(part: slice) -> None:
        label_indptr = labels.indptr[part.start : part.stop + 1]
        begin, end = label_indptr[0], label_indptr[-1]
        given = (label_indptr - begin, labels.indices[begin:end])
        out[begin:end] = average_score(experts, _part(rows, part), given, query)

    _by_rows(score, rows.n_rows, threads)
    return out


def _part(rows: SparseRows, part: slice) -> Arrays:
    """Some rows for the kernels; their pointers go on counting from the first of all rows."""
    return rows.indptr[part.start : part.stop + 1], rows.indices, rows.values


def _by_rows(function: Callable[[slice], None], n_rows: int, threads: int) -> None:
    threads = check_threads(threads)  # also where none is started: a wrong call is always an error
    if threads == 1 or n_rows < 2 * ROWS_PER_THREAD:
        if n_rows:
            function(slice(0, n_rows))
        return
    with Pool(threads) as pool:
        # several parts per thread: rows differ in cost
        pool.map(function, row_slices(n_rows, min(4 * pool.threads, n_rows // ROWS_PER_THREAD)))


def average_score(
    experts: Sequence[Expert], arrays: Arrays, labels: Labels, query: Query
) -> NDArray[np.float32]:
    """As :meth:`Expert.score` for the average."""
    total = np.zeros(len(labels[1]))
    for expert in experts:
        total += expert.score(arrays, labels, query)
    return (total / len(experts)).astype(np.float32)


def best_on_average(
    experts: Sequence[Expert], arrays: Arrays, query: Query,
    out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32],
) -> None:  # fmt: skip
    """As :meth:`Expert.topk` for the average, exact by Fagin's threshold algorithm.

    Each expert gives its best ``depth`` labels; those are scored by all. No other label can have a higher
    average than the average of the experts' last ones: rows whose k-th label beats that are done, the others
    go on with twice the depth. With a beam the experts give the best labels that their beams find, which may
    be fewer (and then the last one's probability is 0), and the answer is no longer exact.
    """
    if len(experts) == 1:
        experts[0].topk(arrays, query, out_ids, out_probabilities)
        return
    n_labels, open_rows = experts[0].n_labels, np.arange(len(arrays[0]) - 1)
    depth = query.k + 1  # where all agree on the k-th label, only the next one can tell that it is safe
    while len(open_rows):
        depth = min(depth, n_labels)
        part = take_rows(arrays, open_rows)
        ids = np.empty((len(experts), len(open_rows), depth), np.int32)
        probabilities = np.empty(ids.shape, np.float32)
        deeper = query._replace(k=depth, threshold=_NO_THRESHOLD)
        for number, expert in enumerate(experts):
            expert.topk(part, deeper, ids[number], probabilities[number])
        bound = probabilities[:, :, -1].sum(axis=0, dtype=np.float64)
        labels, average = _average_of_found(experts, part, ids, probabilities, query)
        best_ids, best = _best_per_row(labels, average, query.k)
        # A little more than the bound, as averages are rounded in another order. With a bound of 0 all other
        # labels have probability 0, and each expert gave those of the lowest ids.
        done = (best[:, -1] > bound / len(experts) * (1 + 1e-5)) | (bound == 0.0) | (depth == n_labels)
        best_ids[best < query.threshold], best[best < query.threshold] = -1, 0.0
        out_ids[open_rows[done]], out_probabilities[open_rows[done]] = best_ids[done], best[done]
        open_rows = open_rows[~done]
        depth *= 2


def _average_of_found(
    experts: Sequence[Expert],
    arrays: Arrays,
    ids: NDArray[np.int32],
    probabilities: NDArray[np.float32],
    query: Query,
) -> tuple[Labels, NDArray[np.float32]]:
    """All labels that some expert found for a row, with their averages; each is asked for the others only."""
    n_rows, n_labels = ids.shape[1], experts[0].n_labels
    is_label = ids >= 0
    row_of = np.broadcast_to(np.arange(n_rows)[:, None], ids.shape[1:])
    rows = np.broadcast_to(row_of, ids.shape)
    indptr, merged = distinct_labels(rows[is_label], ids[is_label], n_rows)
    merged_rows = np.repeat(np.arange(n_rows), np.diff(indptr))
    keys = merged_rows * n_labels + merged
    total = np.zeros(len(merged))
    for number, expert in enumerate(experts):
        own = is_label[number] & expert.scores_alike
        place = np.searchsorted(keys, row_of[own] * n_labels + ids[number][own])
        is_asked = np.ones(len(merged), bool)
        is_asked[place] = False
        total[place] += probabilities[number][own]
        asked = pointers(np.bincount(merged_rows[is_asked], minlength=n_rows)), merged[is_asked]
        total[is_asked] += expert.score(arrays, asked, query)
    return (indptr, merged), (total / len(experts)).astype(np.float32)


def _best_per_row(
    labels: Labels, probabilities: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k most probable of each row's labels, -1 where it has fewer; ties to the lower label."""
    indptr, ids = labels
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((ids, -probabilities, rows))
    take = indptr[:-1, None] + np.arange(k)
    found = take < indptr[1:, None]
    best_ids, best = np.full(take.shape, -1, np.int32), np.zeros(take.shape, np.float32)
    best_ids[found], best[found] = ids[order[take[found]]], probabilities[order[take[found]]]
    return best_ids, best


def above_on_average(experts: Sequence[Expert], arrays: Arrays, query: Query) -> Above:
    """As :meth:`Expert.above` for the average: a label that reaches it must reach it for some expert too."""
    if len(experts) == 1:
        return experts[0].above(arrays, query)
    n_rows = len(arrays[0]) - 1
    found = [expert.above(arrays, query) for expert in experts]
    rows = np.concatenate([np.repeat(np.arange(n_rows), lengths) for lengths, _, _ in found])
    indptr, ids = distinct_labels(rows, np.concatenate([ids for _, ids, _ in found]), n_rows)
    average = average_score(experts, arrays, (indptr, ids), query)
    keep = average >= query.threshold
    row_of = np.repeat(np.arange(n_rows), np.diff(indptr))
    return np.bincount(row_of[keep], minlength=n_rows), ids[keep], average[keep]
