"""Spherical k-means over label profiles, with parts of equal size or as they come.

It works on one group of labels at a time: its profiles are gathered into compact local rows, whose
features are numbered by first appearance and whose length is 1, so that sums of rows stay in the cache.
Centroids are feature-major: all parts' values of one feature are neighbours. Two parts need a single column,
the difference of the two centroids; more parts use the sums of their rows and a factor per part.
"""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import helper, kernel
from labeltree.kernels.random import next_random

MAX_ITERATIONS = 30  # of k-means; it nearly always stops earlier by eps


@helper
def sort_falling(scores, order, scratch):
    """Sort ``order``, row numbers of ``scores``, by falling score; equal scores keep their order.

    Counts four times by one byte of the float: linear, and far quicker to compile than ``np.argsort``.
    """
    bits = scores.view(np.uint32)
    keys = np.empty(len(scores), np.int64)
    for i in order:
        # Floats as whole numbers in falling order: positive ones are flipped, negative ones are so already.
        keys[i] = 0x7FFFFFFF - (bits[i] & 0x7FFFFFFF) if scores[i] >= 0.0 else bits[i]
    count = np.empty(257, np.int64)
    source, target = order, scratch[: len(order)]
    for shift in range(0, 32, 8):
        for digit in range(257):
            count[digit] = 0
        for i in source:
            count[((keys[i] >> shift) & 255) + 1] += 1
        for digit in range(256):
            count[digit + 1] += count[digit]
        for i in source:
            digit = (keys[i] >> shift) & 255
            target[count[digit]] = i
            count[digit] += 1
        source, target = target, source  # after the fourth time, the result is in `order`


@kernel
def gather_rows(rows, members, local_of_feature, out_indptr, out_indices, out_values, out_features):
    """Copy the members' rows, scaled to length 1, with features renumbered; returns the number of features.

    ``local_of_feature`` is -1 everywhere, before and after.
    """
    n_features = 0
    filled = 0
    for i in range(len(members)):
        out_indptr[i] = filled
        squares = 0.0
        for position in range(rows.indptr[members[i]], rows.indptr[members[i] + 1]):
            squares += np.float64(rows.values[position]) * np.float64(rows.values[position])
        scale = 1.0 / np.sqrt(squares) if squares > 0.0 else 0.0
        for position in range(rows.indptr[members[i]], rows.indptr[members[i] + 1]):
            feature = rows.indices[position]
            if local_of_feature[feature] < 0:
                local_of_feature[feature] = n_features
                out_features[n_features] = feature
                n_features += 1
            out_indices[filled] = local_of_feature[feature]
            out_values[filled] = rows.values[position] * scale
            filled += 1
    out_indptr[len(members)] = filled
    for feature in out_features[:n_features]:
        local_of_feature[feature] = -1
    return n_features


@helper
def clear_sums(sums):
    """``sums[:] = 0``, which takes long to compile."""
    for j in range(len(sums)):
        for a in range(sums.shape[1]):
            sums[j, a] = 0.0


@kernel
def seed_sums(indptr, indices, values, n_parts, state, out_sums):
    """Start each part with another random row that is not empty, as long as there are any."""
    candidates = np.empty(len(indptr) - 1, np.int64)
    n_candidates = 0
    for i in range(len(indptr) - 1):
        if indptr[i + 1] > indptr[i]:
            candidates[n_candidates] = i
            n_candidates += 1
    clear_sums(out_sums)
    for a in range(min(n_parts, n_candidates)):
        chosen = a + next_random(state, n_candidates - a)
        i = candidates[chosen]
        candidates[chosen] = candidates[a]
        for position in range(indptr[i], indptr[i + 1]):
            out_sums[indices[position], a] = values[position]


@kernel
def make_centroids(sums, out_centroids, out_scale):
    """Prepare scoring; returns the rows' total similarity to their part's centroid: the norms of the sums."""
    n_parts = sums.shape[1]
    squares = np.zeros(n_parts, np.float64)
    for j in range(len(sums)):
        for a in range(n_parts):
            squares[a] += np.float64(sums[j, a]) * np.float64(sums[j, a])
    total = 0.0
    for a in range(n_parts):
        total += np.sqrt(squares[a])
    for a in range(n_parts):
        squares[a] = 1.0 / np.sqrt(squares[a]) if squares[a] > 0.0 else 0.0
    if n_parts == 2:
        out_scale[0] = 1.0
        for j in range(len(sums)):
            out_centroids[j, 0] = sums[j, 0] * squares[0] - sums[j, 1] * squares[1]
    else:
        for a in range(n_parts):
            out_scale[a] = squares[a]
    return total


