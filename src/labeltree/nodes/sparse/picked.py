"""The rows of a parent as examples for alternatives: one label of each row is picked (pick-one-label).

In batches a row with s labels counts as s rows with one label each, of weight 1/s. At a parent the copies
that go to the same child are one example: its weight is the part of the row's labels below that child. Online
each pass picks one label of each row at random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labeltree.errors import TrainingError
from labeltree.kernels.sparse.arrays import padded
from labeltree.nodes.sparse.gathering import Material, Scratch, gather_rows
from labeltree.nodes.sparse.plan import Plan
from labeltree.nodes.sparse.solver import Solver

MOST_BYTES = 4 << 30  # that the weights and variables of one parent's children may take


def gather_copies(plan: Plan, first: int, last: int, solver: Solver, scratch: Scratch) -> Material:
    """Each row of the parent once for each of the children from first to last that has a label of it.

    What a positive example counts is in its weight. Two children are trained as nodes with a logistic each
    are, whose problems mirror each other here; of more, one without examples has no part.
    """
    rows = plan.positive_rows(first, last)
    order = np.argsort(rows, kind="stable")
    examples, features = gather_rows(plan, rows[order], len(rows), scratch)
    n_variables = len(features) + solver.n_duals(len(rows))
    _check_memory(plan.config.link, last - first, n_variables)
    n_rows = np.diff(plan.node_indptr[first : last + 1])
    child = np.repeat(np.arange(last - first, dtype=np.int32), n_rows)
    examples.positive_indptr[:] = np.arange(len(rows) + 1)
    examples.positive[:] = child[order]
    if not solver.draws_labels:  # the picks do what the shares do here
        examples.weight[:] = plan.shares[plan.node_indptr[first] : plan.node_indptr[last]][order]
    examples.weight[:] *= plan.positive_weight[first:last][examples.positive].astype(np.float32)
    has_part = plan.is_learned[first:last] | (last - first == 2)
    visits = _draw_visits(plan, first, last, order, solver) if solver.draws_labels else None
    return Material(examples, features, has_part.astype(np.float32), visits, plan.space)


def _draw_visits(
    plan: Plan, first: int, last: int, order: NDArray[np.int64], solver: Solver
) -> list[NDArray[np.uint8]]:
    """Of each pass the copies of the labels that it picks, as bits. All tasks pick the same of a row."""
    from labeltree.kernels.sparse.gathering import mark_picked

    tree, Y, is_picked = plan.tree, plan.labels, np.empty(len(order), np.bool_)
    visits = []
    for number in range(solver.most_passes(plan.config)):
        mark_picked(
            tree.parent, tree.leaf_of_label, Y.indptr, Y.indices, plan.seed % 2**63, number,
            plan.node_indptr, plan.node_rows, first, last, is_picked,
        )  # fmt: skip
        visits.append(np.packbits(is_picked[order]))
    return visits


def _check_memory(link: str, n_children: int, n_variables: int) -> None:
    """``n_variables`` are the weights and dual variables of a child."""
    n_bytes = 4 * int(padded(n_children)) * n_variables
    if n_bytes > MOST_BYTES:
        raise TrainingError(
            f"link {link} trains the {n_children:,} children of a node together, which needs "
            f"{n_bytes / 1e9:.0f} GB here; use a tree with fewer children per node, or dense nodes"
        )
