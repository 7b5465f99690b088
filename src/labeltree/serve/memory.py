"""How much memory a process has for itself, and how much it shares."""

from __future__ import annotations

import re
from pathlib import Path

from labeltree.wording import size

_SIZE = re.compile(r"^(\w+):\s+(\d+) kB", re.MULTILINE)


def memory_of(process: int) -> str:
    """In words, where the system tells (Linux)."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return "of unknown memory"
    sizes = {name: int(kilobytes) * 1024 for name, kilobytes in _SIZE.findall(text)}
    own = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    shared = sizes.get("Rss", 0) - own
    return f"{size(own)} of its own, {size(shared)} shared"
