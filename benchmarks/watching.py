"""Looks at a process from outside while it runs: how much memory and disk it has, without slowing it down."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterator
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


def disk_bytes(process: int, folder: Path) -> int:
    """What is taken of the disk by a folder, and by files without names that a process has open or mapped."""
    try:
        in_folder = sum(_blocks(path) for path in folder.rglob("*"))
    except OSError:  # it is gone: the training has ended
        in_folder = 0
    return in_folder + sum(_without_names(process).values())


def _blocks(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except OSError:  # it is gone
        return 0


def _without_names(process: int) -> dict[int, int]:
    """Bytes by number of the file."""
    found = dict[int, int]()
    for number, n_bytes in _mapped(process):
        found[number] = found.get(number, 0) + n_bytes
    try:
        for entry in os.scandir(f"/proc/{process}/fd"):
            told = os.stat(entry.path)
            if stat.S_ISREG(told.st_mode) and not told.st_nlink:
                found[told.st_ino] = told.st_blocks * 512
    except OSError:
        pass
    return found


def _mapped(process: int) -> Iterator[tuple[int, int]]:
    """Of deleted files: their numbers, and how many bytes are mapped there."""
    try:
        lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.endswith("(deleted)"):
            places, _, _, _, number, *_ = line.split()
            first, last = (int(place, 16) for place in places.split("-"))
            yield int(number), last - first
