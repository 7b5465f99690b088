"""Tree files: reading, refusing, writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeltree import LabelTree
from labeltree.errors import TreeError
from labeltree.trees.file import read_tree, write_tree
from labeltree.trees.shapes import build_complete

NAMES = ["a", "b", "c d"]
GOOD = "root left a\nroot right\nright x b\nright y c d\n"


def read(folder: Path, text: str | bytes, names: list[str] = NAMES) -> LabelTree:
    path = folder / "tree.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_tree(path, names)


def test_a_small_tree(tmp_path: Path) -> None:
    tree = read(tmp_path, GOOD)
    assert tree.parent.tolist() == [-1, 0, 0, 2, 2]
    assert tree.label.tolist() == [-1, 0, -1, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n\n" + GOOD,
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD.rstrip("\n"),
        "- root\n" + GOOD,
        "root\tleft  a \n  root   right\nright x b\nright y\t\tc d\n",
        "root left a\nright x b\nright y c d\nroot right\n",
    ],
)
def test_the_same_tree_in_other_words(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == read(tmp_path, GOOD)


def test_a_single_label(tmp_path: Path) -> None:
    assert read(tmp_path, "- 0 only one\n", ["only one"]).n_nodes == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no lines"),
        ("# nothing\n\n", "has no lines"),
        ("root\n", r"tree\.txt:1: a line is `parent child \[label\]`, but this one is 'root'"),
        (GOOD + "right left\n", r"tree\.txt:5: node 'left' has a parent already, on line 1"),
        (GOOD + "other z\n", r"tree\.txt:5: node 'other' has no parent, and neither has 'root' \(line 1\)"),
        ("- root\n- other\n", r"tree\.txt:2: node 'other' has no parent"),
        ("x y\ny x\n", "every node is a child"),
        ("x x a\n", "every node is a child"),
        (GOOD + "v w\nw v\n", r"tree\.txt:5: node 'w' is never reached .*a cycle"),
        (GOOD.replace("c d", "e"), r"tree\.txt:4: the data has no label 'e'"),
        (GOOD.replace("c d", "b"), r"tree\.txt:4: the label 'b' stands on line 3"),
        ("root left a\nroot right b\n", "1 labels of the data have no leaf: 'c d'"),
        ("- root a\n", "2 labels of the data have no leaf: 'b', 'c d'"),
        (
            GOOD.replace("right\n", "right a\n"),
            r"tree\.txt:2: node 'right' has the label 'a', but also children",
        ),
        ("- root a\nroot x b\nroot y c d\n", r"tree\.txt:1: node 'root' has the label 'a', but also"),
        (GOOD + "right z\n", r"tree\.txt:5: node 'z' has neither a label nor children"),
        ("- root\n", "neither a label nor children"),
        ("root left a\nroot right\nright x b\n", r"tree\.txt:3: node 'right' has a single child"),
        (b"root \xff \xfe\n", "the data has no label"),
    ],
)
def test_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        read(tmp_path, text)


def test_unreadable_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="cannot be read"):
        read_tree(tmp_path / "missing", NAMES)
    with pytest.raises(TreeError, match="cannot be read"):
        read_tree(tmp_path, NAMES)
    with pytest.raises(TreeError, match="cannot be written"):
        write_tree(tmp_path / "missing" / "tree.txt", read(tmp_path, GOOD), NAMES)


TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1, max_size=6)
SPACED = st.sampled_from(
    [" a", "a ", "a", "a b", "#", "- -", "\u3000x", "a:b,c", "0 1 2", "\ufeffb", "x\x85y"]
)
LABEL_NAMES = st.lists((TEXT | SPACED).filter(str.strip), min_size=1, max_size=12, unique=True)


@given(LABEL_NAMES, st.integers(2, 4))
def test_written_and_read_again(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], arity: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.txt"
    tree = build_complete(np.arange(len(names)), arity)
    write_tree(path, tree, names)
    assert read_tree(path, names) == tree


def test_bytes_that_are_not_utf8_survive(tmp_path: Path) -> None:
    names = [b"\xff\xfe".decode("utf-8", "surrogateescape"), "b"]
    tree = build_complete([1, 1], 2)
    write_tree(tmp_path / "tree.txt", tree, names)
    assert b" \xff\xfe\n" in (tmp_path / "tree.txt").read_bytes()
    assert read_tree(tmp_path / "tree.txt", names) == tree


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "1 label names given for a tree of 2 labels"),
        (["a", ""], "label 1: the name ''"),
        (["a\nb", "c"], "label 0: the name"),
        (["a", "a"], "must differ"),
        (["a", "\ud800"], "UTF-8"),
    ],
)
def test_names_that_cannot_be_written(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(TreeError, match=message):
        write_tree(tmp_path / "tree.txt", build_complete([1, 1], 2), names)
    assert list(tmp_path.iterdir()) == []
