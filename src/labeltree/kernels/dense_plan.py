"""What a batch will touch: which examples visit which block of siblings, and use which feature.

Slow twin: the loops over nodes and features in :func:`labeltree.reference.training.train_batch`.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.link import SOFTMAX
from labeltree.kernels.random import random_at


@inlined
def _positive_nodes(labels, blocks, stamp, node_stamp, out, start):
    """Sorted into out[start:]: all nodes on the paths of the labels, each once. Returns where they end."""
    end = start
    for label in labels:
        node = blocks.leaf_of_label[label]
        while node >= 0 and node_stamp[node] != stamp:
            node_stamp[node] = stamp
            place = end
            end += 1
            while place > start and out[place - 1] > node:
                out[place] = out[place - 1]
                place -= 1
            out[place] = node
            node = blocks.parent[node]
    return end


@kernel
def plan_visits(examples, blocks, rows, first, plan):
    """Fill the visits of the batch (Algorithm 1: positive nodes and their siblings), grouped by block.

    With a softmax these are the positive nodes of one label of each example (pick-one-label). ``first``
    numbers the examples through the training, so that stamps of nodes never need clearing.
    """
    n_positive = 0
    n_visits = 0
    for e in range(len(rows)):
        plan.example_visit[e] = n_visits
        begin, end = examples.y_indptr[rows[e]], examples.y_indptr[rows[e] + 1]
        if blocks.link == SOFTMAX:
            begin += random_at(blocks.seed, first + e, end - begin)
            end = begin + 1
        labels = examples.y_indices[begin:end]
        end = _positive_nodes(labels, blocks, first + e, plan.node_stamp, plan.positive, n_positive)
        place = n_positive
        block, last = 0, 0  # the root's own classifier; without labels the example is its negative
        while True:
            while block <= last:
                begin = place
                while place < end and plan.positive[place] < blocks.start[block + 1]:
                    place += 1
                if not blocks.is_constant[block]:
                    plan.visit_block[n_visits] = block
                    plan.visit_example[n_visits] = e
                    plan.visit_positive[n_visits, 0] = begin
                    plan.visit_positive[n_visits, 1] = place
                    n_visits += 1
                block += 1
            if place == end:
                break
            parent = blocks.parent[plan.positive[place]]
            block, last = blocks.first[parent], blocks.last[parent]
        n_positive = end
    plan.example_visit[len(rows)] = n_visits
    plan.sizes[1] = n_visits
    if len(rows) == 1:  # every visit is at a block of its own
        plan.sizes[0] = n_visits
        for t in range(n_visits):
            plan.block[t], plan.block_visit[t], plan.by_block[t] = plan.visit_block[t], t, t
        plan.block_visit[n_visits] = n_visits
        return
    plan.sizes[0] = _group(plan.visit_block, n_visits, plan.block_slot, plan.block, plan.block_visit)
    for t in range(n_visits):
        slot = plan.block_slot[plan.visit_block[t]]
        plan.by_block[plan.block_visit[slot]] = t
        plan.block_visit[slot] += 1
    _end_group(plan.sizes[0], plan.block_slot, plan.block, plan.block_visit)


@kernel
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


@kernel
def _end_group(n_groups, slot_of_key, key, start):
    """After the groups were filled, each start has moved to its end: move them back, clear the slots."""
    for slot in range(n_groups, 0, -1):
        start[slot] = start[slot - 1]
    start[0] = 0
    for slot in range(n_groups):
        slot_of_key[key[slot]] = -1


@kernel
def plan_features(examples, rows, plan):
    """Fill the touched features of the batch and their examples."""
    if len(rows) == 1:  # every feature has one example
        first, last = examples.x_indptr[rows[0]], examples.x_indptr[rows[0] + 1]
        for t in range(last - first):
            plan.feature[t], plan.feature_entry[t] = examples.x_indices[first + t], t
            plan.entry_example[t], plan.entry_value[t] = 0, examples.x_values[first + t]
        plan.feature_entry[last - first] = last - first
        plan.sizes[2] = last - first
        return
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
def count_visits(examples, blocks, out_visits, out_positives, out_node_weight):
    """Per example the number of blocks and of positive nodes; per node the weight of its positives."""
    n_nodes = len(blocks.parent)
    node_stamp = np.full(n_nodes, -1, np.int64)
    positive = np.empty(n_nodes, np.int32)
    for row in range(len(examples.weight)):
        labels = examples.y_indices[examples.y_indptr[row] : examples.y_indptr[row + 1]]
        end = _positive_nodes(labels, blocks, row, node_stamp, positive, 0)
        visits = 1
        for place in range(end):
            node = positive[place]
            visits += blocks.last[node] - blocks.first[node] + 1
            out_node_weight[node] += examples.weight[row]
        out_visits[row] = visits
        out_positives[row] = end


@kernel
def weigh_picked(examples, blocks, out_node_weight):
    """Per node the weight of the examples that have it, if one label of each is picked at random."""
    for row in range(len(examples.weight)):
        start, end = examples.y_indptr[row], examples.y_indptr[row + 1]
        for q in range(start, end):
            node = blocks.leaf_of_label[examples.y_indices[q]]
            while node >= 0:
                out_node_weight[node] += examples.weight[row] / (end - start)
                node = blocks.parent[node]
