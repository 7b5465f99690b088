"""A new way to build trees is one class and one entry of the table: nothing else knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_data import LABELS, N_LABELS, make_toy, write_fasttext

import labeltree
from labeltree import LabelTree, LabelTreeClassifier, cli
from labeltree.config import Config
from labeltree.errors import ParameterError
from labeltree.nodes import KINDS, LINKS
from labeltree.tree import Shape
from labeltree.trees import BUILDERS
from labeltree.trees.builder import TreeBuilder, TreeInput

TRAIN, TEST = make_toy(200, seed=0), make_toy(100, seed=1)


class Halves(TreeBuilder):
    """Two groups: labels of even and of odd numbers."""

    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        labels = np.arange(given.rows.Y.n_labels)
        return LabelTree.from_parents([-1, 0, 0, *(1 + labels % 2)], [-1, -1, -1, *labels])

    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        return Shape(n_inner=3, n_children=-(-n_labels // 2), depth=2)


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    BUILDERS.add("toy", Halves(), uses=("arity",))
    yield
    BUILDERS.remove("toy")


def halves(model: labeltree.Model) -> list[set[str]]:
    tree = model.label_trees[0]
    above = tree.parent[tree.leaf_of_label]
    return [{model.label_names[label] for label in np.flatnonzero(above == node)} for node in (1, 2)]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("nodes", KINDS)
def test_it_is_trained_saved_and_loaded(nodes: str, link: str, tmp_path: Path) -> None:
    model = labeltree.train(
        TRAIN.texts, TRAIN.Y, tree="toy", nodes=nodes, link=link, trees=2, label_names=LABELS
    )
    assert halves(model) == [set(LABELS[0::2]), set(LABELS[1::2])]
    model.save(tmp_path / "m.labeltree")
    loaded = labeltree.load(tmp_path / "m.labeltree")
    assert loaded.config.tree == "toy"
    assert loaded.label_trees == model.label_trees
    assert loaded.predict(TEST.texts, k=3) == model.predict(TEST.texts, k=3)
    assert loaded.inspect() == model.inspect()


def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = tmp_path / "train.txt", tmp_path / "m.labeltree"
    data.write_text(write_fasttext(TRAIN))
    how = ["--tree", "toy", "--arity", "7"]
    assert cli.main(["train", str(data), *how, "--dry-run"]) == 0
    assert "peak memory" in capsys.readouterr().out
    assert not path.exists()
    assert cli.main(["train", str(data), "-o", str(path), *how, "--quiet"]) == 0
    assert cli.main(["inspect", str(path)]) == 0
    assert "toy" in capsys.readouterr().out
    assert cli.main(["test", str(path), str(data)]) == 0


def test_its_parameters_have_an_effect_and_others_have_none() -> None:
    assert labeltree.train(TRAIN.texts, TRAIN.Y, tree="toy", arity=7).config.arity == 7
    with pytest.raises(ParameterError, match="max_leaves=7 has no effect where tree is toy"):
        labeltree.train(TRAIN.texts, TRAIN.Y, tree="toy", max_leaves=7)


def test_the_estimator_takes_it() -> None:
    fitted = LabelTreeClassifier(tree="toy").fit(TRAIN.texts, TRAIN.indicator)
    assert fitted.model_.config.tree == "toy"
    assert fitted.predict_proba(TEST.texts).shape == (len(TEST.texts), N_LABELS)


def test_a_wrong_name_is_answered_with_it() -> None:
    with pytest.raises(ParameterError, match=r"learned, toy or an existing tree file, but is 'tyo'"):
        labeltree.train(TRAIN.texts, TRAIN.Y, tree="tyo")
