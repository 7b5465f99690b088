"""`labeltree predict -o`: lines, JSON or a Parquet table, all of it or nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labeltree
from labeltree import cli
from labeltree.data import predictions

TEXTS = [f"word{i % 4} more{i % 3}" for i in range(40)] + ["unknown"]
LABELS = [[f"label{i % 4}", f"group{i % 2}"] for i in range(40)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("predict") / "m.labeltree"
    labeltree.train(TEXTS[:-1], LABELS).save(path)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def read_table(path: Path) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(path)


@pytest.mark.parametrize("group_rows", [7, predictions.GROUP_ROWS])
def test_tables(model: Path, data: Path, group_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(predictions, "GROUP_ROWS", group_rows)
    output = data.with_name("out.parquet")
    arguments = ["predict", str(model), str(data), "-o", str(output), "-k", "3", "--if-unknown", "nothing"]
    assert cli.main(arguments) == 0
    file = read_table(output)
    assert str(file.schema_arrow.remove_metadata()).splitlines()[0] == "row: int64"
    types = [str(field.type).replace("element", "item") for field in file.schema_arrow]
    assert types == ["int64", "list<item: string>", "list<item: float>"]
    assert file.num_row_groups == -(-len(TEXTS) // group_rows)
    table = file.read().to_pydict()
    assert table["row"] == list(range(len(TEXTS)))
    expected = labeltree.load(model).predict(TEXTS, 3, if_unknown="nothing")
    assert table["labels"] == [[label for label, _ in row] for row in expected]
    assert table["probabilities"] == [[p for _, p in row] for row in expected]
    assert table["labels"][-1] == []  # the unknown one


def test_tables_in_and_out(model: Path, tmp_path: Path) -> None:
    """What is written can be read: the texts' file and the predictions' one have the same rows."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": list(range(41)), "body": TEXTS}), tmp_path / "in.parquet")
    arguments = ["predict", str(model), str(tmp_path / "in.parquet"), "--text-column", "body"]
    assert cli.main([*arguments, "-o", str(tmp_path / "out.parquet"), "-k", "0", "--threshold", "0.01"]) == 0
    found = read_table(tmp_path / "out.parquet").read().to_pydict()
    expected = labeltree.load(model).predict(TEXTS, 0, threshold=0.01)
    assert found["labels"] == [[label for label, _ in row] for row in expected]
    assert np.isclose(found["probabilities"][0][0], expected[0][0][1])


def test_no_rows_are_a_table_without_rows(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "empty.jsonl").write_text("")
    output = tmp_path / "out.parquet"
    assert cli.main(["predict", str(model), str(tmp_path / "empty.jsonl"), "-o", str(output)]) == 0
    assert read_table(output).metadata.num_rows == 0


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_other_names_get_what_is_printed(
    model: Path, data: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = data.with_name("out.txt")
    assert cli.main(["predict", str(model), str(data), *options]) == 0
    printed = capsys.readouterr().out
    assert cli.main(["predict", str(model), str(data), *options, "-o", str(output)]) == 0
    assert capsys.readouterr().out == ""
    assert output.read_text() == printed


@pytest.mark.parametrize("name", ["out.parquet", "out.txt"])
def test_nothing_is_written_where_a_row_is_bad(
    model: Path, data: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    output = data.with_name(name)
    output.write_text("before")
    with data.open("a") as file:
        file.write("{broken\n")
    assert cli.main(["predict", str(model), str(data), "-o", str(output)]) == 1
    assert "new.jsonl, line 42" in capsys.readouterr().err
    assert output.read_text() == "before"
    assert sorted(path.name for path in data.parent.iterdir()) == ["new.jsonl", name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-o {folder}/out.parquet --json", "--json has no effect with --output"),
        ("-o {folder}/out.parquet --skip-bad-lines", "lines that are left out would have no number"),
        ("-o {folder}/none/out.parquet", "does not exist; create it first"),
        ("-o {folder}/new.jsonl", "is an input too"),
        ("-o -", "cannot go to standard output"),
    ],
)
def test_what_cannot_be_is_refused_first(
    data: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    given = options.replace("{folder}", str(data.parent)).split()
    assert cli.main(["predict", "no such model", str(data), *given]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in data.parent.iterdir()] == ["new.jsonl"]


@pytest.mark.parametrize("command", ["predict -o", "test --scorecard", "test --per-label"])
@pytest.mark.parametrize("mask", ["--only", "--without"])
def test_a_list_of_labels_is_not_overwritten(
    model: Path, data: Path, mask: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = data.with_name("mask.txt")
    labels.write_text("topic-0\n")
    name, option = command.split()
    assert cli.main([name, str(model), str(data), option, str(labels), mask, str(labels)]) == 2
    assert "is an input too" in " ".join(capsys.readouterr().err.split())
    assert labels.read_text() == "topic-0\n"


def test_without_pyarrow_the_error_says_what_to_install(
    model: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    output = data.with_name("out.parquet")
    assert cli.main(["predict", str(model), str(data), "-o", str(output)]) == 1
    assert "out.parquet: Parquet files need pyarrow" in capsys.readouterr().err
    assert not output.exists()
