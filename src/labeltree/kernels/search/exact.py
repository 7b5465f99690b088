"""Search in a label tree: exact top k, all labels above a threshold, marginals of given labels.

One search for every kind of node and every link, inlined into their kernels (:mod:`.factory`): how nodes are
scored, and what that means, is resolved by the types of ``nodes`` and ``link`` when compiled.
Slow twins: :mod:`labeltree.reference.search`.
"""

from __future__ import annotations

import math

import numpy as np

from labeltree.kernels.addresses import frozen
from labeltree.kernels.check import CANONICAL, check_row
from labeltree.kernels.jit import generic, inlined
from labeltree.kernels.links import apply_link, apply_link_alone, needs_siblings
from labeltree.kernels.search.heap import keep_best, pop, push, with_room
from labeltree.kernels.text.rows import NORM_NONE, normalize_row

FIRST_QUEUE = 512
_LARGEST = np.float32(1e30)  # of w·x: with any finite bias it stays finite
_KEPT_PARENTS = 32  # of siblings' scores, for the labels of a row ...
_MANY_SIBLINGS = 4096  # ... unless they are larger


@generic
def in_tree(nodes, table):
    """The nodes of another tree of the same kind, for the same rows."""


@generic
def prepared_size(nodes):
    """How many 32-bit numbers :func:`prepare_row` fills; what they mean is the nodes' own affair."""


@generic
def prepare_row(nodes, indices, values, start, end, out):
    """What the scores of a row need, computed once per row."""


@generic
def score_nodes(nodes, first, n, prepared, out):
    """``out[:n]`` = the scores of the nodes ``first .. first + n - 1``."""


@generic
def scores_all_siblings(nodes):
    """Whether the scores of all siblings take no longer than that of one."""


@generic
def probability_of(nodes, log_probability):
    """The probability of a label whose path has this log-probability; it never falls as that rises."""


@generic
def log_of_least(nodes, threshold):
    """Paths below this log-probability cannot reach the threshold; a bit low, as logarithms are rounded."""


@inlined
def finish_scores(scale, bias, first, n, out):
    """Sums of products with bytes become the scores of the nodes ``first ...``; none is NaN.

    A product that is infinite, of a huge scale, less another one would be.
    """
    for c in range(n):
        out[c] = min(max(out[c] * scale[first + c], -_LARGEST), _LARGEST) + bias[first + c]


@inlined
def score_children(nodes, link, first, n, prepared, out):
    """``out[:n]`` = log P(child | parent) of all n children of a node."""
    score_nodes(nodes, first, n, prepared, out)
    apply_link(link, out, n)


@inlined
def score_alone(nodes, link, node, prepared, out):
    """``out[0]`` = log P(node | parent) by its own score: of the root, or if the link needs no siblings."""
    score_nodes(nodes, node, np.int32(1), prepared, out)
    apply_link_alone(link, out)


@inlined
def map_logs(map, log_probability, log_against):
    """The log-odds a log p - b log(1 - p) + c: with a and b above 0 they rise with p, from -inf to inf."""
    return map[0] * log_probability - map[1] * log_against + map[2]


@inlined
def from_odds(log_odds):
    """The probability, in the 32 bits that it is told in."""
    return np.float32(1.0 / (1.0 + math.exp(-log_odds)))


@inlined
def best_inner(n_children, first, n, scores):
    """Which of n siblings is the most probable one that has children; -1 if none has."""
    best = -1
    for c in range(n):
        if n_children[first + c] > 0 and (best < 0 or scores[c] > scores[best]):
            best = c
    return best


