"""Tree files: one line ``parent child [label]`` per node but the root, which is the only one never a child.

- Node names are any words without white space; between fields stand spaces or tabs.
- A leaf's line ends with its label: all that follows the separator after ``child``, so names may have spaces
  in them. A name that is unknown as it stands is tried again without the spaces around it.
- The order of the lines is the order of the children; lines of a node's children may stand before its own.
- The parent ``-`` means none. A line ``- node [label]`` may declare the root; a tree of a single label needs
  it, because its root is a leaf: ``- 0 label``.
- Empty lines and lines that start with ``#`` are skipped. The text is UTF-8.

What :func:`write_tree` writes, :func:`read_tree` makes the same tree of.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labeltree.config import Config
from labeltree.errors import TreeError
from labeltree.storage.files import write_whole
from labeltree.tree import LabelTree, Shape
from labeltree.trees import check_tree
from labeltree.trees.builder import TreeBuilder, TreeInput
from labeltree.trees.shapes import COMPLETE

_NO_PARENT = "-"


class TreeFile(TreeBuilder):
    """The tree of the file that the config names."""

    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        check_tree(given.config.tree)
        return read_tree(given.config.tree, given.label_names)

    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        return COMPLETE.guess_shape(config, n_labels)  # it may have any


class _Lines(NamedTuple):
    """The nodes of a file in order of their lines, the root's (if it has one) included."""

    numbers: list[int]
    parents: list[str]
    children: list[str]
    labels: list[int]


def write_tree(path: str | Path, tree: LabelTree, label_names: Sequence[str]) -> None:
    """Write a file that :func:`read_tree` makes the same tree of."""
    if len(label_names) != tree.n_labels:
        raise TreeError(f"{len(label_names)} label names given for a tree of {tree.n_labels} labels")
    for label, name in enumerate(label_names):
        if not name.strip() or "\n" in name or "\r" in name:
            raise TreeError(
                f"label {label}: the name {name!r} cannot stand in a tree file (empty, or with a line "
                "end); rename it"
            )
    if len(set(label_names)) != len(label_names):
        raise TreeError("label names must differ from each other to be written into a tree file")
    endings = ["" if label < 0 else f" {label_names[label]}" for label in tree.label.tolist()]
    parents = tree.parent.tolist()
    first = 0 if tree.n_nodes == 1 else 1  # a root that is a leaf still needs a line to carry its label
    lines = [f"{parents[n] if n else '-'} {n}{endings[n]}\n" for n in range(first, tree.n_nodes)]
    try:
        content = "".join(lines).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise TreeError(f"a label name cannot be written as UTF-8 ({error.reason}); rename it") from error
    try:
        write_whole(path, [content])
    except (OSError, ValueError) as error:  # ValueError: no file can have that name
        reason = getattr(error, "strerror", None) or error
        raise TreeError(f"tree file {path}: cannot be written ({reason}); give another name") from error


def read_tree(path: str | Path, label_names: Sequence[str]) -> LabelTree:
    """The tree in a file, checked; ``label_names`` are the names of the labels 0..m-1, each needed once."""
    lines = _parse(path, label_names)
    line_of_child: dict[str, int] = {}
    for number, child in zip(lines.numbers, lines.children, strict=True):
        if child in line_of_child:
            raise TreeError(
                f"{path}:{number}: node {child!r} has a parent already, on line {line_of_child[child]}; "
                "remove one of the two lines"
            )
        line_of_child[child] = number
    root = _find_root(path, lines, line_of_child)

    # Siblings keep the order of their lines if nodes are numbered by line.
    node_of = {root: 0}
    for child in lines.children:
        node_of.setdefault(child, len(node_of))
    parent = np.full(len(node_of), -1, np.int32)
    label = np.full(len(node_of), -1, np.int32)
    for name, child, label_id in zip(lines.parents, lines.children, lines.labels, strict=True):
        node = node_of[child]
        parent[node] = -1 if name == _NO_PARENT else node_of[name]
        label[node] = label_id
    _check_cycles(path, lines, parent, node_of)
    _check_labels(path, lines, label_names)
    return LabelTree.from_parents(parent, label)


