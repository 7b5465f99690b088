"""Search in several trees at once, and with votes: the exact top k of a weighted average.

A label's evidence is the sum over trees of weight * probability, and its vote: the weighted sum of what
experts give that list all their labels. The algorithm is Fagin's, with queues that are never begun again.
Each tree has a queue of nodes; the probability of its best one, the *frontier*, bounds every label that the
tree has not given yet. The tree whose weighted frontier is the largest goes on. A label that it gives is
looked up in the other trees unless bounds say that it is none of the best k, and so is the label of the
largest vote, once that is larger than the frontiers. The scores of opened nodes are kept for all this.

Like :mod:`.exact` it is written once for every kind of node and every link. Slow twin:
:func:`labeltree.reference.search.top_k` of :func:`labeltree.reference.search.combined`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, Matrix, borrow
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import (
    FIRST_QUEUE,
    in_tree,
    keep_best,
    pop,
    prepare_row,
    prepared_size,
    probability_of,
    push,
    score_alone,
    score_children,
)

_HIGHER = 1 + 1e-5  # bounds are a bit high, as sums and logarithms are rounded
_NO_LABEL = -1
_NO_TREE = -1
_FIRST_KEYS = 1 << 10
_FIRST_SCORES = 1 << 13
_FIRST_DEPTH = 32
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # spreads keys that are near each other


class Trees(NamedTuple):
    """Trees of the same kind of nodes and link, and how they and the votes are combined."""

    tables: Matrix[np.int64]  # (n_trees * rows of one, 3)
    weights: NDArray[np.float64]  # (n_trees,)
    total: NDArray[np.float64]  # (1,) the sum of all weights, also of the votes
    map: NDArray[np.float64]  # (3,) a, b, c of sigmoid(a log p - b log(1 - p) + c) of the average p; or none


TREES_TABLE = Layout(Trees)
trees_at = TREES_TABLE.reader()


class Opened(NamedTuple):
    """What is known of the present row: a hash table of opened nodes and of labels that had their turn.

    Entries of another turn than the present one are free, so that a row begins at once.
    """

    key: NDArray[np.int64]  # (capacity,) of a node and its tree, or of a label
    turn: NDArray[np.int64]
    log: NDArray[np.float32]  # the node's log-probability ...
    place: NDArray[np.int64]  # ... and where the scores of its children begin
    scores: NDArray[np.float32]
    path: NDArray[np.int32]  # of the label in hand, from its leaf up
    used: NDArray[np.int64]  # (4,) entries, scores, nodes; and whether there was too little room


class Queues(NamedTuple):
    """The trees: heaps of unopened nodes, and of leaves that were not given yet; and what goes with them."""

    log: Matrix[np.float32]  # (n_trees, capacity)
    node: Matrix[np.int32]
    size: NDArray[np.int64]  # (n_trees,)
    frontier: NDArray[np.float64]  # weighted probability of the best node
    cut: NDArray[np.float32]  # log-probabilities up to here have been found too low
    low: NDArray[np.float32]  # the same for leaves of a tree alone whose labels have no vote
    root: NDArray[np.float32]  # log-probability
    own: NDArray[np.float64]  # weighted probability of the label in hand
    prepared: NDArray[np.float32]  # (n_trees, 1, prepared_size)


class Answer(NamedTuple):
    """A row's best labels so far, a heap as :func:`.exact.keep_best` makes it; and a heap of its votes."""

    average: NDArray[np.float32]  # (k,)
    label: NDArray[np.int32]
    vote: NDArray[np.float64]  # (most votes of a row,)
    place: NDArray[np.int64]  # of the vote among those of all rows
    size: NDArray[np.int64]  # (2,) labels, votes


_ENTRIES, _SCORES, _NODES, _IS_FULL = range(4)  # of Opened.used
_LABELS, _VOTES = range(2)  # of Answer.size


