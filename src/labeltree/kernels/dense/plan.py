"""What a batch will touch: which examples visit which chunk of siblings, and use which feature.

Slow twin: the loops over nodes and features in :func:`labeltree.reference.training.train_batch`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import helper, inlined, kernel
from labeltree.kernels.random import random_at
from labeltree.kernels.trees.paths import mark_path


@inlined
def _positive_nodes(labels, chunks, stamp, node_stamp, out, start):
    """Sorted into out[start:]: all nodes on the paths of the labels, each once. Returns where they end."""
    end = start
    for label in labels:
        new_end = mark_path(chunks.parent, chunks.leaf_of_label[label], node_stamp, stamp, out, end)
        _reverse(out, end, new_end)  # parents have smaller numbers
        if end > start:
            _merge(out, start, end, new_end)
        end = new_end
    return end


@inlined
def _reverse(out, start, end):
    for place in range((end - start) // 2):
        out[start + place], out[end - 1 - place] = out[end - 1 - place], out[start + place]


@inlined
def _merge(out, start, middle, end):
    """Sort out[start:end], of which both parts are sorted and the second is short."""
    for new in range(middle, end):
        node = out[new]
        place = new
        while place > start and out[place - 1] > node:
            out[place] = out[place - 1]
            place -= 1
        out[place] = node


@inlined
def find_visits(examples, chunks, row, number, e, n_visits, n_positive, plan):
    """Append an example's visits (Algorithm 1: positive nodes and their siblings) and its positive nodes.

    With links that pick a label these are the positive nodes of that one (pick-one-label). ``number`` counts
    the examples through the training, so that stamps of nodes never need clearing. Returns both new numbers.
    """
    begin, end = examples.y_indptr[row], examples.y_indptr[row + 1]
    if chunks.picks_label:
        begin += random_at(chunks.seed, number, end - begin)
        end = begin + 1
    labels = examples.y_indices[begin:end]
    end = _positive_nodes(labels, chunks, number, plan.node_stamp, plan.positive, n_positive)
    place = n_positive
    chunk, last = 0, 0  # the root's own classifier; without labels the example is its negative
    while True:
        while chunk <= last:
            begin = place
            while place < end and plan.positive[place] < chunks.start[chunk + 1]:
                place += 1
            if not chunks.is_constant[chunk]:
                plan.visit_chunk[n_visits] = chunk
                plan.visit_example[n_visits] = e
                plan.visit_positive[n_visits, 0] = begin
                plan.visit_positive[n_visits, 1] = place
                n_visits += 1
            chunk += 1
        if place == end:
            break
        parent = chunks.parent[plan.positive[place]]
        chunk, last = chunks.first[parent], chunks.last[parent]
    return n_visits, end


@helper
def plan_visits(examples, chunks, rows, first, plan):
    """Fill the visits of the batch, grouped by chunk; ``first`` examples were seen before."""
    n_visits = 0
    n_positive = 0
    for e in range(len(rows)):
        plan.example_visit[e] = n_visits
        n_visits, n_positive = find_visits(
            examples, chunks, rows[e], first + e, e, n_visits, n_positive, plan
        )
    plan.example_visit[len(rows)] = n_visits
    plan.sizes[1] = n_visits
    plan.sizes[0] = _group(plan.visit_chunk, n_visits, plan.chunk_slot, plan.chunk, plan.chunk_visit)
    for t in range(n_visits):
        slot = plan.chunk_slot[plan.visit_chunk[t]]
        plan.by_chunk[plan.chunk_visit[slot]] = t
        plan.chunk_visit[slot] += 1
    _end_group(plan.sizes[0], plan.chunk_slot, plan.chunk, plan.chunk_visit)


@helper
def _group(keys, n_keys, slot_of_key, out_key, out_start):
    """Number the distinct keys in order of first use and find where each one's group starts."""
    n_groups = 0
    for t in range(n_keys):
        slot = slot_of_key[keys[t]]
        if slot < 0:
            slot = n_groups
            slot_of_key[keys[t]] = slot
            out_key[slot] = keys[t]
            out_start[slot + 1] = 0
            n_groups += 1
        out_start[slot + 1] += 1
    out_start[0] = 0
    for slot in range(n_groups):
        out_start[slot + 1] += out_start[slot]
    return n_groups


@helper
def _end_group(n_groups, slot_of_key, key, start):
    """After the groups were filled, each start has moved to its end: move them back, clear the slots."""
    for slot in range(n_groups, 0, -1):
        start[slot] = start[slot - 1]
    start[0] = 0
    for slot in range(n_groups):
        slot_of_key[key[slot]] = -1


@helper
def plan_features(examples, rows, plan):
    """Fill the touched features of the batch and their examples."""
    n_features = 0
    for e in range(len(rows)):
        for q in range(examples.x_indptr[rows[e]], examples.x_indptr[rows[e] + 1]):
            feature = examples.x_indices[q]
            slot = plan.feature_slot[feature]
            if slot < 0:
                slot = n_features
                plan.feature_slot[feature] = slot
                plan.feature[slot] = feature
                plan.feature_entry[slot + 1] = 0
                n_features += 1
            plan.feature_entry[slot + 1] += 1
    plan.feature_entry[0] = 0
    for slot in range(n_features):
        plan.feature_entry[slot + 1] += plan.feature_entry[slot]
    for e in range(len(rows)):
        for q in range(examples.x_indptr[rows[e]], examples.x_indptr[rows[e] + 1]):
            slot = plan.feature_slot[examples.x_indices[q]]
            entry = plan.feature_entry[slot]
            plan.entry_example[entry] = e
            plan.entry_value[entry] = examples.x_values[q]
            plan.feature_entry[slot] += 1
    _end_group(n_features, plan.feature_slot, plan.feature, plan.feature_entry)
    plan.sizes[2] = n_features


@kernel
def count_visits(examples, chunks, out_visits, out_positives, out_node_weight):
    """Per example the number of chunks and of positive nodes; per node the weight of its positives."""
    n_nodes = len(chunks.parent)
    node_stamp = np.full(n_nodes, -1, np.int64)
    positive = np.empty(n_nodes, np.int32)
    for row in range(len(examples.weight)):
        labels = examples.y_indices[examples.y_indptr[row] : examples.y_indptr[row + 1]]
        end = _positive_nodes(labels, chunks, row, node_stamp, positive, 0)
        visits = 1
        for place in range(end):
            node = positive[place]
            visits += chunks.last[node] - chunks.first[node] + 1
            out_node_weight[node] += examples.weight[row]
        out_visits[row] = visits
        out_positives[row] = end


@kernel
def weigh_picked(examples, chunks, out_node_weight):
    """Per node the weight of the examples that have it, if one label of each is picked at random.

    Not the sums of what :func:`labeltree.kernels.sparse.gathering.fill_shares` fills, which needs every
    node's rows in memory, and rounds to float32.
    """
    for row in range(len(examples.weight)):
        start, end = examples.y_indptr[row], examples.y_indptr[row + 1]
        for q in range(start, end):
            node = chunks.leaf_of_label[examples.y_indices[q]]
            while node >= 0:
                out_node_weight[node] += examples.weight[row] / (end - start)
                node = chunks.parent[node]
