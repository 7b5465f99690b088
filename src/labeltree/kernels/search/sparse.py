"""The search of :mod:`.exact` for sparse nodes: a node scores w·x, its siblings' weights in one chunk.

The features of a row are looked up in the chunk's buckets once for all siblings ("masked sparse chunk
multiplication", Etter et al., WWW 2022).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout
from labeltree.kernels.atomic import prefetch
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import (
    finish_scores,
    from_odds,
    in_tree,
    log_of_least,
    map_logs,
    prepare_row,
    prepared_size,
    probability_of,
    score_nodes,
    scores_all_siblings,
)
from labeltree.kernels.search.factory import Kernels, make_kernels
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.kernels.sparse.chunk import bucket_of

_LARGEST = np.float32(1e30)  # of a row's values: sums of their products with bytes stay finite
_STAGE = 128  # features that are looked up together
_HALF = 24  # bits of a whole number that a float32 holds exactly


class SparseNodes(NamedTuple):
    """A tree, its chunks and the rows that are searched for; kernels only read it."""

    parent: NDArray[np.int32]  # (n_nodes,)
    first_child: NDArray[np.int32]  # (n_nodes,)
    n_children: NDArray[np.int32]  # (n_nodes,)
    label: NDArray[np.int32]  # (n_nodes,)
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    chunk: NDArray[np.int32]  # (n_nodes,) the chunk of each node
    chunk_node: NDArray[np.int32]  # (n_chunks + 1,) the first node of each chunk
    parameters: SparseParameters
    max_children: int  # of a node, at least 1
    n_features: int
    indices: NDArray[np.int32]  # of all rows
    values: NDArray[np.float32]
    lookups: tuple[NDArray[np.uint64], ...]  # three arrays of STAGE, to write to


SPARSE_TABLE = Layout(SparseNodes, given=("indices", "values", "lookups"))
_read = SPARSE_TABLE.reader()


@inlined
def nodes_at(table, indices, values):
    """What the table of a tree stands for, and the rows."""
    lookups = (
        np.empty(_STAGE, np.uint64),
        np.empty(_STAGE, np.uint64),
        np.empty(_STAGE, np.uint64),
    )
    return _read(table, (indices, values, lookups))


@in_tree.of(SparseNodes)
def _in_tree_sparse(nodes, table):
    return _read(table, (nodes.indices, nodes.values, nodes.lookups))


@prepared_size.of(SparseNodes)
def _prepared_size_sparse(nodes):
    return 4


@prepare_row.of(SparseNodes)
def _prepare_row_sparse(nodes, indices, values, start, end, out):
    """Where the row is: scores need nothing else."""
    mask = (1 << _HALF) - 1
    out[0, 0], out[0, 1] = start >> _HALF, start & mask
    out[0, 2], out[0, 3] = end >> _HALF, end & mask


@score_nodes.of(SparseNodes)
def _score_nodes_sparse(nodes, first, n, prepared, out):
    start = (np.int64(prepared[0, 0]) << _HALF) | np.int64(prepared[0, 1])
    end = (np.int64(prepared[0, 2]) << _HALF) | np.int64(prepared[0, 3])
    chunk_bucket, chunk_node = nodes.parameters.chunk_bucket, nodes.chunk_node
    for c in range(n):
        out[c] = 0.0
    for chunk in range(nodes.chunk[first], nodes.chunk[first + n - 1] + 1):
        n_buckets = chunk_bucket[chunk + 1] - chunk_bucket[chunk] - 1
        before = first - chunk_node[chunk]  # children of the chunk that are not asked for
        is_whole = before == 0 and chunk_node[chunk + 1] <= first + n
        if n_buckets < 1:
            continue
        for begin in range(start, end, _STAGE):
            n_found = _find_features(nodes, chunk, np.uint64(n_buckets), begin, min(begin + _STAGE, end))
            if is_whole:
                _add_whole(nodes, n_found, n, out)
            else:
                _add_part(nodes, n_found, before, n, out)
    finish_scores(nodes.parameters.scale, nodes.parameters.bias, first, n, out)


# Indices are unsigned below: for others it is checked each time whether they count from the end.


@inlined
def _find_features(nodes, chunk, n_buckets, begin, end):
    """Fill ``lookups`` for the features of a row that the chunk has: entry, and where weights begin and end.

    Returns how many there are. What is far off in memory is asked for before it is needed; and the weights
    only once it is known that there are any, as a third of the features is not found.
    """
    chunk_bucket, buckets, chunk_row, feature, length, chunk_entry, entry, _, _, _ = nodes.parameters
    bucket, indices, (row, stop, place) = buckets.ravel(), nodes.indices, nodes.lookups
    one, two, start, size = np.uint64(1), np.uint64(2), np.uint64(begin), np.uint64(end - begin)
    first_bucket, first_row = np.uint64(chunk_bucket[chunk]), np.uint64(chunk_row[chunk])
    first_entry = np.uint64(chunk_entry[chunk])
    for q in range(size):
        b = two * (first_bucket + np.uint64(bucket_of(indices[start + q], n_buckets)))
        prefetch(bucket, b)
        row[q] = b
    for q in range(size):
        b = row[q]
        row[q], stop[q] = first_row + np.uint64(bucket[b]), first_row + np.uint64(bucket[b + two])
        place[q] = first_entry + np.uint64(bucket[b + one])
        prefetch(feature, row[q])
        prefetch(length, row[q])
    n_found = np.uint64(0)
    for q in range(size):
        f, r, r_stop, e = indices[start + q], row[q], stop[q], place[q]
        while r < r_stop and feature[r] != f:
            e += np.uint64(length[r])
            r += one
        if r < r_stop:
            prefetch(entry, e)
            row[n_found], place[n_found], stop[n_found] = start + q, e, e + np.uint64(length[r])
            n_found += one
    return n_found


@inlined
def _add_whole(nodes, n_found, n, out):
    """Add the products of the features that were found to the scores of all n children of a chunk."""
    values, entry, (row, stop, place) = nodes.values, nodes.parameters.entry, nodes.lookups
    for q in range(n_found):
        value = min(max(values[row[q]], -_LARGEST), _LARGEST)
        for e in range(place[q], stop[q]):
            c = np.uint64(entry[e] >> 8)
            if c < np.uint64(n):  # a file may say anything
                out[c] += value * np.float32(np.int32(entry[e] & 255) - 128)


@inlined
def _add_part(nodes, n_found, before, n, out):
    """The same for n children, from ``before`` on; where that is negative, earlier chunks have others."""
    values, entry, (row, stop, place) = nodes.values, nodes.parameters.entry, nodes.lookups
    for q in range(n_found):
        value = min(max(values[row[q]], -_LARGEST), _LARGEST)
        for e in range(place[q], stop[q]):
            c = np.int64(entry[e] >> 8) - before
            if 0 <= c < n:
                out[c] += value * np.float32(np.int32(entry[e] & 255) - 128)


@inlined
def _calibrated(log_probability, calibration):
    log_against = math.log(-math.expm1(log_probability))
    return from_odds(map_logs(calibration, log_probability, log_against))


@scores_all_siblings.of(SparseNodes)
def _scores_all_siblings_sparse(nodes):
    return True


@probability_of.of(SparseNodes)
def _probability_sparse(nodes, log_probability):
    return _calibrated(np.float64(log_probability), nodes.parameters.calibration)


@log_of_least.of(SparseNodes)
def _log_of_least_sparse(nodes, threshold):
    """By halving: the map has no inverse in closed form."""
    low, high = -200.0, 0.0
    if not _calibrated(low, nodes.parameters.calibration) < threshold:
        return np.float32(-np.inf)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _calibrated(middle, nodes.parameters.calibration) < threshold:
            low = middle
        else:
            high = middle
    return np.float32(low * 1.00001 - 1e-5)


def sparse_kernels(link: Any) -> Kernels:
    return make_kernels("sparse", nodes_at, link)
