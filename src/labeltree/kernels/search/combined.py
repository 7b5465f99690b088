"""Search in several trees at once, and with votes: the exact top k of a weighted average.

A label's evidence is the sum over trees of weight * probability, and its vote: the weighted sum of what
experts give that list all their labels. The algorithm is Fagin's, with queues that are never begun again.
Each tree has a queue of nodes; the probability of its best one, the *frontier*, bounds every label that the
tree has not given yet. The tree whose weighted frontier is the largest goes on. A label that it gives is
looked up in the other trees unless bounds say that it is none of the best k, and so is the label of the
largest vote, once that is larger than the frontiers. The scores of opened nodes are kept for all this.

Like :mod:`.exact` it is written once for every kind of node and every link. Slow twin:
:func:`labeltree.reference.search.combined`, and the best k of that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, Matrix, borrow
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.answer import (
    HIGHER,
    LABELS,
    VOTES,
    add_impossible,
    largest_vote,
    least_average,
    make_answer,
    offer,
    worst_of,
    write_answer,
)
from labeltree.kernels.search.exact import (
    in_tree,
    prepare_row,
    prepared_size,
    probability_of,
    score_alone,
)
from labeltree.kernels.search.heap import pop, push
from labeltree.kernels.search.known import (
    IS_FULL,
    NODES,
    at_open,
    climb,
    make_opened,
    make_queues,
    mark_label,
    open_node,
)

_NO_LABEL = -1
_NO_TREE = -1
_FAR = np.float32(3.0)  # most leaves' log-probabilities are more than this below their parent's
_GROUP = 64  # of siblings; a queue has of each only the best one that was not taken yet


class Trees(NamedTuple):
    """Trees of the same kind of nodes and link, and how they and the votes are combined."""

    tables: Matrix[np.int64]  # (n_trees * rows of one, 3)
    weights: NDArray[np.float64]  # (n_trees,)
    total: NDArray[np.float64]  # (1,) the sum of all weights, also of the votes
    map: NDArray[np.float64]  # of the average, see labeltree.experts.combination; or none


TREES_TABLE = Layout(Trees)
trees_at = TREES_TABLE.reader()


@inlined
def search_combined(
    nodes, trees, link, rows, lists, k, threshold, budget, out_ids, out_probabilities, out_exact
):
    """The k labels of the highest average of each row, best first, of equal ones the lower label.

    ``nodes`` are those of the first tree, ``rows`` are (indptr, indices, values), ``lists`` are the votes:
    (indptr, sorted label ids, votes above 0). Fills -1 and 0 where fewer labels reach the threshold. A row
    that has opened ``budget`` nodes per tree ends as soon as it has k labels; ``out_exact`` says where they
    are proven to be the best ones.
    """
    least = least_average(trees.map, threshold)
    n_trees, n_rows, n_votes, room = len(trees.weights), len(rows[0]) - 1, 0, 1
    for row in range(n_rows):
        n_votes = max(n_votes, lists[0][row + 1] - lists[0][row])
    opened = make_opened(room, nodes.max_children, n_votes)
    queues = make_queues(room, n_trees, prepared_size(nodes))
    answer = make_answer(k, n_votes)
    row, turn = 0, 0
    while row < n_rows:
        turn += 1
        known, ahead, best = borrow(opened), borrow(queues), borrow(answer)
        is_proven = _search_row(nodes, trees, link, rows, lists, row, turn, least, budget, known, ahead, best)
        if known.used[IS_FULL]:  # hardly any row needs more room: it is begun again
            room, turn = 4 * room, 0
            opened = make_opened(room, nodes.max_children, n_votes)
            queues = make_queues(room, n_trees, prepared_size(nodes))
            continue
        if is_proven and least == 0.0:
            add_impossible(best, nodes.leaf_of_label, nodes.n_children)
        out_exact[row] = is_proven
        write_answer(best, trees.map, threshold, out_ids[row], out_probabilities[row])
        row += 1


@inlined
def _search_row(nodes, trees, link, rows, lists, row, turn, least, budget, opened, queues, answer):
    """The best labels of a row that are not impossible; returns whether they are proven to be."""
    total, n_trees = trees.total[0], len(trees.weights)
    _begin_row(nodes, trees, link, rows, lists, row, opened, queues, answer)
    while not opened.used[IS_FULL]:
        outside, largest, tree = _sum_up(queues.frontier)
        vote, worst = largest_vote(answer), worst_of(answer, least)
        bound = _told(outside + vote, total)
        if bound < worst or bound == 0.0:
            return True
        is_late = opened.used[NODES] >= budget * n_trees
        if is_late and answer.size[LABELS] == len(answer.label):
            return False
        if answer.size[VOTES] > 0 and (vote > largest or _told(outside, total) < worst):
            label, tree = lists[1][answer.place[0]], _NO_TREE
            answer.size[VOTES] = pop(answer.vote, answer.place, answer.size[VOTES])
        else:
            here = nodes if n_trees == 1 else in_tree(nodes, _table(trees, tree))
            label = _go_on(
                here, trees, link, lists, row, turn, tree, vote, least, is_late, opened, queues, answer
            )
        if label == _NO_LABEL or not mark_label(opened, label, turn):
            continue
        vote = _vote_for(lists, row, label)
        if _ask_trees(nodes, trees, link, turn, label, tree, vote, worst_of(answer, least), opened, queues):
            offer(answer, _evidence(queues.own, vote), total, least, label)
    return False


@inlined
def _begin_row(nodes, trees, link, rows, lists, row, opened, queues, answer):
    """The queues with the trees' roots, and the heap of votes."""
    indptr, indices, values = rows
    opened.used[:] = 0
    for tree in range(len(trees.weights)):
        here, prepared = in_tree(nodes, _table(trees, tree)), queues.prepared[tree]
        prepare_row(here, indices, values, indptr[row], indptr[row + 1], prepared)
        score_alone(here, link, np.int32(0), prepared, opened.scores)
        log = opened.scores[0]
        queues.root[tree], queues.cut[tree], queues.low[tree] = log, -np.inf, -np.inf
        queues.size[tree] = push(queues.log[tree], queues.node[tree], 0, log, 0)
        queues.frontier[tree] = trees.weights[tree] * probability_of(here, log)
    n_votes = 0
    for place in range(lists[0][row], lists[0][row + 1]):
        n_votes = push(answer.vote, answer.place, n_votes, lists[2][place], place)
    answer.size[LABELS], answer.size[VOTES] = 0, n_votes


