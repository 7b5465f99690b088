"""Rules that training tunes on the rows that it holds out at first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.small_data import make_toy, write_fasttext

import labeltree
from labeltree import cli
from labeltree.decisions.tuning import Tuned
from labeltree.errors import ParameterError
from labeltree.estimator import LabelTreeClassifier

TOY, FEW, TEST = make_toy(400), make_toy(60, seed=2), make_toy(60, seed=4)
TREE = dict(arity=2, max_leaves=3)


@pytest.mark.parametrize("neighbours", [0, 5])
@pytest.mark.parametrize("measure", ["micro-f1", "macro-f1@2", "precision>=0.5"])
def test_the_model_is_the_same_but_for_its_rule(neighbours: int, measure: str, tmp_path: Path) -> None:
    given = dict(neighbours=neighbours, **TREE)
    plain = labeltree.train(TOY.texts, TOY.Y, **given)
    tuned = labeltree.train(TOY.texts, TOY.Y, tune_for=measure, threads=2, **given)
    assert plain.rule is None
    assert plain.tuned is None
    assert tuned.rule is not None
    assert tuned.tuned is not None
    assert tuned.tuned.rule is tuned.rule
    assert tuned.inspect()["rule"] == measure
    assert tuned.predict(TEST.texts, 3, rule="none") == plain.predict(TEST.texts, 3)
    again = labeltree.train(TOY.texts, TOY.Y, tune_for=measure, threads=1, **given)
    assert again.rule is not None
    assert all(map(np.array_equal, again.rule.arrays, tuned.rule.arrays))
    tuned.save(tmp_path / "m")
    assert labeltree.load(tmp_path / "m").predict(TEST.texts) == tuned.predict(TEST.texts)


def test_rows_must_be_held_out() -> None:
    with pytest.raises(ParameterError, match=f"at least 250 rows of .* but there are {len(FEW.texts)}"):
        labeltree.train(FEW.texts, FEW.Y, tune_for="micro-f1")
    with pytest.raises(ParameterError, match=r"but with calibrate=False .* there are none"):
        labeltree.train("no such file", tune_for="micro-f1", calibrate=False)  # before anything is read
    with pytest.raises(ParameterError, match="measure 'what' is not known"):
        labeltree.train(TOY.texts, TOY.Y, tune_for="what")


def test_the_option_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "train.txt", tmp_path / "m"
    data.write_text(write_fasttext(TOY))
    assert cli.main(["train", str(data), "-o", str(out), "--tune-for", "instance-f1"]) == 0
    assert "on rows it was not fitted to" in capsys.readouterr().err
    monkeypatch.setattr(Tuned, "notices", lambda _: ["A rule to beware of."])
    assert cli.main(["train", str(data), "-o", str(out), "--tune-for", "instance-f1"]) == 0
    said = capsys.readouterr()
    assert (said.out, "A rule to beware of." in said.err) == ("", True)
    assert labeltree.load(out).rule is not None
    assert cli.main(["train", str(data), "--dry-run", "--tune-for", "micro-f1"]) == 2


def test_a_goal_out_of_reach_costs_no_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model is as it would be without the goal, and it is told of."""
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(list("abcdefgh"), 4)) for _ in range(400)]
    data, out = tmp_path / "train.txt", tmp_path / "m"
    lines = [f"__label__{random.integers(9)} {text}\n" for text in texts]
    data.write_text("".join(lines))
    assert cli.main(["train", str(data), "-o", str(out), "--tune-for", "precision>=0.99"]) == 0
    assert "There is no rule: no threshold has a precision of 0.99" in capsys.readouterr().err
    model = labeltree.load(out)
    assert model.rule is None
    assert len(model.predict(texts[:3], 2)) == 3


def test_the_threshold_of_the_estimator() -> None:
    auto = LabelTreeClassifier(threshold="auto", **TREE).fit(TOY.texts, TOY.Y)
    assert auto.model_.rule is not None
    assert auto.model_.rule.measure == "micro-f1"
    found = auto.predict(TEST.texts)
    wanted = auto.model_.predict(TEST.texts)
    names = [{str(auto.classes_[label]) for label in found[i].indices} for i in range(found.shape[0])]
    assert names == [{name for name, _ in row} for row in wanted]
    few = LabelTreeClassifier(threshold="auto", **TREE).fit(FEW.texts, FEW.Y)
    plain = LabelTreeClassifier(**TREE).fit(FEW.texts, FEW.Y)
    assert few.model_.rule is None
    assert (few.predict(TEST.texts) != plain.predict(TEST.texts)).nnz == 0
    classes = [labels[0] if labels else "none" for labels in TOY.Y]
    assert LabelTreeClassifier(threshold="auto", **TREE).fit(TOY.texts, classes).model_.rule is None
