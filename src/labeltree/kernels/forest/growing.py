"""Trees over rows, grown node by node: halves by labels, a linear split that foresees them, then its sides.

A node's numbers follow from its rows, its tree's seed and its own number alone.
Slow twins: :mod:`labeltree.reference.forest`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.forest.arrays import LARGEST, L1Split, L2Split, Scratch
from labeltree.kernels.forest.partition import halve
from labeltree.kernels.forest.splits_l1 import fit_l1
from labeltree.kernels.forest.splits_l2 import fit_l2, score_row
from labeltree.kernels.jit import generic, helper, inlined, kernel

_MIX = np.uint64(0xD1342543DE82EF95)


@generic
def fit_split(method, examples, members, begin, end, n_first, scratch):
    """Fill ``scratch.weights`` for the sides of a node's rows."""


@fit_split.of(L1Split)
def _fit_l1(method, examples, members, begin, end, n_first, scratch):
    fit_l1(method, examples, members, begin, end, n_first, scratch)


@fit_split.of(L2Split)
def _fit_l2(method, examples, members, begin, end, n_first, scratch):
    fit_l2(method, examples, members, begin, end, n_first, scratch)


@generic
def least_part(method):
    """Weights below this part of the largest are dropped."""


@least_part.of(L1Split)
def _least_part_l1(method):
    return 0.0


@least_part.of(L2Split)
def _least_part_l2(method):
    return method.prune


@inlined
def _make_scratch(n_rows, n_columns, n_labels):
    return Scratch(
        np.zeros(n_columns + 1, np.float32), np.zeros(n_columns, np.int32), np.empty(n_columns, np.int32),
        np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels), np.empty(n_labels, np.int32),
        np.empty(n_rows, np.int8), np.empty(n_rows, np.float32), np.zeros(1, np.uint64),
    )  # fmt: skip


@inlined
def _columns_of(examples, members, begin, end, scratch):
    """Those that occur, in the order of their first rows."""
    indptr, indices, place, columns = examples.indptr, examples.indices, scratch.place, scratch.columns
    n = 0
    for k in range(begin, end):
        for e in range(indptr[members[k]], indptr[members[k] + 1]):
            if place[indices[e]] == 0:
                place[indices[e]] = 1
                columns[n] = indices[e]
                n += 1
    for j in range(n):
        place[columns[j]] = 0
    return columns[:n]


@inlined
def _scale_of(weights, columns):
    """What 1 of a byte stands for."""
    largest = np.float32(0.0)
    for j in range(len(columns)):
        largest = max(largest, abs(weights[columns[j]]))
    return largest / np.float32(LARGEST)


