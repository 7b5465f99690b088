"""The command that kills, starves and damages trainings."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.running import make_toy


@pytest.mark.slow
def test_all_end_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_toy(tmp_path).train.source
    assert faults.run_sections(data, ["process", "damage"], kills=1, worker_kills=0, seed=1)
    printed = capsys.readouterr().out
    assert "kill 1 after" in printed
    assert "rows.part cut off" in printed
    assert printed.endswith(" good: reached\n")


def test_damage_is_done(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for damage in faults._DAMAGES.values():
        path.write_bytes(bytes(5000))
        damage(path, random.Random(1))
        assert path.read_bytes() != bytes(5000)
