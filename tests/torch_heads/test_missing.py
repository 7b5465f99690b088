"""Without torch: the package is as it was, and who asks for heads is told what to install."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["torch"] = None
import labeltree
try:
    import labeltree.torch
except ImportError as error:
    print(error)
"""


def test_a_missing_torch_is_named_with_its_extra() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "pip install 'labeltree[torch]'" in done.stdout
