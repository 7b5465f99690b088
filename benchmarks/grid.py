"""The points of the grid of choices that the contract tests and `benchmarks.determinism` go through.

A new kind of tree, node or optimizer is one more line here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labeltree.config import Config, effective

KINDS = ("text", "vectors")
TREES = ("kmeans", "huffman", "complete", "flat", "file")
METHODS: dict[str, dict[str, Any]] = {
    "adagrad": dict(nodes="dense", optimizer="adagrad", batch_size=32, lr=0.2),
    "sgd": dict(nodes="dense", optimizer="sgd", batch_size=1, lr=0.5),  # the paper's algorithm
    "sgd-batches": dict(nodes="dense", optimizer="sgd", batch_size=16, lr=0.2),
    "hinge": dict(nodes="sparse", loss="squared-hinge"),
    "log": dict(nodes="sparse", loss="log", C=10.0),
    "online": dict(nodes="sparse", solver="sgd"),
    "both": dict(nodes="both", batch_size=32, lr=0.2),
    "softmax": dict(nodes="dense", link="hsm", batch_size=16, lr=0.3),
    "softmax-dual": dict(nodes="sparse", link="hsm", C=10.0),
    "softmax-online": dict(nodes="sparse", link="hsm", solver="sgd"),
}
SMALL: dict[str, Any] = dict(dim=16, epochs=15, arity=2, max_leaves=3, l2=1e-5)


class Point(NamedTuple):
    kind: str
    tree: str
    method: str
    trees: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.tree}-{self.method}-{self.trees}"

    def parameters(self, tree_file: Path) -> dict[str, Any]:
        """What `labeltree.train` is given on small data; ``tree_file`` is for the tree "file"."""
        tree = str(tree_file) if self.tree == "file" else self.tree
        given = SMALL | METHODS[self.method] | {"trees": self.trees, "tree": tree}
        kept = effective(Config(**given))
        return {name: value for name, value in given.items() if name in kept}


GRID = [Point(*choice) for choice in itertools.product(KINDS, TREES, ("adagrad", "sgd"), (1, 2))]
GRID += [Point(kind, "kmeans", "sgd-batches", 1) for kind in KINDS]
GRID += [Point("text", tree, method, 1) for tree in TREES for method in ("hinge", "log")]
GRID += [Point("vectors", tree, "hinge", 2) for tree in ("kmeans", "flat", "file")]
GRID += [
    Point("vectors", "kmeans", method, trees) for method in ("log", "online", "both") for trees in (1, 2)
]
GRID += [Point("text", "huffman", "online", 1), Point("text", "flat", "both", 1)]
GRID += [Point("text", "huffman", "softmax", 1), Point("vectors", "kmeans", "softmax", 2)]
GRID += [Point("text", "kmeans", "softmax-dual", 1), Point("vectors", "huffman", "softmax-dual", 2)]
GRID += [Point("vectors", "flat", "softmax-dual", 1)]
GRID += [Point("vectors", "kmeans", "softmax-online", 1)]


def write_small_tree(path: Path, labels: Sequence[str]) -> Path:
    """A tree of uneven depth: a chain of six pairs with a wide end."""
    path.write_text(
        "".join(f"n{i} leaf{i} {labels[i]}\nn{i} n{i + 1}\n" for i in range(6))
        + "".join(f"n6 leaf{i} {labels[i]}\n" for i in range(6, len(labels)))
    )
    return path