@inlined
def search_combined(
    nodes, trees, link, rows, lists, k, threshold, budget, out_ids, out_probabilities, out_exact
):
    """The k labels of the highest average of each row, best first, of equal ones the lower label.

    ``nodes`` are those of the first tree, ``rows`` are (indptr, indices, values), ``lists`` the votes: (indptr,
    sorted label ids, votes above 0). Fills -1 and 0 where fewer labels reach the threshold. A row that has
    opened ``budget`` nodes per tree ends as soon as it has k labels; ``out_exact``: where they are proven to
    be the best ones.
    """
    least = _least_average(trees.map, threshold)
    n_trees, n_rows, n_votes, room = len(trees.weights), len(rows[0]) - 1, 0, 1
    for row in range(n_rows):
        n_votes = max(n_votes, lists[0][row + 1] - lists[0][row])
    opened = _make_opened(room, nodes.max_children, n_votes)
    queues = _make_queues(room, n_trees, prepared_size(nodes))
    answer = _make_answer(k, n_votes)
    row, turn = 0, 0
    while row < n_rows:
        turn += 1
        known, ahead, best = borrow(opened), borrow(queues), borrow(answer)
        is_proven = _search_row(
            nodes, trees, link, rows, lists, row, turn, least, budget, known, ahead, best
        )
        if known.used[_IS_FULL]:  # hardly any row needs more room: it is begun again
            room, turn = 4 * room, 0
            opened = _make_opened(room, nodes.max_children, n_votes)
            queues = _make_queues(room, n_trees, prepared_size(nodes))
            continue
        if is_proven and least == 0.0:
            _add_impossible(best, len(nodes.leaf_of_label))
        out_exact[row] = is_proven
        _write_answer(best, trees.map, threshold, out_ids[row], out_probabilities[row])
        row += 1


@inlined
def _search_row(nodes, trees, link, rows, lists, row, turn, least, budget, opened, queues, answer):
    """The best labels of a row that are not impossible; returns whether they are proven to be."""
    total, n_trees = trees.total[0], len(trees.weights)
    _begin_row(nodes, trees, link, rows, lists, row, opened, queues, answer)
    while not opened.used[_IS_FULL]:
        outside, largest, tree = _sum_up(queues.frontier)
        vote, worst = _largest_vote(answer), _worst(answer, least)
        bound = _told(outside + vote, total)
        if bound < worst or bound == 0.0:
            return True
        is_late = opened.used[_NODES] >= budget * n_trees
        if is_late and answer.size[_LABELS] == len(answer.label):
            return False
        if answer.size[_VOTES] > 0 and (vote > largest or _told(outside, total) < worst):
            label, tree = lists[1][answer.place[0]], _NO_TREE
            answer.size[_VOTES] = pop(answer.vote, answer.place, answer.size[_VOTES])
        else:
            here = in_tree(nodes, _table(trees, tree))
            label = _go_on(
                here, trees, link, lists, row, turn, tree, vote, least, is_late, opened, queues, answer
            )
        if label == _NO_LABEL or not _mark(opened, label, turn):
            continue
        vote = _vote_for(lists, row, label)
        if _ask_trees(nodes, trees, link, turn, label, tree, vote, _worst(answer, least), opened, queues):
            evidence = 0.0
            for t in range(n_trees):
                evidence += queues.own[t]
            _offer(answer, evidence + vote, total, least, label)
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
    answer.size[_LABELS], answer.size[_VOTES] = 0, n_votes


@inlined
def _go_on(nodes, trees, link, lists, row, turn, tree, vote, least, is_late, opened, queues, answer):
    """Take the best node from a tree's queue: a leaf's label, or _NO_LABEL after the children were queued.

    Where it is late, from the best child on to its best child, until there is a label. In a tree alone the
    label of a leaf is offered at once, as nobody but the votes is to be asked about it.
    """
    weight, total, others = trees.weights[tree], trees.total[0], vote
    for t in range(len(trees.weights)):
        others += queues.frontier[t] if t != tree else 0.0
    first_child, n_children = nodes.first_child, nodes.n_children
    queue_log, queue_node = queues.log[tree], queues.node[tree]
    scores, cut = opened.scores, queues.cut[tree]
    is_alone = len(trees.weights) == 1
    worst = _worst(answer, least)
    safe = np.float32(np.inf if worst > 0.0 else -np.inf)  # from here on they are not too low
    log, node = queue_log[0], queue_node[0]
    size = pop(queue_log, queue_node, queues.size[tree])
    while n_children[node] > 0:
        place = _open(nodes, link, tree, node, log, turn, opened, queues)
        first, n = first_child[node], n_children[node]
        if opened.used[_IS_FULL] or size + n > len(queue_log):
            opened.used[_IS_FULL] = 1
            return _NO_LABEL
        best = _best_child(scores, place, n) if is_late else -1
        for c in range(n):
            child_log = log + scores[place + c]
            if child_log <= cut or c == best:
                continue
            if is_alone and n_children[first + c] == 0:
                _offer_leaf(nodes, trees, lists, row, turn, first + c, child_log, least, opened, queues, answer)
                continue
            if child_log < safe:
                if _told(weight * probability_of(nodes, child_log) + others, total) < worst:
                    cut = child_log
                    continue
                safe = child_log
            size = push(queue_log, queue_node, size, child_log, first + c)
        if best < 0:
            break
        log, node = log + scores[place + best], first + best
    queues.size[tree], queues.cut[tree] = size, cut
    queues.frontier[tree] = weight * probability_of(nodes, queue_log[0]) if size > 0 else 0.0
    if n_children[node] > 0:
        return _NO_LABEL
    queues.own[tree] = weight * probability_of(nodes, log)
    return nodes.label[node]