@kernel
def score_rows(indptr, indices, values, centroids, scale, start, stop, out_scores):
    """Similarity of the rows start..stop to each column of centroids."""
    n_columns = len(scale)
    if n_columns == 1:
        for i in range(start, stop):
            score = np.float32(0.0)
            for position in range(indptr[i], indptr[i + 1]):
                score += values[position] * centroids[indices[position], 0]
            out_scores[i, 0] = score
        return
    for i in range(start, stop):
        scores = out_scores[i]
        for a in range(n_columns):
            scores[a] = 0.0
        for position in range(indptr[i], indptr[i + 1]):
            centroid = centroids[indices[position]]
            value = values[position]
            for a in range(n_columns):
                scores[a] += value * centroid[a]
        for a in range(n_columns):
            scores[a] *= scale[a]


@helper
def halve_rows(scores, out_part):
    """The half of the rows with the greater scores is part 0, the rest part 1; ties by row."""
    n_rows = len(scores)
    order = np.empty(n_rows, np.int64)
    for i in range(n_rows):
        order[i] = i
    sort_falling(scores.reshape(n_rows), order, np.empty(n_rows, np.int64))
    for place in range(n_rows):
        out_part[order[place]] = 0 if place < n_rows - n_rows // 2 else 1


@helper
def place_rows(scores, out_part):
    """Give each row a part, sizes differing by at most one; who would lose most goes first.

    In rounds: a row's wish is its best part with room, its regret how much better that is than the second
    best one. In order of falling regret (ties keep their order) rows get their wish, or wait for the next
    round if the part has filled up meanwhile. Twin: ``reference.tree.place_rows``.
    """
    n_rows, n_parts = scores.shape
    n_larger = n_rows % n_parts  # so many parts may take one row more
    room, is_open = np.empty(n_parts, np.int64), np.empty(n_parts, np.bool_)
    for a in range(n_parts):
        room[a], is_open[a] = n_rows // n_parts, True
    waiting, scratch = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    for i in range(n_rows):
        waiting[i] = i
    regret = np.empty(n_rows, np.float32)
    while len(waiting) > 0:
        for i in waiting:
            best, second, wish = np.float32(-np.inf), np.float32(-np.inf), -1
            for a in range(n_parts):
                if is_open[a] and scores[i, a] > second:
                    if scores[i, a] > best:
                        second, best, wish = best, scores[i, a], a
                    else:
                        second = scores[i, a]
            regret[i] = best - second
            out_part[i] = wish
        sort_falling(regret, waiting, scratch)
        n_waiting = 0
        for i in waiting:
            wish = out_part[i]
            if room[wish] == 0 and n_larger > 0 and is_open[wish]:
                n_larger -= 1
                is_open[wish] = False
            elif room[wish] > 0:
                room[wish] -= 1
            else:
                waiting[n_waiting] = i
                n_waiting += 1
        waiting = waiting[:n_waiting]
        for a in range(n_parts):
            is_open[a] = is_open[a] and (room[a] > 0 or n_larger > 0)


@helper
def take_nearest(scores, out_part):
    """Each row's most similar part, however many rows it gets; ties go to the lower part."""
    n_rows, n_columns = scores.shape
    for i in range(n_rows):
        if n_columns == 1:  # of two parts: how much more similar to part 0
            out_part[i] = 0 if scores[i, 0] >= 0.0 else 1
            continue
        best = 0
        for a in range(1, n_columns):
            if scores[i, a] > scores[i, best]:
                best = a
        out_part[i] = best


@kernel
def regroup_rows(indptr, indices, values, scores, balanced, part, new_part, sums):
    """Place the rows by their scores; those that change their part (-1: had none) move between the sums.

    A part that lost its last row gets a sum of exactly 0: what rounding leaves would be a random direction.
    """
    n_parts = sums.shape[1]
    if not balanced:
        take_nearest(scores, new_part)
    elif n_parts == 2:
        halve_rows(scores, new_part)
    else:
        place_rows(scores, new_part)
    n_members, has_lost = np.zeros(n_parts, np.int64), np.zeros(n_parts, np.bool_)
    for i in range(len(part)):
        n_members[new_part[i]] += 1
        if part[i] == new_part[i]:
            continue
        for position in range(indptr[i], indptr[i + 1]):
            sums[indices[position], new_part[i]] += values[position]
            if part[i] >= 0:
                sums[indices[position], part[i]] -= values[position]
        if part[i] >= 0:
            has_lost[part[i]] = True
    for a in range(n_parts):
        if n_members[a] == 0 and has_lost[a]:
            for j in range(len(sums)):
                sums[j, a] = 0.0


