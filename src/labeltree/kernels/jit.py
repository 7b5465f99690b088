"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

# As fast as True, but NaN and infinity keep their meaning: checks for them still work.
FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz", "afn"})


_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": set(FAST_MATH), "error_model": "numpy"}

# For helpers of inner loops. Handing an array to a function that is not inlined counts references,
# atomically, which can take most of the time. For the same reason loops use arrays in local names, not
# fields of a NamedTuple, and helpers get whole arrays with a range instead of slices.
inlined: Callable[..., Any] = numba.njit(forceinline=True, **_OPTIONS)


INLINED: Any = {"fastmath": set(FAST_MATH), "forceinline": True}  # the same for overloads


def holds(argument: Any, kind: type) -> bool:
    """Whether an argument of an overload, which is a type of Numba, is this NamedTuple."""
    return getattr(argument, "instance_class", None) is kind


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, release the GIL, keep the machine code on disk where a folder is writable."""
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no writable cache folder: slower start, same results
        return numba.njit(**_OPTIONS)(function)
