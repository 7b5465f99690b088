"""What the experiments share: nothing is run twice, nothing finished is lost, files are written whole."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments import writing
from experiments.ledger import Ledger, run_missing
from experiments.writing import mean_and_deviation, write_csv, write_page


def test_a_ledger_remembers_across_processes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    ledger = Ledger(path)
    assert ledger.find({"seed": 1}) is None
    assert not path.exists()
    ledger.add({"seed": 1, "dims": (2, 3)}, {"p@1": 0.5, "pair": (1, 2)})
    ledger.add({"seed": 2}, {"p@1": 0.25})
    for read in (ledger, Ledger(path)):  # the same before and after it was read from the file
        assert read.find({"dims": [2, 3], "seed": 1}) == {"p@1": 0.5, "pair": [1, 2]}
        assert read.find({"seed": 2}) == {"p@1": 0.25}
        assert read.find({"seed": "2"}) is None
        assert read.find({"seed": 2, "more": None}) is None
    assert len(path.read_text().splitlines()) == 2


def test_what_a_ledger_gives_is_the_callers(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "runs.jsonl")
    ledger.add({"seed": 1}, {"p@1": 0.5})
    found = ledger.find({"seed": 1})
    assert found is not None
    found["p@1"] = 1.0
    assert ledger.find({"seed": 1}) == {"p@1": 0.5}


@pytest.mark.parametrize("kept", [1, 10, -1])  # -1: all but the end of the line
def test_a_torn_line_is_left_out_and_does_not_spoil_the_next(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "runs.jsonl"
    ledger = Ledger(path)
    ledger.add({"seed": 1}, {"p@1": 0.5})
    whole = path.read_bytes()
    ledger.add({"seed": 2}, {"p@1": 0.25})
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:kept])
    resumed = Ledger(path)
    assert resumed.find({"seed": 1}) == {"p@1": 0.5}
    assert resumed.find({"seed": 2}) is None
    resumed.add({"seed": 3}, {"p@1": 0.75})
    resumed.add({"seed": 4}, {"p@1": 1.0})
    again = Ledger(path)
    assert [again.find({"seed": seed}) for seed in (1, 3, 4)] == [{"p@1": 0.5}, {"p@1": 0.75}, {"p@1": 1.0}]


def test_numbers_that_json_lacks_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "runs.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        ledger.add({"seed": 1}, {"p@1": float("nan")})
    assert not ledger.path.exists()


def test_only_missing_runs_are_run_and_records_keep_the_order(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    ran: list[int] = []

    def run(key: Mapping[str, Any]) -> dict[str, Any]:
        ran.append(key["seed"])
        if key["seed"] == 4 and len(ran) == 3:
            raise KeyboardInterrupt  # stopped by its user
        return {"square": key["seed"] ** 2}

    keys = [{"seed": seed} for seed in (3, 1, 4, 1, 5)]
    with pytest.raises(KeyboardInterrupt):
        run_missing(Ledger(path), keys, run, "squares")
    assert ran == [3, 1, 4]
    records = run_missing(Ledger(path), keys, run, "squares")
    assert ran == [3, 1, 4, 4, 5]
    assert records == [{"seed": seed, "square": seed**2} for seed in (3, 1, 4, 1, 5)]
    run_missing(Ledger(path), keys, run, "squares")
    assert len(ran) == 5
    assert [json.loads(line)["key"]["seed"] for line in path.read_text().splitlines()] == [3, 1, 4, 5]


def test_where_an_experiment_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    parser = writing.parser_of("What it does.")
    assert isinstance(parser, argparse.ArgumentParser)
    assert writing.output_folder(parser.parse_args([])) == Path("docs/experiments")
    assert (tmp_path / "docs" / "experiments").is_dir()
    chosen = parser.parse_args(["--quick", "--output", "here", "--threads", "2"])
    assert (writing.output_folder(chosen), chosen.threads) == (Path("here"), 2)
    assert capsys.readouterr().out == ""
    folders = {writing.output_folder(parser.parse_args(["--quick"])) for _ in range(2)}
    assert len(folders) == 2
    printed = capsys.readouterr().out
    for folder in folders:
        assert str(folder) in printed
        assert not any(folder.iterdir())
        folder.rmdir()


def test_csv_has_the_columns_of_all_records(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    write_csv(path, [{"a": 1, "b": "x,y"}, {"a": 2, "c": 0.5}])
    assert path.read_text() == 'a,b,c\n1,"x,y",\n2,,0.5\n'
    assert list(tmp_path.iterdir()) == [path]


def test_page_names_its_command(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("a longer page than the new one\n" * 10)
    write_page(path, "Title", "python -m experiments.some", ["First.\n", "| a |\n|---|"])
    title, command, *rest = path.read_text().split("\n\n")
    assert title == "# Title"
    assert "`python -m experiments.some`" in command
    assert rest == ["First.", "| a |\n|---|\n"]
    assert list(tmp_path.iterdir()) == [path]


def test_without_matplotlib_there_are_no_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert writing.load_pyplot() is None
    assert "matplotlib" in capsys.readouterr().err
    assert writing.save_figure(None, tmp_path / "figure") == []
    assert not any(tmp_path.iterdir())


def test_figures_are_stable_to_the_byte(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        figure, axes = writing.load_pyplot().subplots()
        axes.plot([0, 1], [1, 0])
        assert writing.save_figure(figure, folder / "a.b-curve") == ["a.b-curve.png", "a.b-curve.svg"]
        written.append([(folder / f"a.b-curve.{suffix}").read_bytes() for suffix in ("png", "svg")])
    assert written[0] == written[1]


def test_mean_and_deviation_as_the_paper_prints_them() -> None:
    assert mean_and_deviation([71.0, 73.0]) == "72.00 ± 1.41"
    assert mean_and_deviation([71.684]) == "71.68"
    assert mean_and_deviation(x / 2 for x in (2, 2, 2)) == "1.00 ± 0.00"