@inlined
def _offer_leaf(nodes, trees, lists, row, turn, leaf, log, least, opened, queues, answer):
    """Offer the label of a leaf of the only tree, with its vote."""
    label, total = nodes.label[leaf], trees.total[0]
    vote = _vote_for(lists, row, label)
    if vote == 0.0 and log <= queues.low[0]:
        return
    evidence = trees.weights[0] * probability_of(nodes, log) + vote
    if _told(evidence, total) < _worst(answer, least):
        if vote == 0.0:
            queues.low[0] = log
    elif vote == 0.0 or _mark(opened, label, turn):
        _offer(answer, evidence, total, least, label)


@inlined
def _ask_trees(nodes, trees, link, turn, label, tree, vote, worst, opened, queues):
    """Fill ``queues.own`` with what the other trees say of a label; False where it is too low anyway."""
    total = trees.total[0]
    for t in range(len(trees.weights)):
        if t == tree:
            continue
        weight, others = trees.weights[t], vote
        for u in range(len(trees.weights)):  # what was asked before, and of others at most the frontier
            if u != t:
                others += queues.own[u] if u < t or u == tree else queues.frontier[u]
        if _told(others + queues.frontier[t], total) < worst:
            return False
        here = in_tree(nodes, _table(trees, t))
        depth, log = _climb(here, t, label, turn, opened, queues)
        while depth > 1:
            if _told(others + weight * probability_of(here, log), total) < worst:
                return False
            depth -= 1
            above, node = opened.path[depth], opened.path[depth - 1]
            place = _open(here, link, t, above, log, turn, opened, queues)
            if opened.used[_IS_FULL]:
                return False
            log += opened.scores[place + node - here.first_child[above]]
        queues.own[t] = weight * probability_of(here, log)
    return True


@inlined
def _climb(nodes, tree, label, turn, opened, queues):
    """Fill ``opened.path`` from a label's leaf up, to a node whose parent is open: its length, and the log.

    The log-probability is that of the last node, and of the leaf itself where that is the only one.
    """
    path, node, depth = opened.path, nodes.leaf_of_label[label], 0
    while True:
        if depth == len(path):
            opened.used[_IS_FULL] = 1
            return 0, np.float32(0.0)
        path[depth] = node
        depth += 1
        above = nodes.parent[node]
        if above < 0:
            return depth, queues.root[tree]
        slot = _slot(opened, _key(above, tree, queues), turn)
        if opened.turn[slot] == turn:
            place = opened.place[slot] + node - nodes.first_child[above]
            return depth, opened.log[slot] + opened.scores[place]
        node = above


@inlined
def _open(nodes, link, tree, node, log, turn, opened, queues):
    """Where the scores of a node's children begin; they are computed unless they are known."""
    key = _key(node, tree, queues)
    slot = _slot(opened, key, turn)
    if opened.turn[slot] == turn:
        return opened.place[slot]
    first, n, place = nodes.first_child[node], nodes.n_children[node], opened.used[_SCORES]
    if place + n > len(opened.scores) or not _has_room(opened):
        opened.used[_IS_FULL] = 1
        return place
    opened.key[slot], opened.turn[slot] = key, turn
    opened.log[slot], opened.place[slot] = log, place
    opened.used[_ENTRIES] += 1
    opened.used[_SCORES] += n
    opened.used[_NODES] += 1
    score_children(nodes, link, first, n, queues.prepared[tree], opened.scores[place : place + n])
    return place


@inlined
def _mark(opened, label, turn):
    """Whether a label's turn has come for the first time."""
    key = -1 - np.int64(label)
    slot = _slot(opened, key, turn)
    if opened.turn[slot] == turn:
        return False
    if not _has_room(opened):
        opened.used[_IS_FULL] = 1
        return False
    opened.key[slot], opened.turn[slot] = key, turn
    opened.used[_ENTRIES] += 1
    return True


