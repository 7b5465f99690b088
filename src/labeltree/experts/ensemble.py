"""Several trees over many rows: the exact combination of their answers, shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, LabelRows, SparseRows, pointers, take_rows
from labeltree.experts.tree_search import Found, Labels, TreeSearch
from labeltree.parallel import Pool, check_threads, row_slices
from labeltree.query import NO_BEAM

ROWS_PER_THREAD = 128  # below this a second thread costs more than it saves


def best_of_rows(
    trees: Sequence[TreeSearch], rows: SparseRows, k: int, threshold: np.float32, normalize: bool,
    beam: int, threads: int,
) -> Found:  # fmt: skip
    """The k best labels of each row and their probabilities; -1 and 0 where there are fewer."""
    n_found = min(k, trees[0].tree.n_labels)
    ids = np.full((rows.n_rows, k), -1, np.int32)
    probabilities = np.zeros((rows.n_rows, k), np.float32)

    def find(part: slice) -> None:
        arrays = _part(rows, part)
        if len(trees) == 1:
            trees[0].topk(arrays, k, threshold, normalize, ids[part], probabilities[part], beam)
            return
        best = best_of_trees(trees, arrays, n_found, threshold, normalize, beam)
        ids[part, :n_found], probabilities[part, :n_found] = best

    _by_rows(find, rows.n_rows, threads)
    return ids, probabilities


def above_of_rows(
    trees: Sequence[TreeSearch], rows: SparseRows, threshold: np.float32, normalize: bool, threads: int
) -> SparseRows:
    """All labels of at least the threshold: rows of probabilities over label ids."""
    parts: dict[int, tuple[NDArray, NDArray, NDArray]] = {}

    def find(part: slice) -> None:
        arrays = _part(rows, part)
        if len(trees) == 1:
            parts[part.start] = trees[0].above(arrays, threshold, normalize)
        else:
            parts[part.start] = above_average(trees, arrays, threshold, normalize)

    _by_rows(find, rows.n_rows, threads)
    found = [parts[start] for start in sorted(parts)]
    lengths = np.concatenate([np.empty(0, np.int64), *(part[0] for part in found)])
    ids = np.concatenate([np.empty(0, np.int32), *(part[1] for part in found)])
    values = np.concatenate([np.empty(0, np.float32), *(part[2] for part in found)])
    return SparseRows(pointers(lengths), ids, values, trees[0].tree.n_labels)


def score_rows(
    trees: Sequence[TreeSearch], rows: SparseRows, labels: LabelRows, normalize: bool, threads: int
) -> NDArray[np.float32]:
    """The probability of each given label of each row."""
    out = np.zeros(len(labels.indices), np.float32)

    def score(part: slice) -> None:
        label_indptr = labels.indptr[part.start : part.stop + 1]
        begin, end = label_indptr[0], label_indptr[-1]
        given = (label_indptr - begin, labels.indices[begin:end])
        out[begin:end] = average_of_trees(trees, _part(rows, part), given, normalize)

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


def merge_labels(rows: NDArray[np.int64], ids: NDArray[np.int32], n_rows: int) -> Labels:
    """The distinct labels of each row, sorted."""
    order = np.lexsort((ids, rows))
    rows, ids = rows[order], ids[order]
    keep = np.ones(len(ids), bool)
    keep[1:] = (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1])
    counts = np.bincount(rows[keep], minlength=n_rows)
    return pointers(counts), ids[keep]


def average_of_trees(
    trees: Sequence[TreeSearch], arrays: Arrays, labels: Labels, normalize: bool
) -> NDArray[np.float32]:
    total = np.zeros(len(labels[1]))
    for search in trees:
        total += search.score(arrays, labels, normalize)
    return (total / len(trees)).astype(np.float32)


def best_of_trees(
    trees: Sequence[TreeSearch],
    arrays: Arrays,
    k: int,
    threshold: np.float32,
    normalize: bool,
    beam: int = NO_BEAM,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The exact k best labels by average probability, by Fagin's threshold algorithm.

    Each tree gives its best ``depth`` labels; those are scored in all trees. No other label can have a higher
    average than the average of the trees' last ones: rows whose k-th label beats that are done, the others
    go on with twice the depth. With a beam the trees give the best labels that their beams find, which may be
    fewer (and then the last one's probability is 0), and the answer is no longer exact.
    """
    n_rows, n_labels = len(arrays[0]) - 1, trees[0].tree.n_labels
    out_ids = np.full((n_rows, k), -1, np.int32)
    out_probabilities = np.zeros((n_rows, k), np.float32)
    open_rows = np.arange(n_rows)
    depth = k + 1  # where all trees agree on the k-th label, only the next one can tell that it is safe
    while len(open_rows):
        depth = min(depth, n_labels)
        part = take_rows(arrays, open_rows)
        ids = np.empty((len(trees), len(open_rows), depth), np.int32)
        probabilities = np.empty(ids.shape, np.float32)
        for number, search in enumerate(trees):
            search.topk(part, depth, np.float32(0.0), normalize, ids[number], probabilities[number], beam)
        bound = probabilities[:, :, -1].sum(axis=0, dtype=np.float64)
        labels, average = _average_of_found(trees, part, ids, probabilities, normalize)
        best_ids, best = _best_per_row(labels, average, k)
        # A little more than the bound, as averages are rounded in another order. With a bound of 0 all other
        # labels have probability 0, and each tree gave those of the lowest ids.
        done = (best[:, -1] > bound / len(trees) * (1 + 1e-5)) | (bound == 0.0) | (depth == n_labels)
        best_ids[best < threshold], best[best < threshold] = -1, 0.0
        out_ids[open_rows[done]], out_probabilities[open_rows[done]] = best_ids[done], best[done]
        open_rows = open_rows[~done]
        depth *= 2
    return out_ids, out_probabilities


