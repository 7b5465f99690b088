"""The search of :mod:`.search` for sparse nodes: a node scores w·x, its siblings' weights in one chunk.

The features of a row are looked up in the chunk's buckets once for all siblings ("masked sparse chunk
multiplication", Etter et al., WWW 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import address_table, frozen, matrix_at, vector_at
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.search.beam import search_beam
from labeltree.kernels.search.exact import (
    Kernels,
    finish_scores,
    log_of_least,
    prepare_query,
    probability_of,
    query_size,
    score_labels,
    score_nodes,
    scores_whole_blocks,
    search_above,
    search_prepared,
    search_row,
    search_topk,
)
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.kernels.sparse.chunk import bucket_of
from labeltree.kernels.text.short import row_at, transform_text

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
    indices: NDArray[np.int32]  # of all rows
    values: NDArray[np.float32]
    lookups: tuple[NDArray[np.int64], ...]  # four arrays of STAGE, to write to


# Of the fields of SparseNodes and SparseParameters in their order, then an array of nothing whose shape is
# max_children and the number of features.
_TYPES = (
    (np.int32,) * 7
    + (np.int64, np.int32, np.int64, np.int32, np.uint8, np.int64, np.uint16)
    + (np.float32,) * 3
    + (np.int8,)
)
_SIZES = len(_TYPES) - 1


def sparse_table(arrays: Sequence[NDArray[Any]], max_children: int, n_features: int) -> NDArray[np.int64]:
    """What the kernels below take as ``table``: of the first seven fields of SparseNodes, and the parameters.

    The arrays must outlive it.
    """
    table = address_table([*arrays, np.empty((0, 0), np.int8)], _TYPES).copy()
    table[_SIZES] = 0, max_children, n_features
    table.flags.writeable = False
    return table


@inlined
def _nodes_at(table, indices, values):
    parameters = SparseParameters(
        vector_at(table, 7, np.int64),
        matrix_at(table, 8, np.int32),
        vector_at(table, 9, np.int64),
        vector_at(table, 10, np.int32),
        vector_at(table, 11, np.uint8),
        vector_at(table, 12, np.int64),
        vector_at(table, 13, np.uint16),
        vector_at(table, 14, np.float32),
        vector_at(table, 15, np.float32),
        vector_at(table, 16, np.float32),
    )
    return SparseNodes(
        vector_at(table, 0, np.int32),
        vector_at(table, 1, np.int32),
        vector_at(table, 2, np.int32),
        vector_at(table, 3, np.int32),
        vector_at(table, 4, np.int32),
        vector_at(table, 5, np.int32),
        vector_at(table, 6, np.int32),
        parameters,
        table[_SIZES, 1],
        indices,
        values,
        (
            np.empty(_STAGE, np.int64),
            np.empty(_STAGE, np.int64),
            np.empty(_STAGE, np.int64),
            np.empty(_STAGE, np.int64),
        ),
    )


@query_size.of(SparseNodes)
def _query_size_sparse(nodes):
    return 4


@prepare_query.of(SparseNodes)
def _prepare_query_sparse(nodes, indices, values, start, end, out):
    """Where the row is: scores need nothing else."""
    mask = (1 << _HALF) - 1
    out[0, 0], out[0, 1] = start >> _HALF, start & mask
    out[0, 2], out[0, 3] = end >> _HALF, end & mask


@score_nodes.of(SparseNodes)
def _score_nodes_sparse(nodes, first, n, query, out):
    start = (np.int64(query[0, 0]) << _HALF) | np.int64(query[0, 1])
    end = (np.int64(query[0, 2]) << _HALF) | np.int64(query[0, 3])
    indices, values = nodes.indices, nodes.values
    chunk_bucket, bucket, chunk_row, feature, length, chunk_entry, entry, scale, bias, _ = nodes.parameters
    row, stop, place, touched = nodes.lookups
    last_row = len(feature) - 1
    for c in range(n):
        out[c] = 0.0
    for chunk in range(nodes.chunk[first], nodes.chunk[first + n - 1] + 1):
        first_bucket, first_row = chunk_bucket[chunk], chunk_row[chunk]
        first_entry = chunk_entry[chunk]
        n_buckets = chunk_bucket[chunk + 1] - first_bucket - 1
        before = first - nodes.chunk_node[chunk]  # children of the chunk that are not asked for
        if n_buckets < 1:
            continue
        for begin in range(start, end, _STAGE):
            size = min(_STAGE, end - begin)
            for q in range(size):
                b = first_bucket + bucket_of(indices[begin + q], n_buckets)
                row[q], stop[q] = first_row + bucket[b, 0], first_row + bucket[b + 1, 0]
                place[q] = first_entry + bucket[b, 1]
            for q in range(size):
                touched[q] = feature[min(row[q], last_row)] + length[min(row[q], last_row)]
            n_found = 0
            for q in range(size):
                f, r, e = indices[begin + q], row[q], place[q]
                while r < stop[q] and feature[r] != f:
                    e += length[r]
                    r += 1
                if r < stop[q]:
                    row[n_found], place[n_found], stop[n_found] = begin + q, e, e + length[r]
                    n_found += 1
            for q in range(n_found):
                touched[q] = entry[place[q]]
            for q in range(n_found):
                value = min(max(values[row[q]], -_LARGEST), _LARGEST)
                for e in range(place[q], stop[q]):
                    c = np.int64(entry[e] >> 8) - before
                    if 0 <= c < n:
                        out[c] += value * np.float32(np.int32(entry[e] & 255) - 128)
    finish_scores(scale, bias, first, n, out)


@inlined
def _calibrated(log_probability, calibration):
    """sigmoid(a log p - b log(1 - p) + c): rises with p, from 0 at 0 to 1 at 1."""
    against = math.log(-math.expm1(log_probability))
    log_odds = calibration[0] * log_probability - calibration[1] * against + calibration[2]
    return np.float32(1.0 / (1.0 + math.exp(-log_odds)))


@scores_whole_blocks.of(SparseNodes)
def _scores_whole_blocks_sparse(nodes):
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


@kernel
def sparse_topk(table, indptr, indices, values, k, threshold, link, out_ids, out_probabilities):
    """:func:`.search.search_topk`."""
    nodes = _nodes_at(table, indices, values)
    search_topk(nodes, indptr, indices, values, k, threshold, link, out_ids, out_probabilities)


@kernel
def sparse_topk_row(table, indices, values, n, norm, k, threshold, link, out_ids, out_probabilities):
    """:func:`.search.search_row`."""
    nodes, n_features = _nodes_at(table, frozen(indices), frozen(values)), table[_SIZES, 2]
    return search_row(
        nodes, n_features, indices, values, n, norm, k, threshold, link, out_ids, out_probabilities
    )


@kernel
def sparse_topk_text(table, text_table, buffer, k, threshold, link, out_ids, out_probabilities):
    """:func:`.search.search_prepared` of a short text."""
    n = transform_text(text_table, frozen(buffer))
    indices, values = row_at(text_table)
    nodes = _nodes_at(table, frozen(indices), frozen(values))
    return search_prepared(nodes, indices, values, n, k, threshold, link, out_ids, out_probabilities)


@kernel
def sparse_beam(table, indptr, indices, values, k, beam, threshold, link, out_ids, out_probabilities):
    """:func:`.search_beam.search_beam`."""
    nodes = _nodes_at(table, indices, values)
    search_beam(nodes, indptr, indices, values, k, beam, threshold, link, out_ids, out_probabilities)


@kernel
def sparse_above(
    table, indptr, indices, values, row, threshold, link, out_indptr, out_ids, out_probabilities
):
    """:func:`.search.search_above`."""
    nodes = _nodes_at(table, indices, values)
    return search_above(
        nodes, indptr, indices, values, row, threshold, link, out_indptr, out_ids, out_probabilities
    )


@kernel
def sparse_labels(table, indptr, indices, values, label_indptr, labels, link, out_probabilities):
    """:func:`.search.score_labels`."""
    nodes = _nodes_at(table, indices, values)
    score_labels(nodes, indptr, indices, values, label_indptr, labels, link, out_probabilities)


KERNELS = Kernels(sparse_topk, sparse_topk_row, sparse_topk_text, sparse_beam, sparse_above, sparse_labels)
