"""The timing of output layers, in little."""

from __future__ import annotations

import pytest

from benchmarks import torch_step
from benchmarks.torch_step import Timed, table


def test_the_table_compares_with_the_first() -> None:
    found = table([Timed("tree", 2.0, 40), Timed("matrix", 50.0, 100_000)])
    assert found.splitlines()[2:] == ["| tree | 40 | 2.0 | 1.0 |", "| matrix | 100,000 | 50.0 | 25.0 |"]


def test_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch.nn", reason="torch is not installed: pip install 'labeltree[torch]'")
    tree, matrix, _ = torch_step.main(["--labels", "300", "--dim", "8", "--batch", "4", "--steps", "2"])
    assert tree.pairs_per_row < 200 < matrix.pairs_per_row == 300
    assert "PLTHead" in capsys.readouterr().out
