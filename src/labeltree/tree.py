"""The label tree: flat arrays that check themselves.

Nodes are numbered breadth first from the root, node 0, so a parent stands before its children, siblings are
contiguous, and children follow each other in the order of their parents::

    node         0   1   2   3   4          0
    parent      -1   0   0   2   2         / \\
    first_child  1  -1   3  -1  -1        1   2
    n_children   2   0   2   0   0           / \\
    label       -1   1  -1   0   2          3   4
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.data.rows import LabelRows
from labeltree.errors import CorruptedModelError, ParameterError, TreeError
from labeltree.parameter import MOST_IDS


class Shape(NamedTuple):
    """How large a tree is, or will be: of all nodes, and of those that one label's path meets."""

    n_inner: int
    n_children: int  # of an inner node, at most
    depth: int  # at least 1


@dataclass(frozen=True, eq=False, repr=False)
class LabelTree:
    """A checked tree over the labels 0..m-1. All arrays are int32 and read-only.

    The constructor takes breadth-first numbering as it stands; :meth:`from_parents` takes any numbering.
    """

    parent: NDArray[np.int32]  # (n_nodes,), -1 at the root
    label: NDArray[np.int32]  # (n_nodes,), -1 at inner nodes
    first_child: NDArray[np.int32] = field(init=False)  # (n_nodes,), -1 at leaves
    n_children: NDArray[np.int32] = field(init=False)  # (n_nodes,)
    leaf_of_label: NDArray[np.int32] = field(init=False)  # (n_labels,)

    def __post_init__(self) -> None:
        parent, label = _as_nodes("parent", self.parent), _as_nodes("label", self.label)
        _check_lengths(parent, label)
        _check_order(parent)
        n_children = np.bincount(parent[1:], minlength=len(parent)).astype(np.int32)
        _check_labels(label, n_children)
        # Children follow each other from node 1 on, so a running sum finds where those of a node begin.
        first_child = np.cumsum(n_children, dtype=np.int64) - n_children + 1
        first_child[n_children == 0] = -1
        leaves = np.flatnonzero(n_children == 0).astype(np.int32)
        leaf_of_label = np.empty(len(leaves), np.int32)
        leaf_of_label[label[leaves]] = leaves
        arrays = dict(parent=parent, label=label, first_child=first_child.astype(np.int32))
        arrays |= dict(n_children=n_children, leaf_of_label=leaf_of_label)
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_parents(cls, parent: ArrayLike, label: ArrayLike) -> LabelTree:
        """The tree of nodes in any numbering; children keep their order. Errors name the nodes as given."""
        from labeltree.kernels.trees.shapes import order_breadth_first

        parents, labels = _as_nodes("parent", parent), _as_nodes("label", label)
        _check_lengths(parents, labels)
        n_nodes = len(parents)
        bad = np.flatnonzero((parents < -1) | (parents >= n_nodes))
        if len(bad):
            raise TreeError(
                f"node {bad[0]}: its parent is {parents[bad[0]]}, but must be -1 (the root) or one of the "
                f"nodes 0..{n_nodes - 1}"
            )
        roots = np.flatnonzero(parents == -1)
        if len(roots) == 0:
            raise TreeError("no node has the parent -1: a tree needs exactly one root")
        if len(roots) > 1:
            raise TreeError(
                f"nodes {roots[0]} and {roots[1]} both have the parent -1: only one may be the root"
            )
        by_parent = np.argsort(parents, kind="stable").astype(np.int32)  # the root first
        n_children = np.bincount(parents[by_parent[1:]], minlength=n_nodes).astype(np.int32)
        order = np.empty(n_nodes, np.int32)
        n_reached = order_breadth_first(by_parent, n_children, order)
        rank = np.full(n_nodes, -1, np.int32)
        rank[order[:n_reached]] = np.arange(n_reached, dtype=np.int32)
        if n_reached < n_nodes:
            lost = int(np.argmin(rank))
            raise TreeError(f"node {lost}: following its parents never ends at the root {roots[0]} (a cycle)")
        _check_labels(labels, n_children)
        ordered_parents = rank[parents[order]]
        ordered_parents[0] = -1
        return cls(ordered_parents, labels[order])

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Any], prefix: str = "tree") -> LabelTree:
        """The tree that :meth:`tensors` gave; anything else is a :class:`CorruptedModelError`."""
        try:
            return cls(tensors[f"{prefix}.parent"], tensors[f"{prefix}.label"])
        except KeyError as error:
            raise CorruptedModelError(f"the model has no tensor {error.args[0]!r}; train it again") from error
        except TreeError as error:
            raise CorruptedModelError(f"the model's tree {prefix!r} is broken: {error}") from error

    def tensors(self, prefix: str = "tree") -> dict[str, NDArray[np.int32]]:
        """What a model file needs to hold; the other arrays follow from these."""
        return {f"{prefix}.parent": self.parent, f"{prefix}.label": self.label}

    def most_below(self, values: NDArray[Any]) -> NDArray[Any]:
        """(n_nodes,) the largest of the values of the labels below a node; of a leaf that of its label."""
        most = np.zeros(len(self.parent), values.dtype)
        most[self.leaf_of_label] = values
        levels = [0, 1]  # where they begin: nodes are numbered level by level
        while n_next := int(self.n_children[levels[-2] : levels[-1]].sum()):
            levels.append(levels[-1] + n_next)
        for start, end, next_end in reversed(list(zip(levels, levels[1:], levels[2:], strict=False))):
            inner = start + np.flatnonzero(self.n_children[start:end])
            most[inner] = np.maximum.reduceat(most[end:next_end], self.first_child[inner] - end)
        return most

    def arrays(self) -> dict[str, NDArray[np.int32]]:
        """All of them by name, as kernels take them."""
        names = ("parent", "first_child", "n_children", "label", "leaf_of_label")
        return {name: getattr(self, name) for name in names}

    @property
    def n_nodes(self) -> int:
        return len(self.parent)

    @property
    def n_labels(self) -> int:
        return len(self.leaf_of_label)

    @property
    def depth_of_leaves(self) -> NDArray[np.int32]:
        """(n_labels,) number of edges from the root to the leaf of each label."""
        return self.depth()[self.leaf_of_label]

    def depth(self) -> NDArray[np.int32]:
        """(n_nodes,) number of edges from the root."""
        depth = (self.parent >= 0).astype(np.int32)
        above = np.maximum(self.parent, 0)
        # Each round doubles the number of ancestors passed, so even a tree as deep as a list is quick.
        while above.any():
            depth += depth[above]
            above = above[above]
        return depth

    def collapse(self, n: int) -> LabelTree:
        """The tree without n of each n + 1 levels of inner nodes; their children move up.

        The root stays, and so do nodes all of whose children are leaves, on any level: they are the groups of
        labels that a builder did not split. Siblings keep the order of their old numbers.
        """
        if n < 0:
            raise ParameterError(f"collapse must be at least 0, but is {n}")
        is_leaf = self.n_children == 0
        has_inner_child = np.zeros(self.n_nodes, np.bool_)
        has_inner_child[self.parent[1:][~is_leaf[1:]]] = True
        stays = ~has_inner_child | (self.depth() % (n + 1) == 0)
        if stays.all():
            return self
        nodes = np.arange(self.n_nodes)
        # The nearest node above, or the node itself, that stays; each round doubles the levels passed.
        nearest = np.where(stays, nodes, self.parent)
        while not stays[nearest].all():
            nearest = nearest[nearest]
        number = np.cumsum(stays) - 1
        parent = number[nearest[np.maximum(self.parent, 0)]]
        parent[0] = -1
        return LabelTree.from_parents(parent[stays], self.label[stays])

    def statistics(self) -> dict[str, float]:
        """Size, depth of the leaves and number of children of the inner nodes."""
        depth = self.depth_of_leaves
        arity = self.n_children[self.n_children > 0]
        if len(arity) == 0:
            arity = np.zeros(1, np.int32)
        return {
            "n_labels": self.n_labels,
            "n_nodes": self.n_nodes,
            "n_inner_nodes": self.n_nodes - self.n_labels,
            "depth_min": int(depth.min()),
            "depth_mean": float(depth.mean()),
            "depth_max": int(depth.max()),
            "arity_min": int(arity.min()),
            "arity_mean": float(arity.mean()),
            "arity_max": int(arity.max()),
        }

    def shape(self) -> Shape:
        """The measures of it that training's costs depend on."""
        n_inner = int(np.count_nonzero(self.n_children))
        return Shape(n_inner, int(self.n_children.max()), max(1, int(self.depth_of_leaves.max())))

    def cost(self, Y: Any) -> float:
        """Expected number of nodes that one example of ``Y`` trains (the paper's Appendix C).

        1 for the root, and for each inner node the fraction of rows with a label below it times its
        number of children. ``Y`` is an indicator matrix, lists of label ids, or :class:`LabelRows`, whose
        unknown labels (-1) are left out.
        """
        from labeltree.kernels.trees.shapes import count_rows_below

        if not isinstance(Y, LabelRows):
            from labeltree.data.labels import label_rows

            Y, _ = label_rows(Y, [str(label) for label in range(self.n_labels)])
        if len(Y.indices) and int(Y.indices.max()) >= self.n_labels:
            raise TreeError(
                f"Y has the label {int(Y.indices.max())}, but this tree has {self.n_labels} labels: "
                "use the labels that the tree was built for"
            )
        if Y.n_rows == 0:
            return 1.0
        n_rows_below = np.zeros(self.n_nodes, np.int64)
        count_rows_below(Y.indptr, Y.indices, self.parent, self.leaf_of_label, n_rows_below)
        # Whole numbers until the last division, so the result does not depend on any order.
        return 1.0 + int((n_rows_below * self.n_children).sum()) / Y.n_rows

    def __repr__(self) -> str:
        return f"LabelTree(n_labels={self.n_labels}, n_nodes={self.n_nodes})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelTree):
            return NotImplemented
        return np.array_equal(self.parent, other.parent) and np.array_equal(self.label, other.label)

    def __hash__(self) -> int:
        return hash((self.parent.tobytes(), self.label.tobytes()))


