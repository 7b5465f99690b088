"""Experts: what says how probable labels are for rows, and how several are combined.

``EXPERTS`` is the table of their kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.experts.expert import Expert

EXPERTS: Table[type[Expert]] = Table(
    tree=Entry("experts.tree_expert:TreeExpert"),
    neighbours=Entry("experts.neighbours:NeighboursExpert"),
    forest=Entry("experts.forest:ForestExpert"),
)
