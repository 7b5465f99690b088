"""Trees and what they are built from: order and cost of a tree, Huffman merging, label profiles."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import kernel
from labeltree.kernels.sorting import select_largest
from labeltree.kernels.trees.paths import mark_path

# Position of the lowest set bit of a 64-bit word, by a multiplication that gives each of them another index.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_POSITION = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_POSITION[((0x03F79D71B4CB0A89 << _bit) & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@kernel
def order_breadth_first(by_parent, n_children, out_order):
    """Nodes from the root on, level by level; returns how many were reached (fewer: there is a cycle).

    ``by_parent`` holds the nodes sorted by parent, the root first.
    """
    first = np.empty(len(n_children), np.int64)
    position = 1
    for n in range(len(n_children)):
        first[n] = position
        position += n_children[n]
    out_order[0] = by_parent[0]
    head, tail = 0, 1
    while head < tail:
        n = out_order[head]
        for c in range(n_children[n]):
            out_order[tail] = by_parent[first[n] + c]
            tail += 1
        head += 1
    return tail


@kernel
def count_rows_below(indptr, indices, parent, leaf_of_label, out_n_rows):
    """Add to each node the number of rows with a label at or below it. Twin: ``reference.tree.cost``."""
    last_row, path = np.full(len(parent), -1, np.int64), np.empty(len(parent), np.int32)
    for i in range(len(indptr) - 1):
        for position in range(indptr[i], indptr[i + 1]):
            if indices[position] < 0:
                continue
            end = mark_path(parent, leaf_of_label[indices[position]], last_row, i, path, 0)
            for place in range(end):
                out_n_rows[path[place]] += 1


@kernel
def merge_huffman(weights, arity, out_parent):
    """Parents of the leaves, given in order of rising weight, then of the merged nodes, oldest first.

    Merged nodes come out in order of weight, so two queues replace a heap. On equal weights leaves go first.
    Twin: ``reference.tree.huffman_parents``.
    """
    n_leaves = len(weights)
    n_nodes = len(out_parent)
    merged = np.zeros(n_nodes - n_leaves, np.int64)
    leaf, oldest = 0, 0
    # A first group of this size is what padding with empty leaves would give: later ones are all full.
    size = (n_leaves - 2) % (arity - 1) + 2
    for newest in range(n_nodes - n_leaves):
        weight = 0
        for _ in range(size):
            if leaf < n_leaves and (oldest == newest or weights[leaf] <= merged[oldest]):
                weight += weights[leaf]
                out_parent[leaf] = n_leaves + newest
                leaf += 1
            else:
                weight += merged[oldest]
                out_parent[n_leaves + oldest] = n_leaves + newest
                oldest += 1
        merged[newest] = weight
        size = arity
    out_parent[n_nodes - 1] = -1


@kernel
def group_rows_by_label(indptr, indices, out_indptr, out_rows):
    """For each label the rows that have it, in order: the transpose of label rows, without unknown labels."""
    for position in range(len(indices)):
        if indices[position] >= 0:
            out_indptr[indices[position] + 1] += 1
    for label in range(len(out_indptr) - 1):
        out_indptr[label + 1] += out_indptr[label]
    free = out_indptr[:-1].copy()
    for i in range(len(indptr) - 1):
        for position in range(indptr[i], indptr[i + 1]):
            label = indices[position]
            if label >= 0:
                out_rows[free[label]] = i
                free[label] += 1


@kernel
def sum_profiles(rows, label_indptr, label_rows, first_label, n_labels, out_indptr, out_indices, out_values):
    """Normalised sums of each label's rows; returns the number of entries. Twin: ``reference.tree.profiles``.

    Sums go into a dense array; two levels of bit maps remember where, so that entries come out sorted.
    """
    sums = np.zeros(rows.n_columns, np.float64)
    words = np.zeros(rows.n_columns // 64 + 1, np.uint64)
    summary = np.zeros(rows.n_columns // 4096 + 1, np.uint64)
    one = np.uint64(1)
    filled = 0
    for label in range(n_labels):
        for place in range(label_indptr[first_label + label], label_indptr[first_label + label + 1]):
            i = label_rows[place]
            for position in range(rows.indptr[i], rows.indptr[i + 1]):
                feature = rows.indices[position]
                sums[feature] += rows.values[position]
                words[feature >> 6] |= one << np.uint64(feature & 63)
                summary[feature >> 12] |= one << np.uint64((feature >> 6) & 63)
        start = filled
        for block in range(len(summary)):
            while summary[block]:
                bit = summary[block] & (~summary[block] + one)
                summary[block] ^= bit
                word = (block << 6) + _BIT_POSITION[(bit * _DE_BRUIJN) >> np.uint64(58)]
                while words[word]:
                    bit = words[word] & (~words[word] + one)
                    words[word] ^= bit
                    feature = (word << 6) + _BIT_POSITION[(bit * _DE_BRUIJN) >> np.uint64(58)]
                    out_indices[filled] = feature
                    filled += 1
        squares = 0.0
        for position in range(start, filled):
            squares += sums[out_indices[position]] * sums[out_indices[position]]
        scale = 1.0 / np.sqrt(squares) if squares > 0.0 else 0.0
        for position in range(start, filled):
            out_values[position] = sums[out_indices[position]] * scale
            sums[out_indices[position]] = 0.0
        if scale == 0.0:
            filled = start
        out_indptr[label + 1] = filled
    return filled


@kernel
def keep_strongest(rows, n_kept, out_indptr, out_indices, out_values):
    """Copy of each row its ``n_kept`` entries greatest in size; ties go to the lower feature."""
    longest = 0
    for i in range(len(rows.indptr) - 1):
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    sizes = np.empty(longest, np.float32)
    bits = sizes.view(np.int32)
    filled = 0
    for i in range(len(rows.indptr) - 1):
        start, length = rows.indptr[i], rows.indptr[i + 1] - rows.indptr[i]
        for place in range(length):
            sizes[place] = abs(rows.values[start + place])
        limit, n_equal = np.int64(-1), 0
        if length > n_kept:
            limit, n_equal = select_largest(bits[:length], n_kept)
        for place in range(length):
            if bits[place] == limit:
                n_equal -= 1
            if bits[place] > limit or (bits[place] == limit and n_equal >= 0):
                out_indices[filled] = rows.indices[start + place]
                out_values[filled] = rows.values[start + place]
                filled += 1
        out_indptr[i + 1] = filled
