"""How much memory a process has for itself and shares, and that it keeps no more than it needs."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from pathlib import Path

from labeltree.wording import size

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of malloc.h
_LARGE = 1 << 16  # bytes
_SIZE = re.compile(r"^(\w+):\s+(\d+) kB", re.MULTILINE)


def sizes_of(process: int) -> dict[str, int]:
    """Bytes by the system's names: Rss, Anonymous, Private_Dirty ... (Linux)"""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    return {name: int(kilobytes) * 1024 for name, kilobytes in _SIZE.findall(text)}


def memory_of(process: int) -> str:
    """In words, where the system tells."""
    try:
        sizes = sizes_of(process)
    except OSError:
        return "of unknown memory"
    own = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    shared = sizes.get("Rss", 0) - own
    return f"{size(own)} of its own, {size(shared)} shared"


def keep_little() -> None:
    """Let the allocator give large arrays back to the system at once, and threads share what they free.

    glibc would raise the bound from which it does so with the first large array that is freed, and keep a
    heap for each thread: every model that is loaded beside another would leave its traces. Elsewhere nothing
    happens.
    """
    _call("mallopt", _MMAP_THRESHOLD, _LARGE)
    _call("mallopt", _ARENA_MAX, 1)


def give_back() -> None:
    """What was freed, after much of it was."""
    gc.collect()
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """A function of glibc, if that is what there is."""
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None
    if function is not None:
        function(*arguments)