def _parse(path: str | Path, label_names: Sequence[str]) -> _Lines:
    try:
        text = Path(path).read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise TreeError(f"tree file {path}: cannot be read ({error.strerror})") from error
    label_of = {name: label for label, name in enumerate(label_names)}
    lines = _Lines([], [], [], [])
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        fields = line.split(None, 2)
        if not fields or line.startswith("#"):
            continue
        if len(fields) < 2:
            raise TreeError(f"{path}:{number}: a line is `parent child [label]`, but this one is {line!r}")
        lines.numbers.append(number)
        lines.parents.append(fields[0])
        lines.children.append(fields[1])
        lines.labels.append(-1)
        if len(fields) == 3:
            exact = _after_two_fields(line, fields)
            label = label_of.get(exact, label_of.get(fields[2].strip(), -1))
            if label < 0:
                name = fields[2].strip()
                raise TreeError(
                    f"{path}:{number}: the data has no label {name!r}; correct it or remove the leaf"
                )
            lines.labels[-1] = label
    if not lines.numbers:
        raise TreeError(f"{path}: has no lines `parent child [label]`")
    return lines


def _after_two_fields(line: str, fields: list[str]) -> str:
    """The label exactly as it stands, with any spaces around it."""
    end_of_parent = line.index(fields[0]) + len(fields[0])
    end_of_child = line.index(fields[1], end_of_parent) + len(fields[1])
    return line[end_of_child + 1 :]


def _find_root(path: str | Path, lines: _Lines, line_of_child: dict[str, int]) -> str:
    """The one node that is never a child, or is declared to have no parent."""
    first_line: dict[str, int] = {}
    for number, parent, child in zip(lines.numbers, lines.parents, lines.children, strict=True):
        if parent == _NO_PARENT:
            first_line.setdefault(child, number)
        elif parent not in line_of_child:
            first_line.setdefault(parent, number)
    if not first_line:
        raise TreeError(f"{path}: every node is a child of another; one, the root, must not be (a cycle)")
    if len(first_line) > 1:
        (root, line), (other, other_line) = sorted(first_line.items(), key=lambda item: item[1])[:2]
        raise TreeError(
            f"{path}:{other_line}: node {other!r} has no parent, and neither has {root!r} (line {line}); "
            "a tree has one root"
        )
    return next(iter(first_line))


def _check_labels(path: str | Path, lines: _Lines, label_names: Sequence[str]) -> None:
    """Labels at the leaves and only there, each once; no node with a single child."""
    n_children: dict[str, int] = {}
    first_line: dict[str, int] = {}
    for number, parent in zip(lines.numbers, lines.parents, strict=True):
        n_children[parent] = n_children.get(parent, 0) + 1
        first_line.setdefault(parent, number)
    line_of_label: dict[int, int] = {}
    for number, child, label in zip(lines.numbers, lines.children, lines.labels, strict=True):
        if label >= 0 and child in n_children:
            raise TreeError(
                f"{path}:{number}: node {child!r} has the label {label_names[label]!r}, but also children "
                f"(line {first_line[child]}); only leaves have labels"
            )
        if label < 0 and child not in n_children:
            raise TreeError(
                f"{path}:{number}: node {child!r} has neither a label nor children; add one of them"
            )
        if label in line_of_label:
            raise TreeError(
                f"{path}:{number}: the label {label_names[label]!r} stands on line {line_of_label[label]} "
                "already; each label has one leaf"
            )
        if label >= 0:
            line_of_label[label] = number
    for parent, count in n_children.items():
        if count == 1 and parent != _NO_PARENT:
            raise TreeError(f"{path}:{first_line[parent]}: node {parent!r} has a single child; join the two")
    missing = [name for label, name in enumerate(label_names) if label not in line_of_label]
    if missing:
        some = ", ".join(repr(name) for name in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise TreeError(f"{path}: {len(missing)} labels of the data have no leaf: {some}; add them")


def _check_cycles(path: str | Path, lines: _Lines, parent: np.ndarray, node_of: dict[str, int]) -> None:
    """Every node's parents lead to the root, node 0; names a line of the cycle otherwise."""
    # Each round doubles the number of ancestors passed.
    above = np.maximum(parent, 0)
    for _ in range(len(parent).bit_length()):
        above = above[above]
    for number, child in zip(lines.numbers, lines.children, strict=True):
        if above[node_of[child]] != 0:
            raise TreeError(
                f"{path}:{number}: node {child!r} is never reached from the root: it or a node above it "
                "is below itself (a cycle)"
            )
