"""A new kind of nodes is one class and one entry of the table: nothing else knows of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.small_data import LABELS, N_LABELS, make_toy, write_fasttext

import labeltree
from labeltree import LabelTreeClassifier, cli
from labeltree.config import Config
from labeltree.errors import ParameterError
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.dense.kind import DENSE
from labeltree.nodes.kind import Fit, FitInput
from labeltree.trees import BUILDERS

TRAIN, TEST = make_toy(200, seed=0), make_toy(100, seed=1)
ARITY = 5


class Frequencies(type(DENSE)):  # type: ignore[misc]
    """Each node has the frequency of its labels among the rows of its parent, whatever a row says.

    That is where dense nodes start, so they are fitted without any step.
    """

    name = "toy"

    def resolve(self, config: Config, n_labels: int, examples_per_label: float) -> Config:
        return dataclasses.replace(config, nodes=self.name, arity=config.arity or ARITY)

    def fit(self, given: FitInput) -> Fit:
        return super().fit(given._replace(config=dataclasses.replace(given.config, lr=0.0, epochs=1)))


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    KINDS.add("toy", Frequencies(), uses=("dim",))
    yield
    KINDS.remove("toy")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("tree", BUILDERS)
def test_it_is_trained_saved_and_loaded(tree: str, link: str, tmp_path: Path) -> None:
    model = labeltree.train(
        TRAIN.texts, TRAIN.Y, nodes="toy", tree=tree, link=link, trees=2, dim=8, label_names=LABELS
    )
    share = TRAIN.indicator.astype(np.float64)
    if LINKS[link].picks_label:
        share = share[share.any(axis=1)] / share.sum(axis=1, keepdims=True)[share.any(axis=1)]
    found = model.probability(TEST.texts, LABELS)
    np.testing.assert_allclose(found, np.broadcast_to(share.mean(axis=0), found.shape), rtol=1e-5)
    model.save(tmp_path / "m.labeltree")
    loaded = labeltree.load(tmp_path / "m.labeltree")
    assert loaded.config.nodes == "toy"
    assert loaded.label_trees == model.label_trees
    assert loaded.predict(TEST.texts, k=3) == model.predict(TEST.texts, k=3)
    assert loaded.predict(TEST.texts, k=3, search="beam") == model.predict(TEST.texts, k=3, search="beam")
    assert loaded.inspect() == model.inspect()


def test_what_it_chooses_is_used_and_kept() -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, nodes="toy", tree="complete", dim=8)
    assert model.label_trees[0].n_children.max() == ARITY
    assert model.chosen == {"toy": {"arity": ARITY}}


def test_the_command_line_knows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = tmp_path / "train.txt", tmp_path / "m.labeltree"
    data.write_text(write_fasttext(TRAIN))
    how = ["--nodes", "toy", "--dim", "8"]
    assert cli.main(["train", str(data), *how, "--dry-run"]) == 0
    assert "peak memory" in capsys.readouterr().out
    assert not path.exists()
    assert cli.main(["train", str(data), "-o", str(path), *how, "--quiet"]) == 0
    assert cli.main(["inspect", str(path)]) == 0
    assert "toy" in capsys.readouterr().out
    assert cli.main(["predict", str(path), str(data), "-k", "1"]) == 0
    assert LABELS[0] in capsys.readouterr().out


def test_its_parameters_have_an_effect_and_others_have_none() -> None:
    with pytest.raises(ParameterError, match="lr=1 has no effect where nodes is toy"):
        labeltree.train(TRAIN.texts, TRAIN.Y, nodes="toy", lr=1)


def test_the_estimator_takes_it() -> None:
    fitted = LabelTreeClassifier(nodes="toy", dim=8).fit(TRAIN.texts, TRAIN.indicator)
    assert fitted.predict_proba(TEST.texts).shape == (len(TEST.texts), N_LABELS)


def test_a_wrong_name_is_answered_with_it() -> None:
    with pytest.raises(ParameterError, match=r"toy.* 'tyo'"):
        labeltree.train(TRAIN.texts, TRAIN.Y, nodes="tyo")
