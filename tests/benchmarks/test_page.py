"""The bars of the page, measured in small."""

from __future__ import annotations

import shutil
import sys

import pytest

from benchmarks import page


@pytest.mark.slow
def test_the_page_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("playwright", reason="no playwright: pip install 'labeltree[browser]'")
    if shutil.which("chromium") is None:
        pytest.skip("no chromium: apt-get install chromium")
    monkeypatch.setattr(sys, "argv", ["page", "--labels", "300", "--rounds", "2"])
    page.main()
    told = capsys.readouterr().out
    assert told.count("bar ") == 3
