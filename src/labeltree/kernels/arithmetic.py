"""Inner loops that training (float32) and search (int8) share, inlined into the kernels that use them."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.atomic import bits_as_float, prefetch
from labeltree.kernels.jit import inlined

_LINE_BYTES = 64  # of a cache line
_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693145751953125), np.float32(1.42860677e-06)


@inlined
def fast_exp(x):
    """exp(x) to 2e-7 for -88 <= x <= 88 (0 at -88), in plain arithmetic so that loops over it vectorise.

    exp(x) = 2**i * exp(f) with |f| <= ln(2) / 2, and exp(f) by its Taylor polynomial of degree 7.
    """
    i = np.floor(x * _LOG2_E + np.float32(0.5))
    f = x - i * _LN2_HIGH - i * _LN2_LOW
    p = np.float32(1.0 / 5040.0)
    p = p * f + np.float32(1.0 / 720.0)
    p = p * f + np.float32(1.0 / 120.0)
    p = p * f + np.float32(1.0 / 24.0)
    p = p * f + np.float32(1.0 / 6.0)
    p = p * f + np.float32(0.5)
    p = p * f + np.float32(1.0)
    p = p * f + np.float32(1.0)
    return p * bits_as_float((np.int32(i) + np.int32(127)) << np.int32(23))


@inlined
def apply_softmax(scores, n, least):
    """``scores[:n] = exp(scores[:n])`` over their sum; one below the largest by more than ``-least`` is cut.

    At least one is finite, the others may be -inf. For training: a search needs logarithms.
    """
    largest = scores[0]
    for c in range(1, n):
        largest = max(largest, scores[c])
    for c in range(n):
        scores[c] = fast_exp(max(scores[c] - largest, least))
    total = np.float32(0.0)
    for c in range(n):
        total += scores[c]
    for c in range(n):
        scores[c] /= total


@inlined
def prefetch_rows(matrix, row, n_rows):
    """Have some rows that follow one another brought near."""
    dim = matrix.shape[1]
    first = np.int64(row) * dim
    for q in range(first, first + n_rows * dim, _LINE_BYTES // matrix.itemsize):
        prefetch(matrix, q)


@inlined
def sum_rows(coefficients, c, sources, s, n, rows, out, o):
    """``out[o] = coefficients[c : c + n] @ rows[sources[s : s + n]]``, four rows per pass over out[o].

    The first pass has those that are left over and writes.
    """
    dim = rows.shape[1]
    q = n % 4
    if q == 0:
        for j in range(dim):
            out[o, j] = 0.0
    elif q == 1:
        v0, r0 = coefficients[c], sources[s]
        for j in range(dim):
            out[o, j] = v0 * np.float32(rows[r0, j])
    elif q == 2:
        v0, v1, r0, r1 = coefficients[c], coefficients[c + 1], sources[s], sources[s + 1]
        for j in range(dim):
            out[o, j] = v0 * np.float32(rows[r0, j]) + v1 * np.float32(rows[r1, j])
    else:
        v0, v1, v2 = coefficients[c], coefficients[c + 1], coefficients[c + 2]
        r0, r1, r2 = sources[s], sources[s + 1], sources[s + 2]
        for j in range(dim):
            first = v0 * np.float32(rows[r0, j]) + v1 * np.float32(rows[r1, j])
            out[o, j] = first + v2 * np.float32(rows[r2, j])
    while q < n:
        v0, v1 = coefficients[c + q], coefficients[c + q + 1]
        v2, v3 = coefficients[c + q + 2], coefficients[c + q + 3]
        r0, r1, r2, r3 = sources[s + q], sources[s + q + 1], sources[s + q + 2], sources[s + q + 3]
        for j in range(dim):
            first = v0 * np.float32(rows[r0, j]) + v1 * np.float32(rows[r1, j])
            out[o, j] += first + v2 * np.float32(rows[r2, j]) + v3 * np.float32(rows[r3, j])
        q += 4


@inlined
def score_rows(weights, first, n, vectors, v, out):
    """``out[:n] = weights[first : first + n] @ vectors[v]``, four at a time."""
    dim = weights.shape[1]
    c = 0
    while c + 4 <= n:
        r = first + c
        s0, s1, s2, s3 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for j in range(dim):
            h = vectors[v, j]
            s0 += np.float32(weights[r, j]) * h
            s1 += np.float32(weights[r + 1, j]) * h
            s2 += np.float32(weights[r + 2, j]) * h
            s3 += np.float32(weights[r + 3, j]) * h
        out[c], out[c + 1], out[c + 2], out[c + 3] = s0, s1, s2, s3
        c += 4
    r = first + c
    s0, s1, s2 = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    if c + 3 == n:
        for j in range(dim):
            h = vectors[v, j]
            s0 += np.float32(weights[r, j]) * h
            s1 += np.float32(weights[r + 1, j]) * h
            s2 += np.float32(weights[r + 2, j]) * h
        out[c], out[c + 1], out[c + 2] = s0, s1, s2
    elif c + 2 == n:
        for j in range(dim):
            h = vectors[v, j]
            s0 += np.float32(weights[r, j]) * h
            s1 += np.float32(weights[r + 1, j]) * h
        out[c], out[c + 1] = s0, s1
    elif c + 1 == n:
        for j in range(dim):
            s0 += np.float32(weights[r, j]) * vectors[v, j]
        out[c] = s0
