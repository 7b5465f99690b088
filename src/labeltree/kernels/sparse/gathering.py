"""The rows of each node, and those of one parent as examples for its children."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import kernel
from labeltree.kernels.random import random_at
from labeltree.kernels.trees.paths import mark_path


@kernel
def count_positive(parent, leaf_of_label, label_indptr, labels, weight, out_count, out_weight):
    """For each node, how many rows have a label below it, and their weight; rows of weight 0 do not count.

    ``out_count`` is (n_nodes + 1,), counts one place late so that a running sum makes pointers of them.
    """
    last_row, path = np.full(len(parent), np.int64(-1)), np.empty(len(parent), np.int32)
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        for q in range(label_indptr[row], label_indptr[row + 1]):
            for place in range(mark_path(parent, leaf_of_label[labels[q]], last_row, row, path, 0)):
                out_count[path[place] + 1] += 1
                out_weight[path[place]] += weight[row]


@kernel
def fill_positive(parent, leaf_of_label, label_indptr, labels, weight, indptr, out_rows):
    """For each node its positive rows in order, at ``indptr[node]`` and following."""
    last_row, path = np.full(len(parent), np.int64(-1)), np.empty(len(parent), np.int32)
    free = indptr.copy()
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        for q in range(label_indptr[row], label_indptr[row + 1]):
            for place in range(mark_path(parent, leaf_of_label[labels[q]], last_row, row, path, 0)):
                out_rows[free[path[place]]] = row
                free[path[place]] += 1


@kernel
def sum_entries(row_indptr, node_indptr, node_rows, out_sums):
    """For each node the entries of its rows, and one more of each for the bias."""
    for node in range(len(node_indptr) - 1):
        n = 0
        for place in range(node_indptr[node], node_indptr[node + 1]):
            row = node_rows[place]
            n += row_indptr[row + 1] - row_indptr[row] + 1
        out_sums[node] = n


@kernel
def fill_shares(parent, leaf_of_label, label_indptr, labels, weight, indptr, out_shares):
    """As :func:`fill_positive`, but of each row its weight times the part of its labels below the node.

    So each label counts at all nodes above it, also those that another one has reached.
    """
    last_row = np.full(len(parent), np.int64(-1))
    free = indptr.copy()
    for row in range(len(label_indptr) - 1):
        if weight[row] == 0.0:
            continue
        start, end = label_indptr[row], label_indptr[row + 1]
        share = weight[row] / np.float32(end - start)
        for q in range(start, end):
            node = leaf_of_label[labels[q]]
            while node >= 0:
                if last_row[node] != row:
                    last_row[node] = row
                    out_shares[free[node]] = 0.0
                    free[node] += 1
                out_shares[free[node] - 1] += share
                node = parent[node]


@kernel
def mark_picked(
    parent,
    leaf_of_label,
    label_indptr,
    labels,
    seed,
    number,
    node_indptr,
    node_rows,
    first,
    last,
    out_is_picked,
):
    """Whether the label that pass ``number`` picks of a row is below the node, for all rows of these nodes.

    Every task picks the same label of a row.
    """
    n_rows = len(label_indptr) - 1
    for node in range(first, last):
        for position in range(node_indptr[node], node_indptr[node + 1]):
            row = node_rows[position]
            start, end = label_indptr[row], label_indptr[row + 1]
            above = leaf_of_label[labels[start + random_at(seed, number * n_rows + row, end - start)]]
            while above > node:  # parents stand before their children
                above = parent[above]
            out_is_picked[position - node_indptr[first]] = above == node


@kernel
def gather_examples(rows, chosen, bias, local_of_feature, out, out_features):
    """Fill the rows of a :class:`.arrays.Gathered`; returns the number of features without the bias.

    ``local_of_feature`` is -1 everywhere, before and after.
    """
    n_features = 0
    filled = 0
    for i in range(len(chosen)):
        row = chosen[i]
        squares = np.float32(bias * bias)
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            squares += rows.values[position] * rows.values[position]
        out.indptr[i] = filled
        for position in range(rows.indptr[row], rows.indptr[row + 1]):
            feature, value = rows.indices[position], rows.values[position]
            if local_of_feature[feature] < 0:
                local_of_feature[feature] = n_features
                out_features[n_features] = feature
                n_features += 1
            out.indices[filled] = local_of_feature[feature]
            out.values[filled] = value
            filled += 1
        if bias != 0.0:
            out.values[filled] = bias
            filled += 1
        out.squares[i] = max(squares, np.float32(1e-12))
        out.weight[i] = rows.weight[row]
        out.held_out[i] = rows.held_out[row]
    out.indptr[len(chosen)] = filled
    if bias != 0.0:
        for i in range(len(chosen)):
            out.indices[out.indptr[i + 1] - 1] = n_features
    for feature in out_features[:n_features]:
        local_of_feature[feature] = -1
    return n_features


@kernel
def gather_positive(
    node_indptr, node_rows, first, n_children, chosen, place_of_row, out_indptr, out_positive
):
    """For each chosen row the children that it is positive for; ``place_of_row`` may hold anything."""
    for i in range(len(chosen)):
        place_of_row[chosen[i]] = i
        out_indptr[i] = 0
    out_indptr[len(chosen)] = 0
    start, stop = node_indptr[first], node_indptr[first + n_children]
    for position in range(start, stop):
        out_indptr[place_of_row[node_rows[position]] + 1] += 1
    for i in range(len(chosen)):
        out_indptr[i + 1] += out_indptr[i]
    free = out_indptr.copy()
    for c in range(n_children):
        for position in range(node_indptr[first + c], node_indptr[first + c + 1]):
            i = place_of_row[node_rows[position]]
            out_positive[free[i]] = c
            free[i] += 1
