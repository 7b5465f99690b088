"""Nodes: what scores the nodes of a tree, and how the scores of siblings become probabilities.

``KINDS`` is the table of the former: start reading at :mod:`labeltree.nodes.kind`, what each of them does.
``LINKS`` is the table of the latter (:mod:`labeltree.nodes.links`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.nodes.kind import NodeKind
    from labeltree.nodes.links import Link

KINDS: Table[NodeKind] = Table(
    sparse=Entry(
        "nodes.sparse.kind:SPARSE",
        uses=("solver", "positive_weight", "rare_weight", "bias", "prune"),
    ),
    dense=Entry(
        "nodes.dense.kind:DENSE",
        uses=("dim", "initial_range", "epochs", "optimizer", "lr", "l2", "batch_size"),
    ),
    both=Entry(parts=("dense", "sparse")),
    direct=Entry("nodes.direct.kind:DIRECT", uses=("solver", "positive_weight", "rare_weight", "bias")),
)

LINKS: Table[Link] = Table(plt=Entry("nodes.links:PLT", uses=("loss",)), hsm=Entry("nodes.links:HSM"))
