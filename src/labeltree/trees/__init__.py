"""Trees: the ways to put labels into one, a file each, and the tree file.

``BUILDERS`` is their table. Start reading at :mod:`labeltree.trees.builder`, what all of them do.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labeltree.errors import ParameterError
from labeltree.table import Entry, Table

if TYPE_CHECKING:
    from labeltree.trees.builder import TreeBuilder

BUILDERS: Table[TreeBuilder] = Table(
    kmeans=Entry(
        "trees.kmeans:KMEANS",
        uses=("arity", "max_leaves", "kmeans_eps", "balanced", "collapse", "profiles"),
    ),
    huffman=Entry("trees.shapes:HUFFMAN", uses=("arity",)),
    complete=Entry("trees.shapes:COMPLETE", uses=("arity",)),
    flat=Entry("trees.shapes:FLAT"),
    learned=Entry(
        "trees.learned:LEARNED",
        uses=("arity", "dim", "initial_range", "epochs", "optimizer", "lr", "l2", "batch_size"),
    ),
)
FROM_FILE = "file"  # what a config says of a tree from a file, whose path means nothing on another machine


def check_tree(tree: str) -> None:
    """A wrong name is better found before the data is read."""
    if tree not in BUILDERS and not Path(tree).is_file():
        raise ParameterError(
            f"tree must be one of {', '.join(BUILDERS)} or an existing tree file, but is {tree!r}"
        )
