"""Features: how texts or vectors become the sparse rows that experts judge.

``FEATURES`` is the table of their kinds, by what they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.features.features import Features

FEATURES: Table[type[Features]] = Table(
    text=Entry("features.text:TextFeatures"), vectors=Entry("features.vectors:VectorFeatures")
)
