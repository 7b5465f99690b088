"""What a process counts. Plain numbers, as a short request has no time for more; workers add theirs up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Histogram(Struct):
    """How many values are at most each bound, and more than the one before; the last are beyond all."""

    counts: list[int]
    total: float = 0.0

    def observe(self, bounds: Sequence[float], value: float) -> None:
        self.counts[bisect_left(bounds, value)] += 1
        self.total += value

    def add(self, other: Histogram) -> None:
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


def _empty(bounds: Sequence[float]) -> Histogram:
    return Histogram([0] * (len(bounds) + 1))


class Numbers(Struct):
    """Of one process, or of several together. Only the event loop changes them."""

    requests: dict[tuple[str, str, int], int] = field(default_factory=dict)  # by route, method, status
    seconds: dict[str, Histogram] = field(default_factory=dict)  # by route
    documents: dict[str, int] = field(default_factory=dict)  # by model
    batches: Histogram = field(default_factory=lambda: _empty(ROWS))
    reloads: dict[tuple[str, str], int] = field(default_factory=dict)  # by model, outcome
    waiting: int = 0  # rows
    is_ready: bool = False
    n_workers: int = 1

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        _count(self.requests, (route, method, status), 1)
        histogram = self.seconds.get(route)
        if histogram is None:
            histogram = self.seconds[route] = _empty(SECONDS)
        histogram.observe(SECONDS, seconds)

    def asked(self, model: str, n_documents: int) -> None:
        _count(self.documents, model, n_documents)

    def batch(self, n_rows: int) -> None:
        self.batches.observe(ROWS, n_rows)

    def reloaded(self, model: str, *, is_done: bool) -> None:
        _count(self.reloads, (model, "done" if is_done else "refused"), 1)


def _count(counts: dict[Any, int], key: Any, n: int) -> None:
    counts[key] = counts.get(key, 0) + n


def added(parts: Iterable[Numbers]) -> Numbers:
    """Those of several processes together: it is ready when all are."""
    total, every = Numbers(n_workers=0), list(parts)
    for part in every:
        for key, n in part.requests.items():
            _count(total.requests, key, n)
        for model, n in part.documents.items():
            _count(total.documents, model, n)
        for file, n in part.reloads.items():  # each worker replaces a file for itself
            total.reloads[file] = max(n, total.reloads.get(file, 0))
        for route, histogram in part.seconds.items():
            total.seconds.setdefault(route, _empty(SECONDS)).add(histogram)
        total.batches.add(part.batches)
        total.waiting += part.waiting
        total.n_workers += part.n_workers
    total.is_ready = all(part.is_ready for part in every)
    return total
