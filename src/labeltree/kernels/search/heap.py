"""Binary heaps in two arrays: log-probabilities, and what they belong to."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined


@inlined
def push(heap_log, heap_node, size, log_probability, node):
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
def pop(heap_log, heap_node, size):
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
def with_room(heap_log, heap_node, n_more):
    """The arrays of a full heap, copied into ones that are twice as long and have room for so many more."""
    n_new = len(heap_log) + n_more
    return (
        np.concatenate((heap_log, np.empty(n_new, heap_log.dtype))),
        np.concatenate((heap_node, np.empty(n_new, heap_node.dtype))),
    )


@inlined
def keep_best(best_log, best_label, found, k, log_probability, label):
    """Offer a label to a heap of the best k; on top is the worst of them. Returns how many it holds.

    They are negated, so that `push` and `pop` put the lowest first, of equal ones the higher label.
    """
    if found == k:
        if log_probability < -best_log[0] or (log_probability == -best_log[0] and label > -best_label[0]):
            return found
        found = pop(best_log, best_label, found)
    return push(best_log, best_label, found, -log_probability, -label)
