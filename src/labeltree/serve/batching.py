"""Natural batching: requests that arrive while one batch is worked at become the next.

Nobody waits for a batch to fill, so a single request is answered at once; under load batches grow by
themselves. Rows do not influence each other, so an answer does not depend on what it was computed with.

A thread works, and the event loop goes on meanwhile. To hand a short request over to it and back takes
longer than to answer it, though: such are answered by the loop itself, those together that have arrived.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from labeltree.serve.problems import busy

T = TypeVar("T")
Run = Callable[[Sequence[Any]], Sequence[Any]]  # of the payloads of several jobs their results


class _Job(NamedTuple):
    key: Hashable  # jobs of an equal one are run together; None: by itself
    run: Run
    payload: Any
    n_rows: int
    future: asyncio.Future[Any]


_LOOP_ROWS = 64  # of a batch in the event loop: who sends something else waits for one at most


class Worker:
    """A thread and the queue before it. To be used from one event loop."""

    def __init__(
        self, name: str, most_waiting: int, seconds: float, batch_rows: int = 256,
        observe: Callable[[int], None] = lambda n_rows: None,
    ) -> None:  # fmt: skip
        self.name, self.most_waiting, self.seconds = name, most_waiting, seconds
        self.batch_rows = batch_rows  # a batch is closed when it has so many
        self.n_waiting = 0  # rows that are not answered yet
        self._observe = observe
        self._jobs: deque[_Job] = deque()
        self._short: deque[_Job] = deque()  # for the event loop
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """The result of a function, in the thread."""
        return await self.submit(None, lambda payloads: [function(*arguments)], None, 1)

    async def submit_short(self, key: Hashable, run: Run, payload: Any, n_rows: int) -> Any:
        """As :meth:`submit`, by the event loop itself."""
        self._check_queue(n_rows)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self._short:
            # In the turn after the next: what the next one reads from connections is then among it.
            loop.call_soon(loop.call_soon, self._work_short, loop)
        self._short.append(_Job(key, run, payload, n_rows, future))
        self.n_waiting += n_rows
        try:
            return await future
        finally:
            self.n_waiting -= n_rows

    def _work_short(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = _take(self._short, _LOOP_ROWS)
        if self._short:  # after whatever else has come in the meantime
            loop.call_soon(self._work_short, loop)
        for jobs in _groups(batch):
            for each, results in _run_group(jobs):
                self._deliver(each, results)

    def _check_queue(self, n_rows: int) -> None:
        if self.n_waiting and self.n_waiting + n_rows > self.most_waiting:
            raise busy(429, f"{self.n_waiting:,} documents are waiting already; send it again a little later")

    async def submit(
        self, key: Hashable, run: Run, payload: Any, n_rows: int, *, is_limited: bool = True
    ) -> Any:
        """The result of one job, which may be run together with others of the same key."""
        if is_limited:
            self._check_queue(n_rows)
        future = asyncio.get_running_loop().create_future()
        self.n_waiting += n_rows
        try:
            self._put(_Job(key, run, payload, n_rows, future))
            async with asyncio.timeout(self.seconds if is_limited else None):
                return await future
        except TimeoutError as error:
            detail = f"no answer within {self.seconds:g} s; send it again later, or fewer documents at a time"
            raise busy(503, detail) from error
        finally:
            self.n_waiting -= n_rows

    def close(self) -> None:
        """End the thread after the jobs that it has."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _put(self, job: _Job) -> None:
        with self._changed:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def _work(self) -> None:
        while batch := self._next_batch():
            for jobs in _groups(batch):
                for each, results in _run_group(jobs):
                    try:
                        each[0].future.get_loop().call_soon_threadsafe(self._deliver, each, results)
                    except RuntimeError:  # the loop was closed: nobody waits any more
                        break

    def _deliver(self, jobs: list[_Job], results: Sequence[Any]) -> None:
        """In the event loop, which alone counts."""
        self._observe(sum([job.n_rows for job in jobs]))
        for job, result in zip(jobs, results, strict=True):
            if job.future.done():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def _next_batch(self) -> list[_Job]:
        """What waits, up to a number of rows; nothing at the end."""
        batch: list[_Job] = []
        with self._changed:
            while not batch:
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if not self._jobs:
                    return []
                batch = _take(self._jobs, self.batch_rows)
        return batch


def _take(waiting: deque[_Job], most_rows: int) -> list[_Job]:
    """The first jobs, up to a number of rows but at least one. Whoever gave up waiting is left out."""
    batch: list[_Job] = []
    n_rows = 0
    while waiting and (not n_rows or n_rows + waiting[0].n_rows <= most_rows):
        job = waiting.popleft()
        if not job.future.done():
            batch.append(job)
            n_rows += job.n_rows
    return batch


def _groups(batch: Iterable[_Job]) -> Iterable[list[_Job]]:
    """Jobs that are run together."""
    groups: dict[Hashable, list[_Job]] = {}
    for job in batch:
        groups.setdefault(object() if job.key is None else job.key, []).append(job)
    return groups.values()


def _run_group(jobs: list[_Job]) -> Iterator[tuple[list[_Job], Sequence[Any]]]:
    """Where something is wrong with one of them, each is run by itself: the others must not fail with it."""
    try:
        results: Sequence[Any] = jobs[0].run([job.payload for job in jobs])
    except Exception as error:
        if len(jobs) > 1:
            for job in jobs:
                yield from _run_group([job])
            return
        results = [error]
    yield jobs, results
