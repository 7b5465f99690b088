"""The table of what embedded texts gain."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.small_data import make_toy, write_fasttext

from benchmarks import embedding
from benchmarks.validate import Result


def test_a_row_is_a_mean_over_seeds() -> None:
    runs = [Result(p, 40.0, 30.0, 0.01, 2.0, 3.0) for p in (70.0, 72.0)]
    last = embedding.table({("some-set", "none"): runs}).splitlines()[-1]
    assert [cell.strip() for cell in last.split("|")[1:4]] == ["some-set", "none", "71.00"]


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an embedder, which may not be installed."""
    for part, seed in (("train", 0), ("test", 1)):
        (tmp_path / part).write_text(write_fasttext(make_toy(120, seed=seed)))
    monkeypatch.setattr(embedding, "data_file", lambda data, part: tmp_path / part)
    monkeypatch.setattr(sys, "argv", ["embedding", "--data", "toy", "--embed", "none", "--rows", "100"])
    embedding.main()
    assert len(capsys.readouterr().out.splitlines()) == 6
