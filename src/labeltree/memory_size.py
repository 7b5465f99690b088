"""Sizes of memory as people write them."""

from __future__ import annotations

import operator
import re
from typing import Any

from labeltree.errors import ParameterError, show

LEAST_MEMORY = 256_000_000  # Python, NumPy and the kernels take most of it
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def check_memory(max_memory: Any) -> int:
    """Bytes of ``2GB``, ``500 MB``, ``1.5GiB`` or a number; 0 for None: no limit."""
    if max_memory is None:
        return 0
    try:
        n_bytes = operator.index(max_memory)
    except TypeError:
        match = _SIZE.fullmatch(max_memory) if isinstance(max_memory, str) else None
        if match is None:
            raise ParameterError(
                f"max_memory must be a size like 2GB or 500MB, but is {show(max_memory)}"
            ) from None
        base = 1024 if match[3] else 1000
        n_bytes = int(float(match[1]) * base ** _POWERS[match[2].lower()])
    if n_bytes < LEAST_MEMORY:
        raise ParameterError(
            f"max_memory must be at least {LEAST_MEMORY // 1_000_000}MB, which Python and the compiled "
            f"kernels need, but is {show(max_memory)}"
        )
    return n_bytes
