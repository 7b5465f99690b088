"""The commands explain and labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import labeltree
from labeltree import cli
from labeltree.cli.explain import wants_colour
from labeltree.decisions.rule import RankingRule

LINES = "".join(
    f"__label__{label} {words}\n"
    for _ in range(12)
    for label, words in (("bread", "flour yeast"), ("Cake", "sugar icing"), ("soup", "broth pot"))
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "train.txt").write_text(LINES)
    path = folder / "m.labeltree"
    assert cli.main(["train", str(folder / "train.txt"), "-o", str(path), "--quiet"]) == 0
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.txt"
    path.write_text("__label__x flour and yeast\nunheard\n")
    return path


def test_lines_are_explained(model: Path, questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", str(model), str(questions), "-k", "1"]) == 0
    out = capsys.readouterr().out
    assert "flour and yeast" in out
    assert "__label__x" not in out  # labels in the input are ignored
    assert "\x1b" not in out  # no colours in pipes
    assert "nothing in it is known" in out


def test_json_has_an_object_for_each_line(
    model: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--label", "soup", "--label", "Cake", "--json"]
    assert cli.main(["explain", str(model), str(questions), *how]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == ["flour and yeast", "unheard"]
    assert [label["label"] for label in lines[0]["labels"]] == ["soup", "Cake"]
    assert lines[1]["unknown"] is True


def test_labels_are_those_of_predict(
    model: Path, questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the model's rule, or without it."""
    tuned, path = labeltree.load(model), tmp_path / "tuned"
    weight = np.array([1000.0 if name == "soup" else 1.0 for name in tuned.label_names], np.float32)
    tuned.rule = RankingRule("p@1", 1, weight, np.full(3, 0.5, np.float32))
    tuned.save(path)
    for rule in (["--rule", "model"], ["--rule", "none"]):
        assert cli.main(["predict", str(path), str(questions), *rule]) == 0
        predicted = [line.split("\t")[::2] for line in capsys.readouterr().out.splitlines()]
        assert cli.main(["explain", str(path), str(questions), "--json", *rule]) == 0
        lines = [json.loads(line)["labels"] for line in capsys.readouterr().out.splitlines()]
        assert [[found["label"] for found in line] for line in lines] == predicted
        assert [line[0] for line in predicted] == ["bread" if rule[1] == "none" else "soup"] * 2


def test_a_page_is_written(model: Path, questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = questions.with_suffix(".html")
    assert cli.main(["explain", str(model), str(questions), "--html", str(page)]) == 0
    assert page.read_text(encoding="utf-8").count("<article>") == 2
    assert f"Page of 2 documents written to {page}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--label", "bred"], 1, "did you mean 'bread'?"),
        (["--json", "--html", "x.html"], 2, "--json has no effect with --html"),
        (["-k", "0"], 2, "-k"),
        (["--label", "bread", "-k", "7"], 2, "-k has no effect with --label"),
        (["--label", "bread", "--rule", "none"], 2, "--rule none has no effect with --label"),
        (["--html", "no such folder/x.html"], 2, "does not exist"),
    ],
)
def test_what_cannot_be_is_said(
    arguments: list[str],
    code: int,
    message: str,
    model: Path,
    questions: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["explain", str(model), str(questions), *arguments]) == code
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_input_that_is_not_utf8_is_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"flour\ncaf\xe9 flour\n")
    assert cli.main(["explain", str(model), str(path)]) == 1
    assert "UTF-8" in capsys.readouterr().err
    assert cli.main(["explain", str(model), str(path), "--skip-bad-lines", "--json"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert "Skipped 1 bad" in said.err


def test_vectors_are_explained_by_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = tmp_path / "train.xmlc", tmp_path / "m.labeltree"
    data.write_text("60 6 5\n" + "".join(f"{i % 3} {i % 3}:1 {3 + i % 2}:0.5\n" for i in range(60)))
    assert cli.main(["train", str(data), "-o", str(path), "--quiet"]) == 0
    assert cli.main(["explain", str(path), str(data), "-k", "1", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 60
    assert lines[0]["text"] is None
    assert {term["name"] for term in lines[0]["labels"][0]["terms"]} <= {"0", "3"}


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_colour()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour()


def test_labels_are_listed_with_their_rows(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["labels", str(model)]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == ["Cake\t12", "bread\t12", "soup\t12"]
    assert cli.main(["labels", str(model), "--search", "CAK", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"label": "Cake", "rows": 12}
    assert cli.main(["labels", str(model), "--search", "xyzzy"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "No label has 'xyzzy' in its name" in said.err
