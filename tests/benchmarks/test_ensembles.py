"""The command that sets several trees beside one."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from benchmarks import ensembles
from benchmarks.running import make_toy


def test_a_row_per_number_of_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    toy = make_toy(tmp_path)
    for part, source in (("train", toy.train.source), ("test", toy.test.source)):
        (folder / f"{part}.txt.xz").write_bytes(lzma.compress(source.read_bytes()))
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ensembles.main(["--data", "toy,absent", "--trees", "2", "-k", "3", "--models", str(tmp_path / "models")])
    printed = capsys.readouterr().out
    assert "absent: skipped" in printed
    one, two = ([cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()[-2:])
    assert (one[:2], two[:2]) == (["toy", "1"], ["toy", "2"])
    assert (one[3], one[5], one[-2:]) == ("1.00", "1.00", ["100.00", "0.000"])
    assert (tmp_path / "models" / "toy-2.labeltree").exists()
