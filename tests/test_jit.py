"""Compiled kernels are kept, and what only compiling needs is not loaded with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
import numpy as np
from labeltree.kernels.jit import kernel

@kernel
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result

@kernel
def double(values):
    return values * 2
"""
# numba.np.arraymath stands for all that Numba can compile; it imports scipy.linalg.
RUN = """
import sys
import numpy as np
import sums
assert sums.total(np.arange(4.0)) == 6.0
print(len(sums.total.stats.cache_hits), "numba.np.arraymath" in sys.modules)
"""


def run(folder: Path, code: str, cache: Path) -> list[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_second_process_loads_the_machine_code_alone(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)
    assert run(tmp_path, RUN, tmp_path / "cache") == ["0", "True"]
    assert run(tmp_path, RUN, tmp_path / "cache") == ["1", "False"]


def test_after_loading_other_kernels_can_still_be_compiled(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)
    run(tmp_path, RUN, tmp_path / "cache")
    compile_another = RUN + "print(*sums.double(np.arange(3)))\nprint(sums.total(np.arange(4)))"
    assert run(tmp_path, compile_another, tmp_path / "cache") == ["1", "False", "0", "2", "4", "6.0"]


def test_a_changed_file_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)
    run(tmp_path, RUN, tmp_path / "cache")
    (tmp_path / "sums.py").write_text(MODULE.replace("result = 0.0", "result = 1.0"))
    assert run(tmp_path, RUN.replace("6.0", "7.0"), tmp_path / "cache") == ["0", "True"]


def test_without_a_folder_to_write_kernels_work(tmp_path: Path) -> None:
    """A file where the folder should be: not even the superuser can write there."""
    (tmp_path / "sums.py").write_text(MODULE)
    (tmp_path / "cache").write_text("")
    environment = f"import os\nos.environ['HOME'] = {str(tmp_path / 'cache')!r}\n"
    assert run(tmp_path, environment + RUN, tmp_path / "cache") == ["0", "True"]
