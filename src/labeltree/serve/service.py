"""What all requests share: models, the threads that answer, limits and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from labeltree.serve.batching import Worker
from labeltree.serve.board import Board
from labeltree.serve.limits import Limits
from labeltree.serve.memory import give_back
from labeltree.serve.metrics import metrics_text
from labeltree.serve.numbers import Numbers
from labeltree.serve.registry import Registry, Reload
from labeltree.serve.tokens import Tokens

if TYPE_CHECKING:  # both import what imports this
    from labeltree.serve.about import Scorecard
    from labeltree.serve.corrections import Corrections

_log = logging.getLogger(__name__)
WATCH_SECONDS = 1.0  # between two looks at the models' files
TIDY_TICKS = 30  # looks, after which memory that was freed is given back


class Service:
    """Of one app. Explanations have a thread of their own, and searches too: nobody waits for the slower."""

    def __init__(
        self, registry: Registry, limits: Limits, tokens: Tokens, corrections: Corrections | None = None,
        scorecards: Mapping[str, Scorecard] | None = None,
    ) -> None:  # fmt: skip
        self.registry, self.limits, self.tokens = registry, limits, tokens
        self.corrections, self.scorecards = corrections, scorecards or {}
        self.numbers = Numbers()
        asked = (limits.queue_rows, limits.seconds)
        self.predictions = Worker(
            "labeltree-predictions", *asked, observe=lambda n_rows: self.numbers.batch(n_rows)
        )
        self.explanations = Worker("labeltree-explanations", *asked)
        self.lookups = Worker("labeltree-lookups", *asked)
        self.writes = Worker("labeltree-writes", *asked)
        self.is_ready = False
        self.is_reload_asked = False  # set by a signal
        self.ticks: list[Callable[[], None]] = []  # called once in a while
        self.ask_others: Callable[[], None] = lambda: None  # other workers, to look for files
        self._reloading = asyncio.Lock()
        self._board: Board | None = None
        self._slot = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the app runs: its models are checked, and then watched."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self.is_ready = False
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self.predictions.close()
            self.explanations.close()
            self.lookups.close()
            self.writes.close()

    async def _watch(self) -> None:
        # By the thread that will answer: it compiles kernels, and requests wait in its queue meanwhile.
        check = self.registry.check
        try:
            await self.predictions.submit(None, lambda payloads: [check()], None, 0, is_limited=False)
        except Exception:
            _log.exception("a model does not answer a test row: the service never becomes ready")
            return
        self.is_ready = True
        was_replaced = False
        for number in itertools.count():
            for tick in self.ticks:
                tick()
            await asyncio.sleep(WATCH_SECONDS)
            # Requests of the last second may have held what was replaced then.
            if was_replaced or number % TIDY_TICKS == 0:
                await asyncio.to_thread(give_back)
            was_replaced = bool(await self.reload())

    async def reload(self) -> list[Reload]:
        """Look for files that were replaced; in a thread of its own, so that nobody waits."""
        async with self._reloading:
            is_forced, self.is_reload_asked = self.is_reload_asked, False
            # The thread ends with it, and so does the memory that it needed to try a model.
            with ThreadPoolExecutor(1) as thread:
                reload = partial(self.registry.reload, is_forced=is_forced)
                reloads = await asyncio.get_running_loop().run_in_executor(thread, reload)
            if reloads:
                await asyncio.to_thread(give_back)
        for each in reloads:
            self.numbers.reloaded(each.name, is_done=each.is_done)
        return reloads

    def share(self, board: Board, slot: int) -> None:
        """Count together with other workers, and go on where one that had this slot has ended."""
        self._board, self._slot = board, slot
        self.numbers = board.read(slot) or self.numbers
        self.numbers.is_ready = False
        self.ticks.append(self._tell)

    def _tell(self) -> None:
        asked = (self.predictions, self.explanations, self.lookups)
        self.numbers.waiting = sum(worker.n_waiting for worker in asked)
        self.numbers.is_ready = self.is_ready
        if self._board is not None:
            self._board.write(self._slot, self.numbers)

    def metrics_text(self) -> bytes:
        """For Prometheus, of all workers; of others, what they have told last."""
        self._tell()
        return metrics_text(self.numbers if self._board is None else self._board.total(), self.registry)
