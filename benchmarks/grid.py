"""The points of the grid of choices that the contract tests and `benchmarks.determinism` go through.

Trees, kinds of nodes and links come from their tables, so that a new one is in the grid by itself. Most
points are of the default kind of nodes: with every tree and link, alone and as an ensemble. They are of trees
alone, whose answers are all their own, but for those of the method "neighbours", which stand for the default,
and of "forest". Points of 0 trees are forests alone; those of "joined" features have dense vectors beside
texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labeltree.config import Config, effective
from labeltree.nodes import KINDS, LINKS
from labeltree.trees import BUILDERS, FROM_FILE

TREES = (*BUILDERS, FROM_FILE)
# Ways to train the nodes of a kind, each with what suits the small data; the first goes with every tree.
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "sparse": {
        "batch": {},
        "log": dict(loss="log", C=10.0),
        "active": dict(solver="active", loss="squared-hinge", l1=0.02, bias=1.0),  # as PPDSparse
        "online": dict(solver="sgd"),
        "neighbours": dict(neighbours=10),
        "forest": dict(neighbours=10, forest=10, forest_leaf=5),
    },
    "dense": {
        "adagrad": dict(optimizer="adagrad", batch_size=16, lr=0.3),
        "sgd": dict(optimizer="sgd", batch_size=1, lr=0.5),  # the paper's algorithm
        "sgd-batches": dict(optimizer="sgd", batch_size=16, lr=0.2),
    },
    "both": {"default": dict(batch_size=32, lr=0.2)},
}
SMALL: dict[str, Any] = dict(dim=16, epochs=15, arity=2, max_leaves=3, l2=1e-5, neighbours=0)


class Point(NamedTuple):
    features: str
    tree: str
    nodes: str
    link: str
    method: str
    trees: int

    @property
    def name(self) -> str:
        return "-".join(map(str, self))

    def parameters(self, tree_file: Path) -> dict[str, Any]:
        """What `labeltree.train` is given on small data; ``tree_file`` is for the tree from a file."""
        tree = str(tree_file) if self.tree == FROM_FILE else self.tree
        given = SMALL | (_methods(self.nodes)[self.method] if self.trees else _forest(self.method))
        given |= dict(nodes=self.nodes, link=self.link, trees=self.trees, tree=tree)
        kept = effective(Config(**given))
        return {name: value for name, value in given.items() if name in kept}


# Of forests alone: the data they are grown from, and how.
FORESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "l1": ("text", dict(forest_split="l1")),
    "l2": ("vectors", dict(forest_split="l2")),
    "tail": ("text", dict(forest_propensity=True, forest_tail=0.2)),
}


# With vectors beside the texts: kinds of nodes, methods and numbers of trees.
JOINED = (("sparse", "forest", 2), ("dense", "adagrad", 1))


def _forest(method: str) -> dict[str, Any]:
    return dict(forest=20, forest_leaf=5) | FORESTS[method][1]


def _methods(nodes: str) -> dict[str, dict[str, Any]]:
    return METHODS.get(nodes, {"default": {}})


def _points() -> Iterator[Point]:
    usual = Config()
    for nodes in sorted(KINDS, key=lambda kind: kind != usual.nodes):
        first, *others = _methods(nodes)
        for tree in TREES:
            if nodes == usual.nodes or tree == usual.tree:
                yield from _with_each_link(tree, nodes, first)
            else:
                yield Point("vectors", tree, nodes, usual.link, first, 1)
        for method in others:
            yield from _with_each_link(usual.tree, nodes, method)
    for method, (features, _) in FORESTS.items():
        yield Point(features, usual.tree, usual.nodes, usual.link, method, 0)
    for nodes, method, trees in JOINED:
        yield Point("joined", usual.tree, nodes, usual.link, method, trees)


def _with_each_link(tree: str, nodes: str, method: str) -> Iterator[Point]:
    for link in LINKS:
        if not all(KINDS[kind].takes(LINKS[link]) for kind in KINDS.parts_of(nodes)):
            continue
        single = Point("text", tree, nodes, link, method, 1)
        if _methods(nodes)[method].keys() <= single.parameters(Path()).keys():  # a softmax has one loss only
            yield from (single, single._replace(features="vectors", trees=2))


GRID = list(_points())


def write_small_tree(path: Path, labels: Sequence[str]) -> Path:
    """A tree of uneven depth: a chain of six pairs with a wide end."""
    path.write_text(
        "".join(f"n{i} leaf{i} {labels[i]}\nn{i} n{i + 1}\n" for i in range(6))
        + "".join(f"n6 leaf{i} {labels[i]}\n" for i in range(6, len(labels)))
    )
    return path