def _average_of_found(
    trees: Sequence[TreeSearch],
    arrays: Arrays,
    ids: NDArray[np.int32],
    probabilities: NDArray[np.float32],
    normalize: bool,
) -> tuple[Labels, NDArray[np.float32]]:
    """All labels that some tree found for a row, with their averages; a tree is asked for the others only."""
    n_rows, n_labels = ids.shape[1], trees[0].tree.n_labels
    is_label = ids >= 0
    row_of = np.broadcast_to(np.arange(n_rows)[:, None], ids.shape[1:])
    rows = np.broadcast_to(row_of, ids.shape)
    indptr, merged = merge_labels(rows[is_label], ids[is_label], n_rows)
    merged_rows = np.repeat(np.arange(n_rows), np.diff(indptr))
    keys = merged_rows * n_labels + merged
    total = np.zeros(len(merged))
    for number, search in enumerate(trees):
        own = is_label[number] & search.scores_alike
        place = np.searchsorted(keys, row_of[own] * n_labels + ids[number][own])
        is_asked = np.ones(len(merged), bool)
        is_asked[place] = False
        total[place] += probabilities[number][own]
        asked = pointers(np.bincount(merged_rows[is_asked], minlength=n_rows)), merged[is_asked]
        total[is_asked] += search.score(arrays, asked, normalize)
    return (indptr, merged), (total / len(trees)).astype(np.float32)


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


def above_average(
    trees: Sequence[TreeSearch], arrays: Arrays, threshold: np.float32, normalize: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """As :meth:`TreeSearch.above` for the average: a label that reaches it must reach it in some tree too."""
    n_rows = len(arrays[0]) - 1
    found = [search.above(arrays, threshold, normalize) for search in trees]
    rows = np.concatenate([np.repeat(np.arange(n_rows), lengths) for lengths, _, _ in found])
    indptr, ids = merge_labels(rows, np.concatenate([ids for _, ids, _ in found]), n_rows)
    average = average_of_trees(trees, arrays, (indptr, ids), normalize)
    keep = average >= threshold
    row_of = np.repeat(np.arange(n_rows), np.diff(indptr))
    return np.bincount(row_of[keep], minlength=n_rows), ids[keep], average[keep]
