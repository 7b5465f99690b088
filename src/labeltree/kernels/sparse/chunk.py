"""Chunks: the pruned weights of siblings as bytes, found by feature through buckets."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import inlined, kernel
from labeltree.kernels.sparse.passes import shrink


@inlined
def bucket_of(feature, n_buckets):
    """Where a chunk keeps a feature: by a hash, as neighbouring features are alike in frequency."""
    mixed = (np.uint64(feature) * np.uint64(2654435769)) & np.uint64(0xFFFFFFFF)
    return np.int64((mixed * np.uint64(n_buckets)) >> np.uint64(32))


@kernel
def largest_weights(weights, n_features, l1, out_largest):
    """The largest size of the weights in each column of the first so many rows, after an L1 term."""
    n_columns = weights.shape[1]
    for c in range(n_columns):
        out_largest[c] = 0.0
    for f in range(n_features):
        for c in range(n_columns):
            out_largest[c] = max(out_largest[c], abs(shrink(weights[f, c], l1)))


@kernel
def count_entries(weights, n_features, l1, least, out_length):
    """How many weights of each feature are of at least that size, after an L1 term.

    Returns the number of features with any, and the sum of all.
    """
    n_columns = weights.shape[1]
    n_rows, n_entries = 0, 0
    for f in range(n_features):
        n = 0
        for c in range(n_columns):
            n += 1 if abs(shrink(weights[f, c], l1)) >= least[c] else 0
        out_length[f] = n
        n_rows += n > 0
        n_entries += n
    return n_rows, n_entries


@kernel
def fill_chunk(weights, features, length_of, l1, least, scale, out):
    """Fill a :class:`.arrays.Chunk` of the right sizes, as :func:`count_entries` has found them."""
    n_buckets = len(out.bucket) - 1
    if n_buckets < 1:
        return
    n_features, n_columns = len(features), weights.shape[1]
    free = np.zeros(n_buckets + 1, np.int64)
    for f in range(n_features):
        if length_of[f] > 0:
            free[bucket_of(features[f], n_buckets) + 1] += 1
    for b in range(n_buckets):
        free[b + 1] += free[b]
        out.bucket[b, 0] = free[b]
    out.bucket[n_buckets, 0] = free[n_buckets]
    local = np.empty(free[n_buckets], np.int64)
    for f in range(n_features):
        if length_of[f] > 0:
            b = bucket_of(features[f], n_buckets)
            local[free[b]] = f
            free[b] += 1
    filled, b = 0, 0
    for row in range(len(local)):
        while b < n_buckets and out.bucket[b, 0] <= row:
            out.bucket[b, 1] = filled
            b += 1
        f = local[row]
        out.feature[row] = features[f]
        out.length[row] = length_of[f]
        for c in range(n_columns):
            weight = shrink(weights[f, c], l1)
            if abs(weight) >= least[c]:
                out.entry[filled] = (c << 8) | (np.int64(np.rint(weight / scale[c])) + 128)
                filled += 1
    while b <= n_buckets:
        out.bucket[b, 1] = filled
        b += 1
