"""Nodes: what scores the nodes of a tree, and how scores become probabilities.

``LINKS`` is the table of links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.nodes.links import Link

LINKS: Table[Link] = Table(plt=Entry("nodes.links:PLT"), hsm=Entry("nodes.links:HSM"))
