"""The load on the service, in small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.serving import TEXTS, text_model

from benchmarks import serving

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU times of processes are read from /proc")
def test_it_prints_a_line_for_each_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text_model().save(tmp_path / "model.labeltree")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    files = [str(tmp_path / "model.labeltree"), str(tmp_path / "texts.txt")]
    serving.main([*files, "--requests", "20", "--connections", "2", "--batch", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[:3]] == ["1 connection", "2 connections", "batches of 4"]
    assert all("requests/s" in line and "p99" in line for line in lines[:3])
    assert lines[3].startswith("rows per CPU second")
