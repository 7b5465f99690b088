"""Search for the labels of the highest a·P + b, with a weight a and a summand b of each label, and votes.

Labels that are improbable or worth too little are not wanted; or, where too few others are, the most probable
of them: these have values of their own, -1 / P, below all others.

As :mod:`.exact` it opens the best node first, but what a node promises is a bound of the labels below it.
That is what the best of them would be worth if it had the node's probability: a convex function of that,
which is known at some points, :data:`KNOTS`, and between them at most on a line. What most labels and nodes
are worth is not computed: bounds (:mod:`.ladder`) show that they are too low. Votes are what experts say that
list all their labels (:mod:`.combined`). Labels that have one are worth at least what their votes alone are:
that is a bound from the beginning. Those that the search has not met by its end are looked up, unless what is
known of their paths shows that they are not worth it.

Slow twin: :func:`labeltree.reference.search.weighted`, and the best k of that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import borrow
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.answer import HIGHER, mapped
from labeltree.kernels.search.exact import prepare_row, prepared_size, probability_of, score_alone
from labeltree.kernels.search.heap import keep_best, pop, push
from labeltree.kernels.search.known import (
    IS_FULL,
    NODES,
    at_open,
    climb,
    make_opened,
    make_queues,
    open_node,
)
from labeltree.kernels.search.ladder import (
    least_at,
    least_of_vote,
    make_ladder,
    most_at,
    most_with,
    rung_of,
)

KNOTS = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 1.0)
_LOWEST_VALUE = np.float32(-3e38)  # of labels that are wanted; others have -inf


class Weights(NamedTuple):
    """Of labels and nodes, and how what a tree says becomes a label's probability."""

    weight: NDArray[np.float32]  # (n_labels,) at least 0
    summand: NDArray[np.float32]  # (n_labels,)
    bounds: NDArray[np.float32]  # (n_nodes, len(KNOTS)) what the best label below is worth at probabilities
    share: float  # weight of the tree ...
    total: float  # ... of all experts' together; the average is that of them and the votes, by their weights
    map: NDArray[np.float64]  # of the average, see labeltree.experts.combination; or none
    lowest: float  # probability of labels that are wanted ...
    least: float  # ... and what they are worth more than; others ...
    is_filled: bool  # ... have the value -1 / P, which is at most ``least``; or they are not given


class Best(NamedTuple):
    """A row's best labels so far, as :func:`.heap.keep_best` makes it, and what is kept between rows."""

    value: NDArray[np.float32]  # (k,)
    label: NDArray[np.int32]
    vote: NDArray[np.float64]  # (n_labels,) of the row's labels; negative once they were met
    sure_value: NDArray[np.float32]  # (k,) a heap of what labels are worth at least ...
    sure_label: NDArray[np.int32]  # ... whose values are not known yet
    floor: NDArray[np.float32]  # (1,) there are k labels of at least this value
    size: NDArray[np.int64]  # (1,) labels


@inlined
def search_weighted(
    nodes, link, rows, lists, weights, k, budget, out_ids, out_values, out_probabilities, out_exact
):
    """The k labels of the highest values of each row, best first, of equal ones the lower.

    Fills -1 and -inf where there are fewer. A row that has opened ``budget`` nodes ends as soon as it has k
    labels; ``out_exact`` says where they are proven to be the best ones.
    """
    n_rows, n_votes, room = len(rows[0]) - 1, 0, 1
    for row in range(n_rows):
        n_votes = max(n_votes, lists[0][row + 1] - lists[0][row])
    opened = make_opened(room, nodes.max_children, n_votes)
    queues = make_queues(room, 1, prepared_size(nodes))
    answer = Best(
        np.empty(k, np.float32), np.empty(k, np.int32), np.zeros(len(weights.weight), np.float64),
        np.empty(k, np.float32), np.empty(k, np.int32), np.empty(1, np.float32), np.zeros(1, np.int64),
    )  # fmt: skip
    rungs, lists, weights = make_ladder(nodes, weights), borrow(lists), borrow(weights)
    row, turn = 0, 0
    while row < n_rows:
        turn += 1
        known, ahead, best, ladder = borrow(opened), borrow(queues), borrow(answer), borrow(rungs)
        is_proven = _search_row(
            nodes, link, rows, lists, row, turn, weights, ladder, budget, known, ahead, best
        )
        is_full = known.used[IS_FULL] != 0
        if not is_full:
            out = out_ids[row], out_values[row], out_probabilities[row]
            _write(nodes, turn, weights, known, ahead, best, *out)
        for place in range(lists[0][row], lists[0][row + 1]):
            best.vote[lists[1][place]] = 0.0
        if is_full:  # hardly any row needs more room: it is begun again
            room, turn = 4 * room, 0
            opened = make_opened(room, nodes.max_children, n_votes)
            queues = make_queues(room, 1, prepared_size(nodes))
            continue
        out_exact[row] = is_proven
        row += 1


