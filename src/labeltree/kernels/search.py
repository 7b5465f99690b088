"""Search in a label tree: exact top k, all labels above a threshold, marginals of given labels.

One search for every kind of node: ``score_children`` is resolved by the type of ``nodes`` when compiled.
Slow twins: :mod:`labeltree.reference.search`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from labeltree.kernels.atomic import bits_as_float
from labeltree.kernels.jit import FAST_MATH, inlined, kernel

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693145751953125), np.float32(1.42860677e-06)


class DenseNodes(NamedTuple):
    """A tree whose nodes score w·h + b; all arrays read-only."""

    parent: NDArray[np.int32]  # (n_nodes,)
    first_child: NDArray[np.int32]  # (n_nodes,)
    n_children: NDArray[np.int32]  # (n_nodes,)
    label: NDArray[np.int32]  # (n_nodes,)
    leaf_of_label: NDArray[np.int32]  # (n_labels,)
    embedding: NDArray[np.float32]  # (n_features, dim)
    weights: NDArray[np.float32]  # (n_nodes, dim)
    bias: NDArray[np.float32]  # (n_nodes,)


def query_size(nodes):
    """Length of the vector that :func:`prepare_query` fills."""
    raise NotImplementedError


def prepare_query(nodes, indices, values, start, end, out):
    """What the scores of a row need, computed once per row."""
    raise NotImplementedError


def score_nodes(nodes, first, n, query, out):
    """``out[:n]`` = the scores of the nodes ``first .. first + n - 1``."""
    raise NotImplementedError


@overload(query_size, inline="always")
def _query_size_dense(nodes):
    if _holds(nodes, DenseNodes):
        return lambda nodes: nodes.embedding.shape[1]
    return None


@overload(prepare_query, jit_options={"fastmath": set(FAST_MATH), "forceinline": True})
def _prepare_query_dense(nodes, indices, values, start, end, out):
    if not _holds(nodes, DenseNodes):
        return None

    def prepare(nodes, indices, values, start, end, out):
        embedding = nodes.embedding
        dim = embedding.shape[1]
        for j in range(dim):
            out[j] = 0.0
        q = start
        while q + 4 <= end:
            n0, n1, n2, n3 = indices[q], indices[q + 1], indices[q + 2], indices[q + 3]
            v0, v1, v2, v3 = values[q], values[q + 1], values[q + 2], values[q + 3]
            for j in range(dim):
                out[j] += (
                    v0 * embedding[n0, j]
                    + v1 * embedding[n1, j]
                    + v2 * embedding[n2, j]
                    + v3 * embedding[n3, j]
                )
            q += 4
        while q < end:
            n0, v0 = indices[q], values[q]
            for j in range(dim):
                out[j] += v0 * embedding[n0, j]
            q += 1

    return prepare


@overload(score_nodes, jit_options={"fastmath": set(FAST_MATH), "forceinline": True})
def _score_nodes_dense(nodes, first, n, query, out):
    if not _holds(nodes, DenseNodes):
        return None

    def score(nodes, first, n, query, out):
        weights, bias = nodes.weights, nodes.bias
        dim = weights.shape[1]
        c = 0
        while c + 4 <= n:
            node = first + c
            s0, s1, s2, s3 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
            for j in range(dim):
                h = query[j]
                s0 += weights[node, j] * h
                s1 += weights[node + 1, j] * h
                s2 += weights[node + 2, j] * h
                s3 += weights[node + 3, j] * h
            out[c] = s0 + bias[node]
            out[c + 1] = s1 + bias[node + 1]
            out[c + 2] = s2 + bias[node + 2]
            out[c + 3] = s3 + bias[node + 3]
            c += 4
        while c < n:
            s0 = np.float32(0.0)
            for j in range(dim):
                s0 += weights[first + c, j] * query[j]
            out[c] = s0 + bias[first + c]
            c += 1

    return score


def _holds(nodes, kind):
    return getattr(nodes, "instance_class", None) is kind


@inlined
def _apply_log_sigmoid(scores, n):
    """``scores[:n] = -log(1 + exp(-scores[:n]))`` to 3e-7, in plain arithmetic so that it vectorises.

    = min(s, 0) - log1p(z) with z = exp(-|s|) = 2**i * exp(f), |f| <= ln(2) / 2, by Taylor's polynomial, and
    log1p(z) = 2 artanh(t) with t = z / (2 + z) <= 1/3, by its series.
    """
    for c in range(n):
        x = max(-abs(scores[c]), np.float32(-88.0))  # where 2**i is exactly 0: a certain node costs nothing
        i = np.floor(x * _LOG2_E + np.float32(0.5))
        f = x - i * _LN2_HIGH - i * _LN2_LOW
        p = np.float32(1.0 / 5040.0)
        p = p * f + np.float32(1.0 / 720.0)
        p = p * f + np.float32(1.0 / 120.0)
        p = p * f + np.float32(1.0 / 24.0)
        p = p * f + np.float32(1.0 / 6.0)
        p = p * f + np.float32(0.5)
        p = p * f + np.float32(1.0)
        p = p * f + np.float32(1.0)
        z = p * bits_as_float((np.int32(i) + np.int32(127)) << np.int32(23))
        t = z / (np.float32(2.0) + z)
        u = t * t
        q = np.float32(1.0 / 13.0)
        q = q * u + np.float32(1.0 / 11.0)
        q = q * u + np.float32(1.0 / 9.0)
        q = q * u + np.float32(1.0 / 7.0)
        q = q * u + np.float32(1.0 / 5.0)
        q = q * u + np.float32(1.0 / 3.0)
        q = q * u + np.float32(1.0)
        scores[c] = min(scores[c], np.float32(0.0)) - np.float32(2.0) * t * q


@inlined
def _score_children(nodes, first, n, query, normalize, out):
    """``out[:n]`` = log P(child | parent) of n siblings."""
    score_nodes(nodes, first, n, query, out)
    _apply_log_sigmoid(out, n)
    if normalize:
        largest = np.float32(-np.inf)
        for c in range(n):
            largest = max(largest, out[c])
        if largest == -np.inf:
            return
        total = np.float32(0.0)  # relative to the largest: all may be too small for a float32
        for c in range(n):
            total += math.exp(out[c] - largest)
        shift = largest + math.log(total)
        if shift < 0.0:
            for c in range(n):
                out[c] -= shift


@inlined
def _push(heap_log, heap_node, size, log_probability, node):
    """Add to a binary heap; the largest log-probability is on top, of equal ones the smallest node."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if heap_log[above] > log_probability or (
            heap_log[above] == log_probability and heap_node[above] < node
        ):
            break
        heap_log[place] = heap_log[above]
        heap_node[place] = heap_node[above]
        place = above
    heap_log[place] = log_probability
    heap_node[place] = node
    return size + 1


