"""Looks at a process from outside while it runs: how much memory it has, without slowing it down."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

INTERVAL = 0.05  # seconds between two looks


def watch(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, int]:
    """Wait for its end: exit code, and the most bytes of memory that were no file's (0: not told here).

    What is mapped of files the system can take back at any time; anonymous memory it cannot.
    """
    status = Path(f"/proc/{process.pid}/status")
    deadline = time.monotonic() + timeout
    peak = 0
    while True:
        peak = max(peak, anonymous_bytes(status))
        left = deadline - time.monotonic()
        try:
            return process.wait(min(INTERVAL, max(left, 0))), peak
        except subprocess.TimeoutExpired:
            if left <= 0:
                raise


def anonymous_bytes(status: Path) -> int:
    """Of the process whose status file this is; 0 when it is gone or the system does not tell."""
    try:
        for line in status.read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