@inlined
def _go_on(nodes, trees, link, lists, row, turn, tree, vote, least, is_late, opened, queues, answer):
    """Take the best node from a tree's queue: a leaf's label, or _NO_LABEL after the children were queued.

    Where it is late, from the best child on to its best child, until there is a label. In a tree alone the
    labels of leaves are offered at once, as nobody but the votes is to be asked about them.
    """
    weight, is_alone = trees.weights[tree], len(trees.weights) == 1
    first_child, n_children = nodes.first_child, nodes.n_children
    queue_log, queue_node, scores = queues.log[tree], queues.node[tree], opened.scores
    log, node, weighted = queue_log[0], queue_node[0], queues.frontier[tree]
    size = pop(queue_log, queue_node, queues.size[tree])
    size = _queue_sibling(nodes, tree, node, turn, is_alone, size, opened, queues)
    while n_children[node] > 0:
        place = open_node(nodes, link, tree, node, log, turn, opened, queues)
        first, n = first_child[node], n_children[node]
        if opened.used[IS_FULL] or size + n // _GROUP + 2 > len(queue_log):
            opened.used[IS_FULL] = 1
            return _NO_LABEL
        if is_alone:
            _offer_leaves(
                nodes, trees, lists, row, turn, node, log, place, vote, least, opened, queues, answer
            )
        best = -1
        for begin in range(0, n, _GROUP):
            c = _next_child(nodes, first, begin, n, scores, place, -1, is_alone)
            if is_late and c >= 0 and (best < 0 or scores[place + c] > scores[place + best]):
                c, best = best, c
            if c >= 0:
                size = push(queue_log, queue_node, size, log + scores[place + c], first + c)
        if best < 0:
            break
        log, node = log + scores[place + best], first + best
        weighted = weight * probability_of(nodes, log)
        size = _queue_sibling(nodes, tree, node, turn, is_alone, size, opened, queues)
    queues.size[tree] = size
    queues.frontier[tree] = weight * probability_of(nodes, queue_log[0]) if size > 0 else 0.0
    if n_children[node] > 0:
        return _NO_LABEL
    queues.own[tree] = weighted
    return nodes.label[node]


@inlined
def _queue_sibling(nodes, tree, node, turn, is_alone, size, opened, queues):
    """Queue the best of a node's group of siblings after it; returns how many nodes the queue has."""
    above = nodes.parent[node]
    if above < 0:
        return size
    log, place = at_open(above, tree, turn, opened, queues)
    first, n, scores = nodes.first_child[above], nodes.n_children[above], opened.scores
    last = node - first
    c = _next_child(nodes, first, last - last % _GROUP, n, scores, place, last, is_alone)
    if c >= 0:
        size = push(queues.log[tree], queues.node[tree], size, log + scores[place + c], first + c)
    return size