@inlined
def _pop(heap_log, heap_node, size):
    """Remove the top; the caller has read it. Returns the new size."""
    size -= 1
    log_probability, node = heap_log[size], heap_node[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and (
            heap_log[below + 1] > heap_log[below]
            or (heap_log[below + 1] == heap_log[below] and heap_node[below + 1] < heap_node[below])
        ):
            below += 1
        if log_probability > heap_log[below] or (
            log_probability == heap_log[below] and node < heap_node[below]
        ):
            break
        heap_log[place] = heap_log[below]
        heap_node[place] = heap_node[below]
        place = below
    heap_log[place] = log_probability
    heap_node[place] = node
    return size


@inlined
def _insert_label(label, log_probability, found, k, row, out_ids, out_logs):
    """Keep the best k labels of the row sorted; of equal ones the lower label first. Returns how many."""
    place = found
    if found == k:
        place = k - 1
        if log_probability < out_logs[row, place] or (
            log_probability == out_logs[row, place] and label > out_ids[row, place]
        ):
            return found
    else:
        found += 1
    while place > 0 and (
        out_logs[row, place - 1] < log_probability
        or (out_logs[row, place - 1] == log_probability and out_ids[row, place - 1] > label)
    ):
        out_logs[row, place] = out_logs[row, place - 1]
        out_ids[row, place] = out_ids[row, place - 1]
        place -= 1
    out_logs[row, place] = log_probability
    out_ids[row, place] = label
    return found


@kernel
def search_topk(nodes, indptr, indices, values, k, log_threshold, normalize, out_ids, out_probabilities):
    """The k most probable labels of each row (Algorithm 2: uniform-cost search), best first.

    The heap holds inner nodes only: a leaf competes at once for the k places, and the search ends when no
    inner node is as probable as the k-th label. Fills -1 and 0 where fewer labels reach the threshold.
    """
    n_nodes = len(nodes.parent)
    first_child, n_children, label = nodes.first_child, nodes.n_children, nodes.label
    query = np.empty(query_size(nodes), np.float32)
    scores = np.empty(max(1, np.max(n_children)), np.float32)
    n_heap = max(1, n_nodes - len(nodes.leaf_of_label))
    heap_log = np.empty(n_heap, np.float32)
    heap_node = np.empty(n_heap, np.int32)
    for row in range(len(indptr) - 1):
        prepare_query(nodes, indices, values, indptr[row], indptr[row + 1], query)
        _score_children(nodes, 0, 1, query, False, scores)
        found = 0
        size = 0
        if n_children[0] == 0:
            if scores[0] >= log_threshold:
                found = _insert_label(label[0], scores[0], found, k, row, out_ids, out_probabilities)
        else:
            size = _push(heap_log, heap_node, size, scores[0], 0)
        while size > 0:
            top, node = heap_log[0], heap_node[0]
            if top < log_threshold or (found == k and top < out_probabilities[row, k - 1]):
                break
            size = _pop(heap_log, heap_node, size)
            first, n = first_child[node], n_children[node]
            _score_children(nodes, first, n, query, normalize, scores)
            for c in range(n):
                log_probability = top + scores[c]
                if log_probability < log_threshold:
                    continue
                if n_children[first + c] == 0:
                    found = _insert_label(
                        label[first + c], log_probability, found, k, row, out_ids, out_probabilities
                    )
                elif found < k or log_probability >= out_probabilities[row, k - 1]:
                    size = _push(heap_log, heap_node, size, log_probability, first + c)
        for place in range(found):
            out_probabilities[row, place] = math.exp(out_probabilities[row, place])
        for place in range(found, k):
            out_ids[row, place] = -1
            out_probabilities[row, place] = 0.0


@kernel
def search_above(
    nodes, indptr, indices, values, row, log_threshold, normalize, out_indptr, out_ids, out_probabilities
):
    """All labels at least as probable as the threshold, from ``row`` on, in no order within a row.

    Returns the first row whose labels no longer fit into the out arrays (the number of rows if all did).
    """
    first_child, n_children, label = nodes.first_child, nodes.n_children, nodes.label
    query = np.empty(query_size(nodes), np.float32)
    scores = np.empty(max(1, np.max(n_children)), np.float32)
    stack_log = np.empty(len(nodes.parent), np.float32)
    stack_node = np.empty(len(nodes.parent), np.int32)
    while row < len(indptr) - 1:
        prepare_query(nodes, indices, values, indptr[row], indptr[row + 1], query)
        _score_children(nodes, 0, 1, query, False, scores)
        end = out_indptr[row]
        stack_log[0], stack_node[0] = scores[0], 0
        size = 1 if scores[0] >= log_threshold else 0
        while size > 0:
            size -= 1
            log_probability, node = stack_log[size], stack_node[size]
            if n_children[node] == 0:
                if end == len(out_ids):
                    return row
                out_ids[end] = label[node]
                out_probabilities[end] = math.exp(log_probability)
                end += 1
                continue
            first, n = first_child[node], n_children[node]
            _score_children(nodes, first, n, query, normalize, scores)
            for c in range(n):
                if log_probability + scores[c] >= log_threshold:
                    stack_log[size] = log_probability + scores[c]
                    stack_node[size] = first + c
                    size += 1
        row += 1
        out_indptr[row] = end
    return row


@kernel
def score_labels(nodes, indptr, indices, values, label_indptr, labels, normalize, out_probabilities):
    """The marginal probability of each label given for each row; 0 for a label of -1."""
    parent, first_child, n_children = nodes.parent, nodes.first_child, nodes.n_children
    query = np.empty(query_size(nodes), np.float32)
    scores = np.empty(max(1, np.max(n_children)), np.float32)
    path = np.empty(len(parent), np.int32)
    for row in range(len(indptr) - 1):
        prepare_query(nodes, indices, values, indptr[row], indptr[row + 1], query)
        for q in range(label_indptr[row], label_indptr[row + 1]):
            if labels[q] < 0:
                out_probabilities[q] = 0.0
                continue
            depth = 0
            node = nodes.leaf_of_label[labels[q]]
            while node >= 0:
                path[depth] = node
                depth += 1
                node = parent[node]
            log_probability = np.float32(0.0)
            for step in range(depth - 1, -1, -1):  # from the root, to round as the search does
                node = path[step]
                if normalize and parent[node] >= 0:
                    first = first_child[parent[node]]
                    _score_children(nodes, first, n_children[parent[node]], query, True, scores)
                    log_probability += scores[node - first]
                else:
                    _score_children(nodes, node, 1, query, False, scores)
                    log_probability += scores[0]
            out_probabilities[q] = math.exp(log_probability)
