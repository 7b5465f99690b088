"""A process watched from outside: its end, its memory, and patience."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.watching import anonymous_bytes, watch


def start(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
def test_peak_is_of_memory_that_was_given_back_too() -> None:
    program = "import time; a = bytearray(80_000_000); time.sleep(1); del a; time.sleep(0.3); exit(3)"
    status, peak = watch(start(program), timeout=60)
    assert status == 3
    assert 80_000_000 < peak < 200_000_000


def test_a_process_that_takes_too_long_is_left_to_the_caller() -> None:
    process = start("import time; time.sleep(60)")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            watch(process, timeout=0.3)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_process_that_is_gone_has_no_memory(tmp_path: Path) -> None:
    assert anonymous_bytes(tmp_path / "status") == 0