@kernel
def is_lopsided(part, n_parts):
    """Whether one part has more than nine tenths of the rows."""
    n_members = np.zeros(n_parts, np.int64)
    largest = 0
    for a in part:
        n_members[a] += 1
        largest = max(largest, n_members[a])
    return 10 * largest > 9 * len(part)


@helper
def split_group(indptr, indices, values, n_features, n_parts, balanced, eps, state, out_part):
    """K-means of all rows, until the mean similarity gains less than eps. Twin: ``build.kmeans`` in steps."""
    n_rows = len(indptr) - 1
    n_columns = 1 if n_parts == 2 else n_parts
    sums = np.empty((n_features, n_parts), np.float32)
    centroids = np.empty((n_features, 1), np.float32) if n_parts == 2 else sums
    scale = np.empty(n_columns, np.float32)
    scores = np.empty((n_rows, n_columns), np.float32)
    part = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        part[i] = -1
    seed_sums(indptr, indices, values, n_parts, state, sums)
    make_centroids(sums, centroids, scale)
    before = -1.0
    for iteration in range(MAX_ITERATIONS):
        score_rows(indptr, indices, values, centroids, scale, 0, n_rows, scores)
        is_first = iteration == 0
        if is_first:
            clear_sums(sums)  # of the seeds
        regroup_rows(indptr, indices, values, scores, balanced or is_first, part, out_part, sums)
        similarity = make_centroids(sums, centroids, scale) / n_rows
        if similarity < before:  # placing by regret is greedy: it may lose
            for i in range(n_rows):
                out_part[i] = part[i]
        if similarity < before + eps:
            break
        before = similarity
        for i in range(n_rows):
            part[i] = out_part[i]


@kernel
def sort_members(members, part, n_parts, out_sizes):
    """Bring the members of each part together, in their order; fill in the parts' sizes."""
    out_sizes[:] = 0
    for a in part:
        out_sizes[a] += 1
    free = np.zeros(n_parts, np.int64)
    for a in range(1, n_parts):
        free[a] = free[a - 1] + out_sizes[a - 1]
    old = members.copy()
    for i in range(len(old)):
        members[free[part[i]]] = old[i]
        free[part[i]] += 1


@kernel
def split_groups(rows, starts, stops, states, n_parts, balanced, eps, members, out_sizes):
    """Split each group ``members[start:stop]`` in place; sizes of its parts go to ``out_sizes``.

    A lopsided split is made again, balanced.
    """
    local_of_feature = np.empty(rows.n_columns, np.int32)
    for feature in range(rows.n_columns):
        local_of_feature[feature] = -1
    largest, most_entries = 0, 0
    for group in range(len(starts)):
        n_entries = 0
        for label in members[starts[group] : stops[group]]:
            n_entries += rows.indptr[label + 1] - rows.indptr[label]
        largest = max(largest, stops[group] - starts[group])
        most_entries = max(most_entries, n_entries)
    indptr = np.empty(largest + 1, np.int64)
    indices = np.empty(most_entries, np.int32)
    values = np.empty(most_entries, np.float32)
    features = np.empty(min(most_entries, rows.n_columns), np.int32)
    part = np.empty(largest, np.int32)
    for group in range(len(starts)):
        group_members = members[starts[group] : stops[group]]
        n_rows = len(group_members)
        n_features = gather_rows(rows, group_members, local_of_feature, indptr, indices, values, features)
        pointers, state, group_part = indptr[: n_rows + 1], states[group : group + 1], part[:n_rows]
        split_group(pointers, indices, values, n_features, n_parts, balanced, eps, state, group_part)
        if not balanced and is_lopsided(group_part, n_parts):
            split_group(pointers, indices, values, n_features, n_parts, True, eps, state, group_part)
        sort_members(group_members, group_part, n_parts, out_sizes[group])