@inlined
def _enlarged(array, n):
    """The same with room for n."""
    if n <= len(array):
        return array
    larger = np.empty(max(n, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


@inlined
def _round_weights(weights, columns, scale, least, n, out_ids, out_amounts):
    """Write bytes behind the first n entries, and leave what they stand for in ``weights``; the new n.

    Only the columns that are kept are sorted: they are a fraction of all.
    """
    end = n
    for j in range(len(columns)):
        amount = np.int64(np.rint(weights[columns[j]] / scale)) if scale > 0.0 else np.int64(0)
        if abs(amount) < least:
            amount = np.int64(0)
        weights[columns[j]] = amount * scale
        if amount != 0:
            out_ids[end] = columns[j]
            end += 1
    out_ids[n:end].sort()
    for k in range(n, end):
        out_amounts[k] = np.int64(np.rint(weights[out_ids[k]] / scale))
    return end


@helper
def _divide(examples, members, begin, end, weights, bias, spare):
    """Put the rows whose score is at least 0 first; how many there are."""
    indptr, indices, values = examples.indptr, examples.indices, examples.values
    n_first, n_second = 0, 0
    for k in range(begin, end):
        row = members[k]
        if score_row(indptr, indices, values, row, weights, bias) >= 0.0:
            members[begin + n_first] = row
            n_first += 1
        else:
            spare[n_second] = row
            n_second += 1
    for k in range(n_second):
        members[begin + n_first + k] = spare[k]
    return n_first


@inlined
def _add_children(nodes, node, n_nodes, middle):
    nodes.first_child[node] = n_nodes
    nodes.begin[n_nodes], nodes.end[n_nodes] = nodes.begin[node], middle
    nodes.begin[n_nodes + 1], nodes.end[n_nodes + 1] = middle, nodes.end[node]


@kernel
def grow_nodes(method, examples, nodes, n_columns, leaf_rows, seed):
    """Split the root, then its children and theirs, where they have more than ``leaf_rows`` rows.

    Returns the number of nodes, and the entries of inner ones: columns, and weights as bytes.
    """
    members, n_labels, n_nodes, n_entries = nodes.members, len(examples.discount), 1, 0
    ids, amounts = np.empty(1024, np.int32), np.empty(1024, np.int8)
    scratch = _make_scratch(len(members), n_columns, n_labels)
    weights, spare, bias = scratch.weights, np.empty(len(members), np.int32), np.float32(method.bias)
    node = -1
    while node + 1 < n_nodes:
        node += 1
        begin, end = nodes.begin[node], nodes.end[node]
        if end - begin <= leaf_rows:
            continue
        scratch.random[0] = np.uint64(seed) + _MIX * np.uint64(node + 1)
        n_first = halve(examples, members, begin, end, scratch)
        if n_first == 0 or n_first == end - begin:
            continue
        fit_split(method, examples, members, begin, end, n_first, scratch)
        columns = _columns_of(examples, members, begin, end, scratch)
        scale = _scale_of(weights, columns)
        least = np.int64(np.ceil(least_part(method) * LARGEST))
        ids = _enlarged(ids, n_entries + len(columns))
        amounts = _enlarged(amounts, n_entries + len(columns))
        n = _round_weights(weights, columns, scale, least, n_entries, ids, amounts)
        n_first = _divide(examples, members, begin, end, weights, bias, spare)
        if 0 < n_first < end - begin:
            nodes.bias[node], nodes.scale[node] = weights[n_columns] * bias, scale
            nodes.entry_begin[node], nodes.entry_end[node] = n_entries, n
            n_entries = n
            _add_children(nodes, node, n_nodes, begin + n_first)
            n_nodes += 2
        for j in range(len(columns)):
            weights[columns[j]] = 0.0
        weights[n_columns] = 0.0
    return n_nodes, ids[:n_entries].copy(), amounts[:n_entries].copy()


@inlined
def _sum_labels(examples, members, begin, end, shares, found):
    """What each label's rows count for it; the labels, sorted."""
    label_indptr, labels = examples.label_indptr, examples.labels
    n = 0
    for k in range(begin, end):
        row = members[k]
        count = examples.weight[row] * examples.leaf_gain[row]
        for e in range(label_indptr[row], label_indptr[row + 1]):
            if shares[labels[e]] == 0.0:
                found[n] = labels[e]
                n += 1
            shares[labels[e]] += count
    return np.sort(found[:n])


@inlined
def _sum_rows(weight, members, begin, end, leaf_gain):
    """What the rows weigh, and what all of them count for a label that they all have."""
    total, gain = 0.0, 0.0
    for k in range(begin, end):
        total += weight[members[k]]
        gain += weight[members[k]] * leaf_gain[members[k]]
    return total, gain


@inlined
def _least_share(shares, found, n_kept):
    """The ``n_kept``-th largest share, and how many of exactly that are kept."""
    if len(found) <= n_kept:
        return 0.0, 0
    sizes = np.empty(len(found), np.float64)
    for j in range(len(found)):
        sizes[j] = shares[found[j]]
    sizes.sort()
    least = sizes[len(found) - n_kept]
    n_above = 0
    for j in range(len(found)):
        n_above += sizes[j] > least
    return least, n_kept - n_above


@kernel
def fill_leaves(examples, nodes, leaves, most_labels, out_start, out_scale, out_gain):
    """The labels of each leaf and their shares of its rows, the largest ones: ids and bytes.

    ``out_gain`` is the share of a label that all rows have.
    """
    n_labels = len(examples.discount)
    shares, found = np.zeros(n_labels), np.empty(n_labels, np.int32)
    ids, amounts = np.empty(1024, np.int32), np.empty(1024, np.int8)
    n = 0
    for place in range(len(leaves)):
        begin, end = nodes.begin[leaves[place]], nodes.end[leaves[place]]
        labels = _sum_labels(examples, nodes.members, begin, end, shares, found)
        least, n_equal = _least_share(shares, labels, most_labels)
        largest = 0.0
        for j in range(len(labels)):
            largest = max(largest, shares[labels[j]])
        total, gain = _sum_rows(examples.weight, nodes.members, begin, end, examples.leaf_gain)
        scale = largest / LARGEST
        out_scale[place] = scale / total if total > 0.0 else 0.0
        out_gain[place] = gain / total if total > 0.0 else 1.0
        is_said = out_scale[place] > 0.0  # not where 32 bits are too few for weights next to 0
        ids, amounts = _enlarged(ids, n + len(labels)), _enlarged(amounts, n + len(labels))
        for j in range(len(labels)):
            share = shares[labels[j]]
            shares[labels[j]] = 0.0
            if share < least or (share == least and n_equal == 0):
                continue
            n_equal -= share == least
            amount = np.int64(np.rint(share / scale)) if scale > 0.0 else np.int64(0)
            if is_said and amount > 0:
                ids[n], amounts[n] = labels[j], amount
                n += 1
        out_start[place + 1] = n
    return ids[:n].copy(), amounts[:n].copy()