def _as_nodes(name: str, values: ArrayLike) -> NDArray[np.int32]:
    """One int32 per node; a read-only array that fits already (a mapped file) is not copied."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TreeError(f"{name} must be an array of integers, one per node ({error})") from error
    if array.size == 0:
        raise TreeError(f"{name} is empty, but a tree has at least one node")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TreeError(
            f"{name} must be an array of integers, one per node, "
            f"but has shape {array.shape} and type {array.dtype}"
        )
    if len(array) > MOST_IDS:
        raise TreeError(f"{name} has {len(array)} nodes, but a tree has at most {MOST_IDS}")
    if int(array.min()) < -1 or int(array.max()) >= MOST_IDS:
        wrong = int(np.flatnonzero((array < -1) | (array >= MOST_IDS))[0])
        raise TreeError(f"node {wrong}: {name} must be -1..{MOST_IDS - 1}, but is {array[wrong]}")
    if array.dtype == np.int32 and array.flags.c_contiguous and not array.flags.writeable:
        return array
    return np.array(array, np.int32, order="C")


def _check_lengths(parent: NDArray[np.int32], label: NDArray[np.int32]) -> None:
    if len(parent) != len(label):
        raise TreeError(f"parent has {len(parent)} nodes, but label has {len(label)}")


def _check_order(parent: NDArray[np.int32]) -> None:
    """Breadth-first numbering: parents stand before their children and never decrease."""
    if parent[0] != -1:
        raise TreeError(f"node 0: its parent must be -1, because it is the root, but is {parent[0]}")
    below = parent[1:]
    bad = np.flatnonzero((below < 0) | (below > np.arange(len(below))))
    if len(bad):
        n = int(bad[0]) + 1
        raise TreeError(f"node {n}: its parent must be one of the nodes 0..{n - 1}, but is {parent[n]}")
    bad = np.flatnonzero(below[1:] < below[:-1])
    if len(bad):
        n = int(bad[0]) + 2
        raise TreeError(
            f"node {n}: its parent {parent[n]} comes after {parent[n - 1]}, the parent of node {n - 1}: "
            "number the nodes breadth first, or use LabelTree.from_parents"
        )


def _check_labels(label: NDArray[np.int32], n_children: NDArray[np.int32]) -> None:
    """Each leaf has one of the labels 0..m-1, no inner node has any, no node has a single child."""
    unary = np.flatnonzero(n_children == 1)
    if len(unary):
        raise TreeError(f"node {unary[0]}: has a single child; join the two")
    leaf = n_children == 0
    bad = np.flatnonzero(~leaf & (label != -1))
    if len(bad):
        raise TreeError(f"node {bad[0]}: has children and the label {label[bad[0]]}; only leaves have labels")
    leaves = np.flatnonzero(leaf)
    bad = leaves[(label[leaves] < 0) | (label[leaves] >= len(leaves))]
    if len(bad):
        raise TreeError(
            f"node {bad[0]}: a leaf's label must be one of 0..{len(leaves) - 1} in a tree of {len(leaves)} "
            f"leaves, but is {label[bad[0]]}"
        )
    doubled = np.flatnonzero(np.bincount(label[leaves]) > 1)
    if len(doubled):
        nodes = leaves[label[leaves] == doubled[0]]
        raise TreeError(f"nodes {nodes[0]} and {nodes[1]} both have the label {doubled[0]}")
