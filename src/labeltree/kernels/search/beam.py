"""Beam search: level by level, of each row's nodes on a level only the most probable ones are opened.

It may miss labels that :mod:`.exact` finds, but opens a bounded number of nodes. Like that one it is written
once for every kind of node and every link. The loops that offer a node's children are alike but for where
inner nodes go, which no helper can be told. Slow twin: :func:`labeltree.reference.search.beam_search`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import (
    FIRST_QUEUE,
    log_of_least,
    prepare_row,
    prepared_size,
    probability_of,
    score_alone,
    score_children,
)
from labeltree.kernels.search.heap import keep_best, pop, push, with_room

_GROUP_ROWS = 256  # their prepared_rows stay in the second-level cache
_GROUP_NODES = 1 << 16  # a wide beam takes fewer rows at a time
_FIRST_LEVELS = 32  # of a tree; deeper ones are rare
_LOWEST = np.float32(-3e38)  # of a node that was left out; where none was it is -inf
_NODE = 0xFFFFFFFF  # the low half of a key


@inlined
def search_beam(
    nodes, link, indptr, indices, values, k, beam, threshold, out_ids, out_probabilities, out_exact
):
    """As :func:`.exact.search_topk`, but of each level at most ``beam`` inner nodes of a row are opened.

    Those are the most probable ones, of equal ones the lower. Where none that were left out is as probable as
    the k-th label, the labels are proven to be the best ones.
    """
    n_rows = len(indptr) - 1
    beam = min(beam, len(nodes.n_children))
    n_group = max(1, min(n_rows, _GROUP_ROWS, _GROUP_NODES // beam))
    least_log = log_of_least(nodes, threshold)
    if n_group > 1:
        _search_groups(
            nodes, link, indptr, indices, values, k, beam, least_log, n_group, out_ids, out_probabilities,
            out_exact,
        )  # fmt: skip
    else:
        prepared = np.empty((1, prepared_size(nodes)), np.float32)
        for row in range(n_rows):
            prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], prepared)
            out_exact[row] = _search_row(
                nodes, link, prepared, k, beam, least_log, out_ids[row], out_probabilities[row]
            )
    for row in range(n_rows):
        _sort_found(nodes, out_probabilities[row], out_ids[row], k, threshold)


@inlined
def _search_row(nodes, link, prepared, k, beam, least_log, out_labels, out_logs):
    """One row, the most probable node of all levels first, as exact search does.

    The nodes of a level then come up in order, so the first ``beam`` of them are the ones to open. For a row
    alone this is quicker than level by level: once k labels are found, most nodes need not be opened at all.
    Returns whether the labels are proven to be the best ones.
    """
    first_child, n_children, label = nodes.first_child, nodes.n_children, nodes.label
    scores = np.empty(nodes.max_children, np.float32)
    n_opened = np.zeros(_FIRST_LEVELS, np.int64)  # of each level
    queue_log = np.empty(FIRST_QUEUE, np.float32)
    queue_place = np.empty(FIRST_QUEUE, np.int64)  # level << 32 | node: by node, as these are breadth first
    found, size, left_out = 0, 0, np.float32(-np.inf)  # the last: log-probability of the best such node
    score_alone(nodes, link, np.int32(0), prepared, scores)
    if n_children[0] == 0:
        found = keep_best(out_logs, out_labels, found, k, scores[0], label[0])
    else:
        size = push(queue_log, queue_place, size, scores[0], 0)
    while size > 0:
        top, level, node = queue_log[0], queue_place[0] >> 32, queue_place[0] & _NODE
        if top < least_log or (found == k and top < -out_logs[0]):
            break
        size = pop(queue_log, queue_place, size)
        if n_opened[level] == beam:
            left_out = max(left_out, top, _LOWEST)
            continue
        n_opened[level] += 1
        first, n = first_child[node], n_children[node]
        if size + n > len(queue_log):
            queue_log, queue_place = with_room(queue_log, queue_place, n)
        if level + 1 == len(n_opened):
            n_opened = np.concatenate((n_opened, np.zeros(len(n_opened), np.int64)))
        score_children(nodes, link, first, n, prepared, scores)
        for c in range(n):
            log_probability = top + scores[c]
            if log_probability < least_log or (found == k and log_probability < -out_logs[0]):
                continue
            if n_children[first + c] == 0:
                found = keep_best(out_logs, out_labels, found, k, log_probability, label[first + c])
            elif n_children[first + c] < 0:
                continue
            elif n_opened[level + 1] < beam:
                place = ((level + 1) << 32) | np.int64(first + c)
                size = push(queue_log, queue_place, size, log_probability, place)
            else:
                left_out = max(left_out, log_probability, _LOWEST)
    _end_heap(out_labels, found, k)
    return _is_proven(left_out, out_logs, found, k)


@inlined
def _search_groups(
    nodes, link, indptr, indices, values, k, beam, least_log, n_group, out_ids, out_probabilities, out_exact
):
    """Rows in groups, level by level: the nodes that a group opens on a level in the order of their numbers.

    So siblings are read once for all rows that open their parent. What a row finds does not depend on that
    order: a node passed over because k labels are more probable could only have kept less probable nodes out
    of the beam.
    """
    n_rows = len(indptr) - 1
    prepared_rows = np.empty((n_group, prepared_size(nodes)), np.float32)
    scores = np.empty(nodes.max_children, np.float32)
    # Of each row: how many labels it has found, and the nodes of this level and the next. Both are heaps as
    # `keep_best` makes them, of negated numbers, the labels' ones in the out arrays.
    n_found = np.empty(n_group, np.int64)
    left_out = np.empty(n_group, np.float32)  # log-probability of the best node that was left out
    width, next_width = np.empty(n_group, np.int64), np.empty(n_group, np.int64)
    beam_log, next_log = np.empty((n_group, beam), np.float32), np.empty((n_group, beam), np.float32)
    beam_node, next_node = np.empty((n_group, beam), np.int32), np.empty((n_group, beam), np.int32)
    order = np.empty(n_group * beam, np.int64)
    for start in range(0, n_rows, n_group):
        size = min(n_group, n_rows - start)
        for i in range(size):
            row, prepared = start + i, prepared_rows[i : i + 1]
            prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], prepared)
            score_alone(nodes, link, np.int32(0), prepared, scores)
            n_found[i], width[i], left_out[i] = 0, 1, -np.inf
            beam_log[i, 0], beam_node[i, 0] = -scores[0], 0
            if nodes.n_children[0] == 0:
                n_found[i], width[i] = 1, 0
                out_probabilities[row, 0], out_ids[row, 0] = -scores[0], -nodes.label[0]
        while True:
            n_opened = _order_nodes(beam_node, width, size, order)
            if n_opened == 0:
                break
            next_width[:size] = 0
            for place in range(n_opened):
                node, entry = order[place] >> 32, order[place] & _NODE
                i = entry // beam
                log_probability = -beam_log[i, entry % beam]
                best_log, best_label = out_probabilities[start + i], out_ids[start + i]
                if n_found[i] < k or log_probability >= -best_log[0]:
                    n_found[i], next_width[i], left_out[i] = _open_node(
                        nodes, link, node, log_probability, prepared_rows[i : i + 1], k, least_log, scores,
                        best_log, best_label, n_found[i], next_log[i], next_node[i], next_width[i],
                        left_out[i],
                    )  # fmt: skip
            width, next_width = next_width, width
            beam_log, next_log = next_log, beam_log
            beam_node, next_node = next_node, beam_node
        for i in range(size):
            out_exact[start + i] = _is_proven(left_out[i], out_probabilities[start + i], n_found[i], k)
            _end_heap(out_ids[start + i], n_found[i], k)


@inlined
def _order_nodes(beam_node, width, size, out_order):
    """Fill the nodes of all rows in the order of their numbers: node << 32 | its place in ``beam_node``."""
    beam = beam_node.shape[1]
    n = 0
    for i in range(size):
        for b in range(width[i]):
            out_order[n] = (np.int64(-beam_node[i, b]) << 32) | (i * beam + b)
            n += 1
    out_order[:n].sort()
    return n


@inlined
def _open_node(
    nodes, link, node, node_log, prepared, k, least_log, scores,
    best_log, best_label, n_found, next_log, next_node, next_width, left_out,
):  # fmt: skip
    """Offer the children of a node to its row: leaves to the k best labels, others to the next level's beam.

    Returns how many of both there are then, and the best log-probability of a node that had no place.
    """
    n_children, label = nodes.n_children, nodes.label
    first, n = nodes.first_child[node], n_children[node]
    beam = len(next_log)
    score_children(nodes, link, first, n, prepared, scores)
    for c in range(n):
        log_probability = node_log + scores[c]
        if log_probability < least_log or (n_found == k and log_probability < -best_log[0]):
            continue
        if n_children[first + c] == 0:
            n_found = keep_best(best_log, best_label, n_found, k, log_probability, label[first + c])
        elif n_children[first + c] > 0:
            if next_width == beam:
                left_out = max(left_out, min(log_probability, -next_log[0]), _LOWEST)
            next_width = keep_best(next_log, next_node, next_width, beam, log_probability, first + c)
    return n_found, next_width, left_out


@inlined
def _is_proven(left_out, best_log, n_found, k):
    """Whether no label below the nodes that were left out can be one of the k best: equal ones might be."""
    return left_out == -np.inf or (n_found == k and left_out < -best_log[0])


@inlined
def _end_heap(best_label, n_found, k):
    """Mark the places behind a heap of labels, which are negated and so never positive."""
    for place in range(n_found, k):
        best_label[place] = 1


@inlined
def _sort_found(nodes, best_log, best_label, k, threshold):
    """Turn a heap of labels into probabilities, best first, in place; -1 and 0 where it ends."""
    n_found = k
    while n_found > 0 and best_label[n_found - 1] > 0:
        n_found -= 1
        best_log[n_found], best_label[n_found] = 0.0, -1
    for place in range(n_found - 1, -1, -1):
        probability, label = probability_of(nodes, -best_log[0]), -best_label[0]
        n_found = pop(best_log, best_label, n_found)
        best_log[place], best_label[place] = probability, label
        if probability < threshold:
            best_log[place], best_label[place] = 0.0, -1
