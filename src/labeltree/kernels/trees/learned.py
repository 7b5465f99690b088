"""Where the labels of a learned tree go: how nodes send their examples, and who gets which child."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.arithmetic import score_rows
from labeltree.kernels.dense.parts import embed_row
from labeltree.kernels.jit import helper, inlined, kernel
from labeltree.kernels.links import weigh_children

_ROUNDING = 1e-9  # a mean probability that differs by less is the same


@kernel
def measure_children(
    examples, rows, first_child, n_children, node_of_label, parameters, link, hidden,
    out_probabilities, out_count,
):  # fmt: skip
    """For each label the sum over its rows of the probabilities of its node's children, and their weight.

    Labels whose node is a leaf are left out. ``hidden`` is a buffer for one row's vector.
    """
    scores = np.empty(out_probabilities.shape[1], np.float32)
    for row in rows:
        weight = examples.weight[row]
        if weight == 0.0:
            continue
        embed_row(row, examples, parameters.embedding, hidden, 0)
        for q in range(examples.y_indptr[row], examples.y_indptr[row + 1]):
            label = examples.y_indices[q]
            node = node_of_label[label]
            n = n_children[node]
            if n == 0:
                continue
            first = first_child[node]
            score_rows(parameters.weights, first, n, hidden, 0, scores)
            for c in range(n):
                scores[c] += parameters.bias[first + c]
            total = weigh_children(link, scores, n)
            for c in range(n):
                out_probabilities[label, c] += weight * (scores[c] / total)
            out_count[label] += weight


@kernel
def fill_children(probabilities, count, first_child, n_children, node_of_label, capacity):
    """Give each label a child of its node: those of the largest derivatives of the objective first.

    A label without rows has no preference: it takes what is left. Returns each label's new node.
    """
    n_labels = len(node_of_label)
    new_node = node_of_label.copy()
    order = np.argsort(node_of_label, kind="mergesort")
    begin = 0
    while begin < n_labels:
        node = node_of_label[order[begin]]
        end = begin
        while end < n_labels and node_of_label[order[end]] == node:
            end += 1
        labels = order[begin:end]
        begin = end
        n = n_children[node]
        if n == 0:
            continue
        gains = _gains(probabilities, count, labels, n)
        free = capacity[first_child[node] : first_child[node] + n].copy()
        is_placed = np.zeros(len(labels), np.bool_)
        for place in np.argsort(-gains.ravel(), kind="mergesort"):
            i, c = place // n, place % n
            if not is_placed[i] and free[c] > 0:
                is_placed[i] = True
                free[c] -= 1
                new_node[labels[i]] = first_child[node] + c
    return new_node


@inlined
def _sign(difference):
    if abs(difference) < _ROUNDING:
        return 0.0
    return 1.0 if difference > 0.0 else -1.0


@helper
def _gains(probabilities, count, labels, n):
    """(labels, children) the derivative of the objective by log p_ij, but for a factor that all share.

    -inf for labels without rows: they come last.
    """
    gains = np.full((len(labels), n), -np.inf)
    total = 0.0
    for i in range(len(labels)):
        total += count[labels[i]]
    if total == 0.0:
        return gains
    for c in range(n):
        mean = 0.0
        for i in range(len(labels)):
            mean += probabilities[labels[i], c]
        mean /= total
        balance = 0.0
        for i in range(len(labels)):
            if count[labels[i]] > 0.0:
                balance += count[labels[i]] * _sign(probabilities[labels[i], c] / count[labels[i]] - mean)
        for i in range(len(labels)):
            if count[labels[i]] > 0.0:
                probability = probabilities[labels[i], c] / count[labels[i]]
                share = count[labels[i]] / total
                gains[i, c] = share * probability * (_sign(probability - mean) - balance / total)
    return gains
