"""The way from a leaf to the root.

Kernels that need no marks, or stop elsewhere, go it in a loop of their own, which is shorter than a call.
"""

from __future__ import annotations

from labeltree.kernels.jit import inlined


@inlined
def mark_path(parent, node, marks, mark, out, start):
    """Mark the nodes from this one up to the first that has the mark already; fill ``out[start:]`` with them.

    So all nodes above some leaves come once each. Returns where they end.
    """
    end = start
    while node >= 0 and marks[node] != mark:
        marks[node] = mark
        out[end] = node
        end += 1
        node = parent[node]
    return end