@inlined
def _search_row(nodes, link, rows, lists, row, turn, weights, ladder, budget, opened, queues, best):
    """The best labels of a row; returns whether they are proven to be."""
    _begin_row(nodes, link, rows, lists, row, weights, ladder, opened, queues, best)
    queue_bound, queue_node = queues.log[0], queues.node[0]
    while queues.size[0] > 0:
        if queue_bound[0] < best.floor[0]:
            break
        if opened.used[NODES] >= budget and best.size[0] == len(best.label):
            return False
        node = queue_node[0]
        queues.size[0] = pop(queue_bound, queue_node, queues.size[0])
        _open(nodes, link, turn, node, weights, ladder, opened, queues, best)
        if opened.used[IS_FULL]:
            return False
    for place in range(lists[0][row], lists[0][row + 1]):
        label = lists[1][place]
        if best.vote[label] > 0.0 and nodes.n_children[nodes.leaf_of_label[label]] == 0:
            _look_up(nodes, link, turn, label, weights, ladder, opened, queues, best)
        if opened.used[IS_FULL]:
            return False
    return True


@inlined
def _begin_row(nodes, link, rows, lists, row, weights, ladder, opened, queues, best):
    """The root in the queue; and the k-th largest of what labels are worth by their votes alone."""
    indptr, indices, values = rows
    opened.used[:] = 0
    prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], queues.prepared[0])
    score_alone(nodes, link, np.int32(0), queues.prepared[0], opened.scores)
    queues.root[0] = opened.scores[0]
    best.size[0], queues.size[0], best.floor[0] = 0, 0, _LOWEST_VALUE
    n_sure = 0
    for place in range(lists[0][row], lists[0][row + 1]):
        label = lists[1][place]
        best.vote[label] = lists[2][place]
        if nodes.n_children[nodes.leaf_of_label[label]] == 0:
            probability = least_of_vote(ladder, lists[2][place] / weights.total)
            n_sure = _keep_sure(weights, label, probability, n_sure, best)
    _raise_floor(n_sure, best)
    if nodes.n_children[0] == 0:
        _offer(nodes, weights, np.int32(0), queues.root[0], best)
    else:
        queues.size[0] = push(queues.log[0], queues.node[0], 0, np.float32(np.inf), 0)


@inlined
def _keep_sure(weights, label, probability, n_sure, best):
    """Offer a label of at least this probability to those that are sure of a value; returns their number."""
    value = _value(weights, label, probability)
    if value > best.floor[0]:
        n_sure = keep_best(best.sure_value, best.sure_label, n_sure, len(best.label), value, label)
    return n_sure


@inlined
def _raise_floor(n_sure, best):
    """To the k-th of sure values, if there are so many: a bit lower, as sums are rounded."""
    if n_sure == len(best.label):
        lowest = -best.sure_value[0]
        best.floor[0] = max(best.floor[0], np.float32(lowest - 1e-6 * abs(lowest)))


@inlined
def _open(nodes, link, turn, node, weights, ladder, opened, queues, best):
    """A node: its leaves are offered, its other children queued."""
    log = _log_of(nodes, node, turn, opened, queues)
    place = open_node(nodes, link, 0, node, log, turn, opened, queues)
    first, n = nodes.first_child[node], nodes.n_children[node]
    if queues.size[0] + n > len(queues.log[0]):
        opened.used[IS_FULL] = 1
    if opened.used[IS_FULL]:
        return
    if best.size[0] < len(best.label) < n:
        _look_ahead(nodes, first, n, log, place, weights, ladder, opened, best)
    for c in range(n):
        child, child_log = first + c, log + opened.scores[place + c]
        if nodes.n_children[child] < 0:
            continue
        rung = rung_of(child_log)
        if nodes.n_children[child] == 0:
            if _may_be_best(weights, ladder, nodes.label[child], rung, best):
                _offer(nodes, weights, child, child_log, best)
            continue
        most = most_at(ladder, rung)
        if _bound(weights, child, most) >= best.floor[0]:
            if most >= weights.lowest:  # others wait as they are
                most = _marginal(weights, weights.share * probability_of(nodes, child_log)) * HIGHER
            promised = _bound(weights, child, most)
            if promised >= best.floor[0]:
                queues.size[0] = push(queues.log[0], queues.node[0], queues.size[0], promised, child)


