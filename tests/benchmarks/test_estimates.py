"""The command that sets estimates beside the truth."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from benchmarks import estimates
from benchmarks.running import make_toy


@pytest.mark.parametrize(("options", "n_named"), [((), 2), (("--on-disk",), 1)])
def test_a_row_per_data_set(
    options: tuple[str, ...],
    n_named: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    packed = tmp_path / "data" / "toy" / "train.txt.xz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(lzma.compress(make_toy(tmp_path).train.source.read_bytes()))
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=":")
    estimates.main(["--data", "toy,absent", *options])
    printed = capsys.readouterr().out
    assert "absent: skipped" in printed
    cells = [cell.strip() for cell in printed.splitlines()[-1].split("|")[1:-1]]
    assert cells[:n_named] == ["toy", "sparse"][:n_named]
    assert all(float(cell) > 0 for cell in cells[n_named:])
