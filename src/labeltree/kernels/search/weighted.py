"""Search for the labels of the highest a·P + b, with a weight a and a summand b of each label.

As :mod:`.exact` it opens the best node first, but what a node promises is a bound of the labels below it:
their largest a times the node's probability, and their largest b. Slow twin:
:func:`labeltree.reference.search.weighted`, and the best k of that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.jit import inlined
from labeltree.kernels.search.answer import HIGHER, mapped
from labeltree.kernels.search.exact import (
    FIRST_QUEUE,
    prepare_row,
    prepared_size,
    probability_of,
    score_alone,
    score_children,
)
from labeltree.kernels.search.heap import keep_best, pop, push, with_room

_FAR = np.float32(3.0)  # most children's log-probabilities are more than this below their parent's


class Weights(NamedTuple):
    """Of nodes and labels, and how what a tree says becomes a label's probability."""

    weight: NDArray[np.float32]  # (n_nodes,) at least 0: the largest of the labels below, or of the leaf's
    summand: NDArray[np.float32]  # (n_nodes,) so
    share: float  # of the tree's probability in the average ...
    map: NDArray[np.float64]  # ... and the map of that, see labeltree.experts.combination; or none


@inlined
def search_weighted(nodes, link, indptr, indices, values, weights, k, budget, out_ids, out_values, out_exact):
    """The k labels of the highest values of each row, best first, of equal ones the lower label.

    Fills -1 and -inf where there are fewer. A row that has opened ``budget`` nodes ends as soon as it has k
    labels; ``out_exact`` says where they are proven to be the best ones.
    """
    first_child, n_children, label = nodes.first_child, nodes.n_children, nodes.label
    weight, summand = weights.weight, weights.summand
    prepared = np.empty((1, prepared_size(nodes)), np.float32)
    scores = np.empty(nodes.max_children, np.float32)
    # What is queued are places of the waiting nodes, which come with their log-probabilities.
    queue_bound, queue_place = np.empty(FIRST_QUEUE, np.float32), np.empty(FIRST_QUEUE, np.int32)
    waiting_log, waiting_node = np.empty(FIRST_QUEUE, np.float32), np.empty(FIRST_QUEUE, np.int32)
    best_value, best_label = np.empty(k, np.float32), np.empty(k, np.int32)
    for row in range(len(indptr) - 1):
        prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], prepared)
        score_alone(nodes, link, np.int32(0), prepared, scores)
        found, size, n_waiting, n_opened = 0, 0, 0, 0
        if n_children[0] == 0:
            value = _value(weight[0], summand[0], _marginal(nodes, weights, scores[0]))
            found = keep_best(best_value, best_label, found, k, value, label[0])
        else:
            waiting_log[0], waiting_node[0], n_waiting = scores[0], 0, 1
            size = push(queue_bound, queue_place, size, np.float32(np.inf), 0)
        out_exact[row] = True
        while size > 0:
            bound, place = queue_bound[0], queue_place[0]
            if found == k and bound < -best_value[0]:
                break
            if n_opened >= budget and found == k:
                out_exact[row] = False
                break
            size = pop(queue_bound, queue_place, size)
            n_opened += 1
            top, node = waiting_log[place], waiting_node[place]
            first, n = first_child[node], n_children[node]
            if n_waiting + n > len(queue_bound):
                queue_bound, queue_place = with_room(queue_bound, queue_place, n)
                waiting_log, waiting_node = with_room(waiting_log, waiting_node, n)
            score_children(nodes, link, first, n, prepared, scores)
            # Two probabilities are enough to tell that most children are too low.
            near = _marginal(nodes, weights, top)
            far = _marginal(nodes, weights, top - _FAR)
            for c in range(n):
                child, log = first + c, top + scores[c]
                if n_children[child] < 0:
                    continue
                most = far if scores[c] <= -_FAR else near
                if found == k and _bound(weight[child], summand[child], most) < -best_value[0]:
                    continue
                probability = _marginal(nodes, weights, log)
                if n_children[child] == 0:
                    value = _value(weight[child], summand[child], probability)
                    found = keep_best(best_value, best_label, found, k, value, label[child])
                    continue
                promised = _bound(weight[child], summand[child], probability)
                if found < k or promised >= -best_value[0]:
                    waiting_log[n_waiting], waiting_node[n_waiting] = log, child
                    size = push(queue_bound, queue_place, size, promised, n_waiting)
                    n_waiting += 1
        for place in range(k):
            out_ids[row, place] = -1
            out_values[row, place] = -np.inf
        for place in range(found - 1, -1, -1):
            out_ids[row, place] = -best_label[0]
            out_values[row, place] = -best_value[0]
            found = pop(best_value, best_label, found)


@inlined
def _marginal(nodes, weights, log):
    """The probability of a label whose path has this log-probability, if no other expert knows it."""
    return mapped(weights.map, np.float32(weights.share * probability_of(nodes, log)))


@inlined
def _value(weight, summand, probability):
    return np.float32(np.float64(weight) * probability + summand)


@inlined
def _bound(weight, summand, probability):
    """A bit high, as logarithms are rounded."""
    return np.float32(np.float64(weight) * probability * HIGHER + summand)