@inlined
def _has_room(opened):
    return 2 * opened.used[_ENTRIES] < len(opened.key)


@inlined
def _key(node, tree, queues):
    return np.int64(node) * len(queues.size) + tree


@inlined
def _slot(opened, key, turn):
    """Where the key is, or the free entry where it belongs."""
    mask = len(opened.key) - 1
    slot = ((key * _MIX) >> 32) & mask
    while opened.turn[slot] == turn and opened.key[slot] != key:
        slot = (slot + 1) & mask
    return slot


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
def _best_child(scores, place, n):
    best = 0
    for c in range(1, n):
        if scores[place + c] > scores[place + best]:
            best = c
    return best


@inlined
def _told(evidence, total):
    """The average of a bound in the 32 bits that averages are told in; a bit high."""
    return np.float32(evidence / total * _HIGHER)


@inlined
def _largest_vote(answer):
    return answer.vote[0] if answer.size[_VOTES] > 0 else 0.0


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


@inlined
def _worst(answer, least):
    """The average that a label must reach."""
    return -answer.average[0] if answer.size[_LABELS] == len(answer.label) else least


@inlined
def _offer(answer, evidence, total, least, label):
    """To the best labels; impossible ones come later."""
    average = np.float32(evidence / total)
    if average > 0.0 and average >= least:
        found, k = answer.size[_LABELS], len(answer.label)
        answer.size[_LABELS] = keep_best(answer.average, answer.label, found, k, average, label)


@inlined
def _add_impossible(answer, n_labels):
    """Where there are places left: all labels of probability 0, from the lowest on."""
    n_found, k = answer.size[_LABELS], len(answer.label)
    if n_found == k:
        return
    taken = np.sort(-answer.label[:n_found])
    found, place = n_found, 0
    for label in range(n_labels):
        if place < n_found and taken[place] == label:
            place += 1
        elif found < k:
            found = keep_best(answer.average, answer.label, found, k, np.float32(0.0), label)
        else:
            break
    answer.size[_LABELS] = found


@inlined
def _write_answer(answer, map, threshold, out_ids, out_probabilities):
    """Best first; -1 and 0 where there are no more labels of at least the threshold."""
    out_ids[:], out_probabilities[:] = -1, 0.0
    found = answer.size[_LABELS]
    for place in range(found - 1, -1, -1):
        probability = _mapped(map, -answer.average[0])
        if probability >= threshold:
            out_ids[place], out_probabilities[place] = -answer.label[0], probability
        found = pop(answer.average, answer.label, found)


@inlined
def _mapped(map, average):
    """The probability of a label whose evidence has this average."""
    if len(map) == 0:
        return np.float32(average)
    p = np.float64(average)
    log_odds = map[0] * math.log(p) - map[1] * math.log1p(-p) + map[2]
    return np.float32(1.0 / (1.0 + math.exp(-log_odds)))


@inlined
def _least_average(map, threshold):
    """No label of a lower average reaches the threshold; a bit low. By halving: the map has no inverse."""
    if threshold <= 0.0:
        return np.float32(0.0)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _mapped(map, middle) < threshold:
            low = middle
        else:
            high = middle
    return np.float32(low / _HIGHER)


@inlined
def _make_opened(room, max_children, n_votes):
    capacity = room * _FIRST_KEYS
    while capacity < 4 * n_votes:
        capacity *= 2
    return Opened(
        np.empty(capacity, np.int64), np.zeros(capacity, np.int64), np.empty(capacity, np.float32),
        np.empty(capacity, np.int64), np.empty(room * (_FIRST_SCORES + 4 * max_children), np.float32),
        np.empty(room * _FIRST_DEPTH, np.int32), np.zeros(4, np.int64),
    )  # fmt: skip


@inlined
def _make_queues(room, n_trees, n_prepared):
    shape = (n_trees, room * FIRST_QUEUE)
    return Queues(
        np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(n_trees, np.int64),
        np.empty(n_trees, np.float64), np.empty(n_trees, np.float32), np.empty(n_trees, np.float32),
        np.empty(n_trees, np.float32), np.empty(n_trees, np.float64), np.empty((n_trees, 1, n_prepared), np.float32),
    )  # fmt: skip


@inlined
def _make_answer(k, n_votes):
    return Answer(
        np.empty(k, np.float32), np.empty(k, np.int32), np.empty(n_votes, np.float64),
        np.empty(n_votes, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
