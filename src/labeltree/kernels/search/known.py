"""What a search of several trees knows of a row: the nodes that are open, and those that wait in queues."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.kernels.addresses import Matrix
from labeltree.kernels.jit import inlined
from labeltree.kernels.search.exact import FIRST_QUEUE, score_children

_FIRST_KEYS = 1 << 10
_FIRST_SCORES = 1 << 13
_FIRST_DEPTH = 32
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # spreads keys that are near each other
_ENTRIES, _SCORES, NODES, IS_FULL = range(4)  # of Opened.used


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
    """The trees: heaps of unopened nodes, and of leaves that were not given yet; and what goes with them.

    Of siblings a heap has only the best ones that were not taken yet, and so it stays small.
    """

    log: Matrix[np.float32]  # (n_trees, capacity)
    node: Matrix[np.int32]
    size: NDArray[np.int64]  # (n_trees,)
    frontier: NDArray[np.float64]  # weighted probability of the best node
    cut: NDArray[np.float32]  # leaves up to this log-probability have been found too low, in a tree alone
    low: NDArray[np.float32]  # the same for those whose labels have no vote
    root: NDArray[np.float32]  # log-probability
    own: NDArray[np.float64]  # weighted probability of the label in hand
    prepared: NDArray[np.float32]  # (n_trees, 1, prepared_size)


@inlined
def make_opened(room, max_children, n_votes):
    capacity = room * _FIRST_KEYS
    while capacity < 4 * n_votes:
        capacity *= 2
    return Opened(
        np.empty(capacity, np.int64), np.zeros(capacity, np.int64), np.empty(capacity, np.float32),
        np.empty(capacity, np.int64), np.empty(room * (_FIRST_SCORES + 4 * max_children), np.float32),
        np.empty(room * _FIRST_DEPTH, np.int32), np.zeros(4, np.int64),
    )  # fmt: skip


@inlined
def make_queues(room, n_trees, n_prepared):
    shape = (n_trees, room * FIRST_QUEUE)
    return Queues(
        np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(n_trees, np.int64),
        np.empty(n_trees, np.float64), np.empty(n_trees, np.float32), np.empty(n_trees, np.float32),
        np.empty(n_trees, np.float32), np.empty(n_trees, np.float64),
        np.empty((n_trees, 1, n_prepared), np.float32),
    )  # fmt: skip


@inlined
def open_node(nodes, link, tree, node, log, turn, opened, queues):
    """Where the scores of a node's children begin; they are computed unless they are known."""
    key = _key(node, tree, queues)
    slot = _slot(opened, key, turn)
    if opened.turn[slot] == turn:
        return opened.place[slot]
    first, n, place = nodes.first_child[node], nodes.n_children[node], opened.used[_SCORES]
    if place + n > len(opened.scores) or not _has_room(opened):
        opened.used[IS_FULL] = 1
        return place
    opened.key[slot], opened.turn[slot] = key, turn
    opened.log[slot], opened.place[slot] = log, place
    opened.used[_ENTRIES] += 1
    opened.used[_SCORES] += n
    opened.used[NODES] += 1
    score_children(nodes, link, first, n, queues.prepared[tree], opened.scores[place : place + n])
    return place


@inlined
def at_open(node, tree, turn, opened, queues):
    """The log-probability of a node that is open, and where the scores of its children begin."""
    slot = _slot(opened, _key(node, tree, queues), turn)
    return opened.log[slot], opened.place[slot]


@inlined
def mark_label(opened, label, turn):
    """Whether a label's turn has come for the first time."""
    key = -1 - np.int64(label)
    slot = _slot(opened, key, turn)
    if opened.turn[slot] == turn:
        return False
    if not _has_room(opened):
        opened.used[IS_FULL] = 1
        return False
    opened.key[slot], opened.turn[slot] = key, turn
    opened.used[_ENTRIES] += 1
    return True


@inlined
def climb(nodes, tree, label, turn, opened, queues):
    """Fill ``opened.path`` from a label's leaf up, to a node whose parent is open: its length, and the log.

    The log-probability is that of the last node, and of the leaf itself where that is the only one.
    """
    path, node, depth = opened.path, nodes.leaf_of_label[label], 0
    while True:
        if depth == len(path):
            opened.used[IS_FULL] = 1
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
