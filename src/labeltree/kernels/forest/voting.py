"""What a forest says of rows: each tree leads a row to a leaf, and the leaves' shares are averaged."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.addresses import Layout
from labeltree.kernels.forest.arrays import HALF_BITS, Trees, Work
from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.sorting import MOST_RANKED, make_key, number_of, sort_keys

TREES_TABLE = Layout(Trees)
WORK_TABLE = Layout(Work)
_read_trees, read_work = TREES_TABLE.reader(), WORK_TABLE.reader()

_MANY = 8  # where one label in so many has votes, all are looked at instead of sorting those


@inlined
def _score(trees, begin, end, row):
    """The weights of a node times the row, which has a place for each column; without scale and bias."""
    low, high, amount = trees.low, trees.high, trees.amount
    total = np.float32(0.0)
    if len(high) == 0:
        for e in range(begin, end):
            total += np.float32(amount[e]) * row[np.int64(low[e])]
        return total
    for e in range(begin, end):
        total += np.float32(amount[e]) * row[np.int64(low[e]) | np.int64(high[e]) << HALF_BITS]
    return total


@inlined
def _leaf_of(trees, node, row, length):
    """Of a row that is ``length`` times one of length 1, for which the biases are."""
    first_child, bias, scale, start = trees.first_child, trees.bias, trees.scale, trees.start
    while first_child[node] != 0:
        score = bias[node] * length + scale[node] * _score(trees, start[node], start[node + 1], row)
        node = first_child[node] + (0 if score >= 0.0 else 1)
    return node


@inlined
def _n_compared(indices, start, end, row):
    """How many entries of a row are of columns that trees know: the first ones."""
    while end > start and indices[end - 1] >= len(row):
        end -= 1
    return end - start


@inlined
def _length_of(values, start, end):
    """Of a row; 1 where it is empty."""
    total = np.float32(0.0)
    for e in range(start, end):
        total += values[e] * values[e]
    return np.sqrt(total) if total > 0.0 else np.float32(1.0)


@inlined
def spread_row(indptr, indices, values, i, row):
    """Give the columns of row i their places; where its entries end that trees know, and its length."""
    start = indptr[i]
    end = start + _n_compared(indices, start, indptr[i + 1], row)
    for e in range(start, end):
        row[indices[e]] = values[e]
    return end, _length_of(values, start, end)


@inlined
def clear_row(indices, start, end, row):
    for e in range(start, end):
        row[indices[e]] = 0.0


@kernel
def find_leaves(trees_table, work_table, indptr, indices, values, out_leaves):
    """(n_rows, n_trees) the node that each tree leads each row to."""
    trees, work = _read_trees(trees_table, ()), read_work(work_table, ())
    for i in range(len(indptr) - 1):
        end, length = spread_row(indptr, indices, values, i, work.row)
        for t in range(len(trees.root)):
            out_leaves[i, t] = _leaf_of(trees, trees.root[t], work.row, length)
        clear_row(indices, indptr[i], end, work.row)


@inlined
def _add_leaf(trees, leaf, votes, keys, n):
    """Add a leaf's shares to the votes; keys get the labels that had none. How many have some."""
    low, high, amount = trees.low, trees.high, trees.amount
    scale = np.float64(trees.scale[leaf])
    for e in range(trees.start[leaf], trees.start[leaf + 1]):
        label = np.int64(low[e])
        if len(high) > 0:
            label |= np.int64(high[e]) << HALF_BITS
        if votes[label] == 0.0:
            keys[n] = make_key(label, 0)
            n += 1
        votes[label] += scale * np.float64(amount[e])
    return n


@inlined
def _sort_labels(votes, keys, n, buffer):
    """Keys of the labels with votes, rising."""
    if n * _MANY <= len(votes):
        sort_keys(keys, n, buffer)
        return
    place = 0
    for label in range(len(votes)):
        if votes[label] != 0.0:
            keys[place] = make_key(label, 0)
            place += 1


@kernel
def vote_of_leaves(trees_table, work_table, indptr, indices, values, row, out_indptr, out_ids, out_votes):
    """The labels of each row's leaves and their shares of what these count, from ``row`` on.

    Returns the first row that found no room, or how many rows there are: where one found none, the arrays
    must be larger for the next call. As :func:`labeltree.reference.forest.vote`.
    """
    trees, work = _read_trees(trees_table, ()), read_work(work_table, ())
    votes, keys = work.votes, work.keys
    buffer = np.empty(MOST_RANKED, np.int64)
    for i in range(row, len(indptr) - 1):
        end, length = spread_row(indptr, indices, values, i, work.row)
        n, total = np.int64(0), 0.0
        for t in range(len(trees.root)):
            leaf = _leaf_of(trees, trees.root[t], work.row, length)
            n = _add_leaf(trees, leaf, votes, keys, n)
            total += np.float64(trees.bias[leaf])
        clear_row(indices, indptr[i], end, work.row)
        first = out_indptr[i]
        has_room = first + n <= len(out_ids)
        _sort_labels(votes, keys, n, buffer)
        for k in range(n):
            label = number_of(keys[k])
            if has_room:
                out_ids[first + k] = label
                out_votes[first + k] = min(1.0, votes[label] / total)
            votes[label] = 0.0
        if not has_room:
            return i
        out_indptr[i + 1] = first + n
    return len(indptr) - 1


@kernel
def forest_fits(trees, n_columns, n_labels):
    """Whether children stand behind their parents and lists have ids that there are."""
    low, high, start, n_nodes = trees.low, trees.high, trees.start, len(trees.first_child)
    for t in range(len(trees.root)):
        if not 0 <= trees.root[t] < n_nodes:
            return False
    if start[0] != 0 or start[n_nodes] != len(low):
        return False
    for node in range(n_nodes):
        child = trees.first_child[node]
        if child != 0 and not node < child < n_nodes - 1:
            return False
        if not 0 <= start[node] <= start[node + 1] <= len(low):
            return False
        if child == 0 and not trees.bias[node] > 0.0:
            return False
        # A leaf's label has a vote above 0, or it would be taken for one that has none yet.
        if child == 0 and start[node] < start[node + 1] and not trees.scale[node] > 0.0:
            return False
        bound = n_columns if child != 0 else n_labels
        for e in range(start[node], start[node + 1]):
            id = np.int64(low[e])
            if len(high) > 0:
                id |= np.int64(high[e]) << HALF_BITS
            if id >= bound or (child == 0 and trees.amount[e] <= 0):
                return False
    return True
