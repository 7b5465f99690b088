"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# As fast as True, but NaN and infinity keep their meaning: checks for them still work.
FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz", "afn"})


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, release the GIL, keep the machine code on disk where a folder is writable."""
    options: dict[str, Any] = {"nogil": True, "fastmath": set(FAST_MATH), "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable cache folder: slower start, same results
        return numba.njit(**options)(function)