@inlined
def _look_ahead(nodes, first, n, log, place, weights, ladder, opened, best):
    """Raise the floor by what a node's leaves are worth at least, before any of them is computed."""
    n_sure = 0
    for c in range(n):
        if nodes.n_children[first + c] == 0:
            probability = least_at(ladder, rung_of(log + opened.scores[place + c]))
            n_sure = _keep_sure(weights, nodes.label[first + c], probability, n_sure, best)
    _raise_floor(n_sure, best)


@inlined
def _may_be_best(weights, ladder, label, rung, best):
    """Whether the label of a leaf can be high enough; if not, its vote has had its turn."""
    vote = abs(best.vote[label])
    if vote == 0.0:
        return _value(weights, label, most_at(ladder, rung)) >= best.floor[0]
    if _value(weights, label, most_with(ladder, rung, vote / weights.total)) >= best.floor[0]:
        return True
    best.vote[label] = -vote
    return False


@inlined
def _log_of(nodes, node, turn, opened, queues):
    """The log-probability of a node whose parent is open."""
    above = nodes.parent[node]
    if above < 0:
        return queues.root[0]
    log, place = at_open(above, 0, turn, opened, queues)
    return log + opened.scores[place + node - nodes.first_child[above]]


@inlined
def _offer(nodes, weights, leaf, log, best):
    """The label of a leaf, with its vote."""
    label = nodes.label[leaf]
    vote = abs(best.vote[label])
    best.vote[label] = -vote
    value = _value(weights, label, _marginal(weights, weights.share * probability_of(nodes, log) + vote))
    if value >= _LOWEST_VALUE:
        best.size[0] = keep_best(best.value, best.label, best.size[0], len(best.label), value, label)
        if best.size[0] == len(best.label):
            best.floor[0] = max(best.floor[0], -best.value[0])


@inlined
def _look_up(nodes, link, turn, label, weights, ladder, opened, queues, best):
    """Offer a label that has a vote, unless its path is too improbable already."""
    depth, log = climb(nodes, 0, label, turn, opened, queues)
    while not opened.used[IS_FULL] and _may_be_best(weights, ladder, label, rung_of(log), best):
        if depth == 1:
            _offer(nodes, weights, opened.path[0], log, best)
            return
        evidence = weights.share * probability_of(nodes, log) + best.vote[label]
        if _value(weights, label, _marginal(weights, evidence) * HIGHER) < best.floor[0]:
            return
        depth -= 1
        above, node = opened.path[depth], opened.path[depth - 1]
        place = open_node(nodes, link, 0, above, log, turn, opened, queues)
        log += opened.scores[place + node - nodes.first_child[above]]


@inlined
def _write(nodes, turn, weights, opened, queues, best, out_ids, out_values, out_probabilities):
    """Best first; -1, -inf and 0 where there are no more."""
    out_ids[:], out_values[:], out_probabilities[:] = -1, -np.inf, 0.0
    found = best.size[0]
    for place in range(found - 1, -1, -1):
        label = -best.label[0]
        log = _log_of(nodes, nodes.leaf_of_label[label], turn, opened, queues)
        evidence = weights.share * probability_of(nodes, log) + abs(best.vote[label])
        out_ids[place], out_values[place] = label, -best.value[0]
        out_probabilities[place] = _marginal(weights, evidence)
        found = pop(best.value, best.label, found)


@inlined
def _marginal(weights, evidence):
    """The probability of a label of which all experts together say this."""
    return mapped(weights.map, np.float32(evidence / weights.total))


@inlined
def _value(weights, label, probability):
    value = np.float64(weights.weight[label]) * probability + weights.summand[label]
    return _told(weights, np.float32(value), probability)


@inlined
def _bound(weights, node, probability):
    """At most what labels below a node are worth that have at most this probability."""
    bounds, place = weights.bounds[node], 1
    while place < len(KNOTS) - 1 and probability > KNOTS[place]:
        place += 1
    low, high = np.float64(bounds[place - 1]), np.float64(bounds[place])
    part = (probability - KNOTS[place - 1]) / (KNOTS[place] - KNOTS[place - 1])
    value = np.float32(max(low, low + (high - low) * part) + 1e-6 * abs(high))
    return _told(weights, value, probability)


@inlined
def _told(weights, value, probability):
    """The value of what is that probable; -inf if it is not wanted. It never falls as both rise."""
    if probability >= weights.lowest and value > weights.least:
        return value
    return np.float32(-1.0 / probability) if weights.is_filled else np.float32(-np.inf)
