"""How the logistics of a path share out their logarithms among the entries of a row."""

from __future__ import annotations

import math

import numpy as np

from labeltree.kernels.jit import inlined, kernel

_NEAR = 1e-6  # as in nodes/shares.py


@inlined
def _log_sigmoid(score):
    if score == -math.inf:
        return score
    return min(score, 0.0) - math.log1p(math.exp(-abs(score)))


@kernel
def share_logistics(weights, values, bias, nodes, out_logs, out_shares):
    """Fill (2, n_nodes) log P(node | parent) of the row and of the empty row, and (n_nodes, n_entries) shares
    of its change. As :func:`labeltree.nodes.shares.share_logistic` of the scores of these nodes."""
    for n in range(len(nodes)):
        first = np.float64(bias[nodes[n]])
        change = 0.0
        for e in range(len(values)):
            change += np.float64(weights[n, e]) * values[e]
        score = first + change
        log, first_log = _log_sigmoid(score), _log_sigmoid(first)
        if math.isinf(score):  # a constant node, whatever the row
            slope = 0.0
        elif abs(change) < _NEAR:
            slope = math.exp(_log_sigmoid(-0.5 * (score + first)))
        else:
            slope = (log - first_log) / change
        out_logs[0, n], out_logs[1, n] = log, first_log
        for e in range(len(values)):
            out_shares[n, e] = slope * np.float64(weights[n, e]) * values[e]