@inlined
def _next_child(nodes, first, begin, n, scores, place, last, is_alone):
    """The most probable child of the group from ``begin`` on, or the next one after ``last``; -1 if none.

    None that is impossible or left out by a mask, and in a tree alone no leaf.
    """
    highest = scores[place + last] if last >= 0 else np.float32(np.inf)
    best, best_score = -1, np.float32(-np.inf)
    for c in range(begin, min(begin + _GROUP, n)):
        score = scores[place + c]
        if score <= best_score or score > highest or (score == highest and c <= last):
            continue
        if nodes.n_children[first + c] < (1 if is_alone else 0):
            continue
        best, best_score = c, score
    return best


@inlined
def _offer_leaves(nodes, trees, lists, row, turn, node, log, place, vote, least, opened, queues, answer):
    """Offer the labels of a node's leaves, in the only tree, with their votes."""
    first, n_children, scores, cut = nodes.first_child[node], nodes.n_children, opened.scores, queues.cut[0]
    # One probability is enough to tell that most leaves are too low; that of each would take longer.
    far = log - _FAR
    if far > cut:
        bound = trees.weights[0] * probability_of(nodes, far) + vote
        if _told(bound, trees.total[0]) < worst_of(answer, least):
            queues.cut[0] = cut = far
    for c in range(n_children[node]):
        leaf, child_log = first + c, log + scores[place + c]
        if child_log > cut and n_children[leaf] == 0:
            _offer_leaf(nodes, trees, lists, row, turn, leaf, child_log, least, opened, queues, answer)


@inlined
def _offer_leaf(nodes, trees, lists, row, turn, leaf, log, least, opened, queues, answer):
    """Offer the label of a leaf of the only tree, with its vote."""
    label, total = nodes.label[leaf], trees.total[0]
    vote = _vote_for(lists, row, label)
    if vote == 0.0 and log <= queues.low[0]:
        return
    evidence = trees.weights[0] * probability_of(nodes, log) + vote
    if _told(evidence, total) < worst_of(answer, least):
        if vote == 0.0:
            queues.low[0] = log
    elif vote == 0.0 or mark_label(opened, label, turn):
        offer(answer, evidence, total, least, label)


@inlined
def _ask_trees(nodes, trees, link, turn, label, tree, vote, worst, opened, queues):
    """Fill ``queues.own`` with what the other trees say of a label; False where it is too low anyway.

    First with what open nodes say that it is at most, in all trees: for most labels that is too low already,
    and then no node is opened for them.
    """
    total, n_trees, longest = trees.total[0], len(trees.weights), 0
    for t in range(n_trees):
        if t != tree:
            here = in_tree(nodes, _table(trees, t))
            depth, log = climb(here, t, label, turn, opened, queues)
            queues.own[t] = trees.weights[t] * probability_of(here, log)
            longest = max(longest, depth)
    for t in range(n_trees):
        if t == tree or longest <= 1:
            continue
        here = in_tree(nodes, _table(trees, t))
        depth, log = climb(here, t, label, turn, opened, queues)
        while depth > 1:
            if _told(_evidence(queues.own, vote), total) < worst:
                return False
            depth -= 1
            above, node = opened.path[depth], opened.path[depth - 1]
            place = open_node(here, link, t, above, log, turn, opened, queues)
            if opened.used[IS_FULL]:
                return False
            log += opened.scores[place + node - here.first_child[above]]
            queues.own[t] = trees.weights[t] * probability_of(here, log)
    return True


@inlined
def _evidence(own, vote):
    """What all trees and the votes say of a label."""
    evidence = 0.0
    for t in range(len(own)):
        evidence += own[t]
    return evidence + vote


@inlined
def _table(trees, tree):
    """That of one of the trees."""
    height = len(trees.tables) // len(trees.weights)
    return trees.tables[tree * height : (tree + 1) * height]


@inlined
def _sum_up(frontier):
    """The sum, the largest and its place."""
    outside, largest, tree = 0.0, -1.0, 0
    for t in range(len(frontier)):
        outside += frontier[t]
    for t in range(len(frontier)):
        if frontier[t] > largest:
            largest, tree = frontier[t], t
    return outside, largest, tree


@inlined
def _told(evidence, total):
    """The average of a bound in the 32 bits that averages are told in; a bit high."""
    return np.float32(evidence / total * HIGHER)


@inlined
def _vote_for(lists, row, label):
    """0 if there is none."""
    begin, end = lists[0][row], lists[0][row + 1]
    while begin < end:
        middle = (begin + end) >> 1
        if lists[1][middle] < label:
            begin = middle + 1
        else:
            end = middle
    if begin < lists[0][row + 1] and lists[1][begin] == label:
        return lists[2][begin]
    return 0.0
