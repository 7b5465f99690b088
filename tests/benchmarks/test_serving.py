"""The load on the service, in small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.serving import TEXTS, text_model

from benchmarks.serving import __main__ as serving
from benchmarks.serving import load

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU times of processes are read from /proc")
@pytest.mark.parametrize("has_wrk", [False, True])
def test_it_prints_a_line_for_each_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_wrk: bool
) -> None:
    if has_wrk and not load.has_wrk():
        pytest.skip("no wrk: apt install wrk")
    monkeypatch.setattr(serving, "has_wrk", lambda: has_wrk)
    monkeypatch.setattr(serving, "cores", lambda: (None, None))  # this process goes on
    text_model().save(tmp_path / "model.labeltree")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    files = [str(tmp_path / "model.labeltree"), str(tmp_path / "texts.txt")]
    serving.main([*files, "--seconds", "0.2", "--connections", "1,2", "--rate", "50", "--batch", "4"])
    lines = capsys.readouterr().out.splitlines()
    names = ["1 connection", "2 connections", "50 a second", "batches of 4"]
    assert [line.split("  ")[0] for line in lines[:4]] == names
    assert all("requests/s" in line and "p99" in line for line in lines[:4])
    assert lines[4].startswith("rows per CPU second")
