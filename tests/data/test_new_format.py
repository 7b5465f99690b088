"""A new format is an object and a line in the table: all that reads files takes it then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.small_data import LABELS, make_toy

import labeltree
from labeltree import cli
from labeltree.data.formats import FORMATS
from labeltree.data.lines import REASONS, LineFormat, Lines, Spans
from labeltree.data.rows import pointers
from labeltree.errors import DataError

NO_BAR = 99


class BarLines(LineFormat):
    """``some words|label,label``"""

    name = "bar"
    extensions = (".bar",)
    example = "one two|a,b\ntwo three|b\n"
    reasons = {**REASONS, NO_BAR: ("expected a bar", "write words|label,label")}  # noqa: RUF012

    def begins(self, line: bytes) -> bool:
        return line.count(b"|") == 1

    def where_labels_are(self, label_prefix: str) -> str:
        return "labels are what follows the bar"

    def scan(self, lines: Lines) -> Spans:
        text_end, starts, ends, n_labels = lines.end.copy(), [], [], []
        for row in range(len(lines.start)):
            text, bar, labels = lines.content(row).partition(b"|")
            text_end[row] = at = lines.start[row] + len(text)
            n_labels.append(0)
            if not bar:
                lines.status[row], lines.place[row] = NO_BAR, lines.start[row]
            for label in filter(None, labels.split(b",")):
                starts.append(at + 1)
                ends.append(at := at + 1 + len(label))
                n_labels[-1] += 1
        start, end = np.array(starts, np.int64), np.array(ends, np.int64)
        return Spans(lines.buffer, lines.start, text_end, start, end, pointers(n_labels))


TOY = make_toy(60)
SMALL = dict(max_iterations=2)
ROWS = [f"{text}|{','.join(labels)}\n" for text, labels in zip(TOY.texts, TOY.Y, strict=True)]


@pytest.fixture(autouse=True)
def bar() -> Iterator[None]:
    FORMATS.add("bar", BarLines())
    yield
    FORMATS.remove("bar")


@pytest.mark.parametrize(("name", "how"), [("data", {}), ("data.bar", {}), ("data", {"format": "bar"})])
def test_it_is_trained_on_tested_and_found_by_itself(name: str, how: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("".join(ROWS))
    model = labeltree.train(path, **SMALL, **how)
    assert sorted(model.label_names) == sorted(LABELS)
    assert model.predict(TOY.texts, 1) == labeltree.train(TOY.texts, TOY.Y, **SMALL).predict(TOY.texts, 1)
    assert model.test(path, **how)["p@1"] == model.test(TOY.texts, TOY.Y)["p@1"] > 0.5


def test_the_command_line_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "data", tmp_path / "model"
    data.write_text("words without a bar\n" + "".join(ROWS))
    given = ["--format", "bar", "--skip-bad-lines"]
    assert cli.main(["train", str(data), "-o", str(model), "--max-iterations", "2", *given]) == 0
    assert cli.main(["test", str(model), str(data), *given]) == 0
    capsys.readouterr()
    assert cli.main(["predict", str(model), str(data), "-k", "1", *given]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ROWS)
    assert cli.main(["train", "--help"]) == 0
    assert "|bar]" in capsys.readouterr().out


def test_its_errors_are_told_like_those_of_others(tmp_path: Path) -> None:
    path = tmp_path / "data.bar"
    path.write_text("one|a\ntwo\n")
    with pytest.raises(DataError, match=r"data.bar, line 2: expected a bar at byte 1: 'two'; write words\|"):
        labeltree.train(path)
    path.write_text("one|\ntwo|\n")
    with pytest.raises(DataError, match="read as bar, where labels are what follows the bar"):
        labeltree.train(path)