@inlined
def search_topk(
    nodes, link, indptr, indices, values, k, threshold, budget, out_ids, out_probabilities, out_exact
):
    """The k most probable labels of each row (Algorithm 2: uniform-cost search), best first.

    The queue holds inner nodes only: a leaf competes at once for the k places, and the search ends when no
    inner node is as probable as the k-th label. Fills -1 and 0 where fewer labels reach the threshold. A row
    that has opened ``budget`` nodes ends as soon as it has k labels, and until then goes from each node
    straight on to its best child; ``out_exact`` says where the labels are proven to be the best ones.

    A node whose number of children is negative is left out, with all labels below it: a mask is no more than
    another such array (:mod:`labeltree.experts.masks`).
    """
    first_child, n_children, label = nodes.first_child, nodes.n_children, nodes.label
    least_log = log_of_least(nodes, threshold)
    prepared = np.empty((1, prepared_size(nodes)), np.float32)
    scores = np.empty(nodes.max_children, np.float32)
    # Large enough for nearly every row; memory for all nodes would take longer to get than a search.
    queue_log, queue_node = np.empty(FIRST_QUEUE, np.float32), np.empty(FIRST_QUEUE, np.int32)
    best_log, best_label = np.empty(k, np.float32), np.empty(k, np.int32)
    for row in range(len(indptr) - 1):
        prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], prepared)
        score_alone(nodes, link, np.int32(0), prepared, scores)
        found, size, n_opened = 0, 0, 0
        if n_children[0] == 0:
            found = keep_best(best_log, best_label, found, k, scores[0], label[0])
        else:
            size = push(queue_log, queue_node, size, scores[0], 0)
        out_exact[row] = True
        while size > 0:
            top, node = queue_log[0], queue_node[0]
            if top < least_log or (found == k and top < -best_log[0]):
                break
            if n_opened >= budget and found == k:
                out_exact[row] = False
                break
            size = pop(queue_log, queue_node, size)
            while node >= 0:
                n_opened += 1
                first, n = first_child[node], n_children[node]
                if size + n > len(queue_log):
                    queue_log, queue_node = with_room(queue_log, queue_node, n)
                score_children(nodes, link, first, n, prepared, scores)
                best = best_inner(n_children, first, n, scores) if n_opened > budget else -1
                for c in range(n):
                    log_probability = top + scores[c]
                    if log_probability < least_log or (found == k and log_probability < -best_log[0]):
                        continue
                    if n_children[first + c] == 0:
                        found = keep_best(best_log, best_label, found, k, log_probability, label[first + c])
                    elif c != best and n_children[first + c] > 0:
                        size = push(queue_log, queue_node, size, log_probability, first + c)
                node = -1
                if best >= 0:
                    top, node = top + scores[best], first + best
        for place in range(k):
            out_ids[row, place] = -1
            out_probabilities[row, place] = 0.0
        for place in range(found - 1, -1, -1):
            probability = probability_of(nodes, -best_log[0])
            if probability >= threshold:
                out_ids[row, place] = -best_label[0]
                out_probabilities[row, place] = probability
            found = pop(best_log, best_label, found)


@inlined
def search_row(
    nodes, link, indices, values, n, norm, k, threshold, budget, out_ids, out_probabilities, out_exact
):
    """:func:`search_topk` of one row, the first ``n`` entries, which are checked and normalised first.

    Returns what is wrong with them (nothing is found then), or CANONICAL.
    """
    code, _ = check_row(indices, values, 0, n, nodes.n_features)
    if code == CANONICAL:
        if norm != NORM_NONE:
            normalize_row(values, 0, n, norm)
        search_prepared(
            nodes, link, indices, values, n, k, threshold, budget, out_ids, out_probabilities, out_exact
        )
    return code


@inlined
def search_prepared(
    nodes, link, indices, values, n, k, threshold, budget, out_ids, out_probabilities, out_exact
):
    """:func:`search_topk` of the first ``n`` entries; False, and nothing is found, if n is negative."""
    if n >= 0:
        indptr = np.zeros(2, np.int64)
        indptr[1] = n
        rows = frozen(indptr), frozen(indices), frozen(values)
        search_topk(nodes, link, *rows, k, threshold, budget, out_ids, out_probabilities, out_exact)
    return n >= 0


