"""A model's card and the version that wrote it: kept in its file, checked, and shown."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from support.golden import GOLDEN
from support.small_data import make_toy, write_fasttext

import labeltree
from labeltree import cli
from labeltree.errors import CorruptedModelError, ParameterError
from labeltree.storage.card import LONGEST_VALUE, MOST_ENTRIES, card_of_options, check_card
from labeltree.storage.container import read_model, write_model

TOY = make_toy(60)
CARD = {"licence": "CC0-1.0", "language": "de, français", "data.set-1_a": "Ω = 'x' \U0001f33f"}


def train(**arguments: Any) -> labeltree.Model:
    return labeltree.train(TOY.texts, TOY.Y, arity=2, max_leaves=3, **arguments)


def test_a_card_survives_saving_and_loading(tmp_path: Path) -> None:
    model = train(card=CARD)
    model.save(tmp_path / "m")
    loaded = labeltree.load(tmp_path / "m")
    assert loaded.card == loaded.inspect()["card"] == pickle.loads(pickle.dumps(model)).card == CARD
    loaded.card["licence"] = "MIT"
    loaded.save(tmp_path / "n")
    assert labeltree.load(tmp_path / "n").card == {**CARD, "licence": "MIT"}
    assert model.predict(TOY.texts) == loaded.predict(TOY.texts)


def test_the_version_is_kept_and_the_bytes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = train()
    assert (model.card, model.version) == ({}, labeltree.__version__)
    for name in ("a", "b"):
        train().save(tmp_path / name)
    labeltree.load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    monkeypatch.setattr("labeltree.storage.model_file.__version__", "99.1.dev0+x")
    model.save(tmp_path / "d")
    assert labeltree.load(tmp_path / "d").version == "99.1.dev0+x"


def test_older_files_have_neither() -> None:
    model = labeltree.load(GOLDEN / "text-1.labeltree")
    assert (model.card, model.version) == ({}, None)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("licence=MIT", "must be a dict"),
        ({"": "x"}, "lower-case letter"),
        ({"Licence": "x"}, "lower-case letter"),
        ({"a b": "x"}, "lower-case letter"),
        ({"k" * 65: "x"}, "lower-case letter"),
        ({1: "x"}, "lower-case letter"),
        ({"a": ""}, "a must be a text that is not empty"),
        ({"a": " "}, "a must be a text that is not empty"),
        ({"a": 3}, "but is 3"),
        ({"a": "x" * (LONGEST_VALUE + 1)}, "at most 4096 characters, but has 4097"),
        ({"a": "two\nlines"}, r"one line of valid Unicode, but has '\\n'"),
        ({"a": "red\x1b[31m"}, r"'\\x1b'"),
        ({"a": "\udcff"}, r"'\\udcff'"),
        ({"a": "x\u2028y"}, "one line"),
        ({f"k{number}": "x" for number in range(MOST_ENTRIES + 1)}, "at most 64 entries, but has 65"),
    ],
)
def test_a_wrong_card_is_refused(card: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=message):
        labeltree.train(tmp_path / "is not read", card=card)
    model = train()
    model.card = card
    with pytest.raises(ParameterError, match=message):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong", [{"card": None}, {"card": {"A": "x"}}, {"card": {"a": 1}}, {"version": 1}, {"version": "1\n"}]
)
def test_a_file_is_checked(wrong: dict[str, Any], tmp_path: Path) -> None:
    train().save(tmp_path / "m")
    tensors, metadata = read_model(tmp_path / "m")
    write_model(tmp_path / "n", tensors, {**metadata, **wrong})
    with pytest.raises(CorruptedModelError):
        labeltree.load(tmp_path / "n")
    write_model(tmp_path / "n", tensors, {**metadata, "of a later version": [1]})
    assert labeltree.load(tmp_path / "n").version == labeltree.__version__


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["licence"], "'licence' has no '='"),
        (["a=1", "b=2", "a=3"], "gives a twice, '1' and '3'"),
        (["=x"], "lower-case letter"),
        (["a="], "not empty"),
    ],
)
def test_wrong_options(given: list[str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        card_of_options(given)


def test_options() -> None:
    assert card_of_options(["a=b=c", "d= e"]) == {"a": "b=c", "d": " e"}
    assert check_card({}) == card_of_options([]) == {}


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "train.txt", tmp_path / "m"
    data.write_text(write_fasttext(TOY))
    arguments = ["train", str(data), "-o", str(model), "-q"]
    assert cli.main([*arguments, "--card", "licence=CC0-1.0", "--card", "language=de"]) == 0
    assert cli.main(["inspect", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["version"], facts["card"]) == (
        labeltree.__version__,
        {"licence": "CC0-1.0", "language": "de"},
    )
    assert cli.main(["inspect", str(model)]) == 0
    shown = capsys.readouterr().out
    assert f"\nwritten by labeltree: {labeltree.__version__}\n" in shown
    assert "\ncard:\n  language: de\n  licence: CC0-1.0\nparameters:\n" in shown
    assert cli.main(["inspect", str(GOLDEN / "text-1.labeltree")]) == 0
    shown = capsys.readouterr().out
    assert "\nwritten by labeltree: unknown\nparameters:\n" in shown
    assert cli.main([*arguments, "--card", "licence"]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err
