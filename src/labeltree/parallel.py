"""What a job may use: threads, one pool per job, and room for large arrays.

Kernels release the GIL, and results depend on neither.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from labeltree.errors import ParameterError, show

if TYPE_CHECKING:
    from labeltree.storage.space import Space

T = TypeVar("T")
MOST_THREADS = 4096  # more than any machine has CPUs


def available_threads() -> int:
    """The number of CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: Any) -> int:
    """A number of threads that was asked for, or an error that says what is wrong with it."""
    if type(threads) is int and 0 <= threads <= MOST_THREADS:  # as nearly always, for the sake of single rows
        return threads
    try:
        number = -1 if isinstance(threads, bool) else operator.index(threads)
    except TypeError:
        number = -1
    if number < 0:
        raise ParameterError(f"threads must be at least 0 (0: all CPUs), but is {show(threads)}")
    if number > MOST_THREADS:
        raise ParameterError(f"threads must be at most {MOST_THREADS} (0: all CPUs), but is {show(threads)}")
    return number


class Pool:
    """Runs a function over items on ``threads`` threads; with one thread it runs them in the caller.

    ``threads=0`` means every available CPU. Large arrays of the job belong into ``space``.
    """

    def __init__(self, threads: int = 0, space: Space | None = None) -> None:
        """``space`` is memory, unless it is said."""
        from labeltree.storage.space import IN_MEMORY  # imports numpy

        self.space = space or IN_MEMORY
        self.threads = check_threads(threads) or available_threads()
        self._executor = ThreadPoolExecutor(self.threads, "labeltree") if self.threads > 1 else None

    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """``[function(item) for item in items]``, possibly at the same time."""
        items = list(items)
        if self._executor is None or len(items) < 2:
            return [function(item) for item in items]
        return list(self._executor.map(function, items))

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def row_slices(n_rows: int, parts: int) -> list[slice]:
    """Cut ``range(n_rows)`` into at most ``parts`` contiguous slices of nearly equal length."""
    parts = max(1, min(parts, n_rows))
    edges = [n_rows * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