@inlined
def log_of_probability(threshold):
    """log(threshold), a bit low; -inf where float32 has too few digits to tell."""
    if threshold > 1e-37:
        return np.float32(math.log(threshold) - 1e-5)
    return np.float32(-np.inf)


@inlined
def search_above(
    nodes, link, indptr, indices, values, row, threshold, out_indptr, out_ids, out_probabilities
):
    """All labels at least as probable as the threshold, from ``row`` on, in no order within a row.

    Returns the first row whose labels no longer fit into the out arrays (the number of rows if all did).
    """
    first_child, n_children, label = nodes.first_child, nodes.n_children, nodes.label
    least_log = log_of_least(nodes, threshold)
    prepared = np.empty((1, prepared_size(nodes)), np.float32)
    scores = np.empty(nodes.max_children, np.float32)
    stack_log = np.empty(len(nodes.parent), np.float32)
    stack_node = np.empty(len(nodes.parent), np.int32)
    while row < len(indptr) - 1:
        prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], prepared)
        score_alone(nodes, link, np.int32(0), prepared, scores)
        end = out_indptr[row]
        stack_log[0], stack_node[0] = scores[0], 0
        size = 1 if scores[0] >= least_log else 0
        while size > 0:
            size -= 1
            log_probability, node = stack_log[size], stack_node[size]
            if n_children[node] == 0:
                probability = probability_of(nodes, log_probability)
                if probability < threshold:
                    continue
                if end == len(out_ids):
                    return row
                out_ids[end] = label[node]
                out_probabilities[end] = probability
                end += 1
                continue
            first, n = first_child[node], n_children[node]
            score_children(nodes, link, first, n, prepared, scores)
            for c in range(n):
                if log_probability + scores[c] >= least_log and n_children[first + c] >= 0:
                    stack_log[size] = log_probability + scores[c]
                    stack_node[size] = first + c
                    size += 1
        row += 1
        out_indptr[row] = end
    return row


@inlined
def score_labels(nodes, link, indptr, indices, values, label_indptr, labels, out_probabilities):
    """The marginal probability of each label given for each row; 0 for a label of -1."""
    parent = nodes.parent
    prepared = np.empty((1, prepared_size(nodes)), np.float32)
    n_kept = 1 if nodes.max_children > _MANY_SIBLINGS else _KEPT_PARENTS
    kept_parent = np.empty(n_kept, np.int64)
    kept_scores = np.empty((n_kept + 1, nodes.max_children), np.float32)  # the last for a node alone
    path = np.empty(len(parent), np.int32)
    for row in range(len(indptr) - 1):
        prepare_row(nodes, indices, values, indptr[row], indptr[row + 1], prepared)
        kept_parent[:] = -1
        for q in range(label_indptr[row], label_indptr[row + 1]):
            if labels[q] < 0:
                out_probabilities[q] = 0.0
                continue
            depth = 0
            node = nodes.leaf_of_label[labels[q]]
            while node >= 0:
                path[depth] = node
                depth += 1
                node = parent[node]
            log_probability = np.float32(0.0)
            for step in range(depth - 1, -1, -1):  # from the root, to round as the search does
                log_probability += _score_node(nodes, link, path[step], prepared, kept_parent, kept_scores)
            out_probabilities[q] = probability_of(nodes, log_probability)


@inlined
def _score_node(nodes, link, node, prepared, kept_parent, kept_scores):
    """log P(node | parent), from the scores of all its siblings where that is needed or costs no more.

    They are kept for the row's other labels, those of one parent for each remainder of parents' numbers.
    """
    above = nodes.parent[node]
    if above < 0 or not (needs_siblings(link) or scores_all_siblings(nodes)):
        score_alone(nodes, link, node, prepared, kept_scores[-1])
        return kept_scores[-1, 0]
    first, slot = nodes.first_child[above], above % len(kept_parent)
    if kept_parent[slot] != above:
        kept_parent[slot] = above
        score_children(nodes, link, first, nodes.n_children[above], prepared, kept_scores[slot])
    return kept_scores[slot, node - first]
