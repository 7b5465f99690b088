"""How kernels are compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

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


class _Cache(FunctionCache):
    """Numba's cache of machine code, without loading first what only compiling needs.

    Numba imports everything it can compile, scipy.linalg among it, before it looks into its cache: a third
    of a second of every process. What machine code needs to run is the runtime alone, and whoever compiles
    loads the rest anyway.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            rtsys.initialize(target_context)
            return self._load_overload(sig, target_context)
        except AttributeError:  # a Numba of other inner names: slower start, same results
            return super().load_overload(sig, target_context)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, release the GIL, keep the machine code on disk where a folder is writable."""
    compiled = numba.njit(**_OPTIONS)(function)
    with contextlib.suppress(RuntimeError):  # no writable cache folder: slower start, same results
        compiled._cache = _Cache(function)
    return compiled
