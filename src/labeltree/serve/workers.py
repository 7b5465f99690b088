"""Several processes behind one port. They map the same model files, and so share their memory.

The parent loads and checks the models, by which kernels are loaded, and forks: what it has is shared too. It
looks after the files itself, so that a worker that takes the place of a dead one has the others' models.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from labeltree.errors import LabelTreeError, ParameterError
from labeltree.serve.app import App
from labeltree.serve.board import Board
from labeltree.serve.memory import memory_of
from labeltree.serve.running import DRAIN_SECONDS, freeze, run
from labeltree.serve.service import WATCH_SECONDS

_log = logging.getLogger(__name__)
_SHORT_LIFE = 5.0  # seconds: workers that die sooner than that ...
_MOST_SHORT_LIVES = 5  # ... so often in a row will not do better


class WorkersError(LabelTreeError):
    """Workers end as soon as they have begun."""


@dataclass
class _Workers:
    """What the parent knows."""

    app: App
    sockets: Sequence[socket.socket]
    board: Board
    running: dict[int, int] = field(default_factory=dict)  # process: slot
    started: dict[int, float] = field(default_factory=dict)  # process: when
    n_short_lives: int = 0
    is_stopping: bool = False
    is_told: bool = False  # that all are ready, with how much memory

    def start(self, slot: int) -> None:
        process = os.fork()
        if process == 0:
            _work(self.app, self.sockets[slot], self.board, slot)
        self.running[process], self.started[process] = slot, time.monotonic()

    def signal_all(self, number: int) -> None:
        for process in self.running:
            os.kill(process, number)

    def reap(self) -> None:
        """Those that have ended; others take their places, unless the service is to end."""
        while self.running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            slot = self.running.pop(process, None)
            lived = time.monotonic() - self.started.pop(process, 0.0)
            if slot is None or self.is_stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            _log.error("worker %d (process %d) ended with %d: another comes", slot + 1, process, code)
            self.n_short_lives = self.n_short_lives + 1 if lived < _SHORT_LIFE else 0
            if self.n_short_lives >= _MOST_SHORT_LIVES:
                self.stop(signal.SIGTERM)
                return
            self.start(slot)

    def stop(self, number: int) -> None:
        self.signal_all(signal.SIGKILL if self.is_stopping else number)
        self.is_stopping = True

    def tick(self) -> None:
        """Once a second."""
        if self.is_stopping:
            return
        self.app.state.service.registry.reload()
        if not self.is_told and self.board.is_ready:
            self.is_told = True
            for process, slot in self.running.items():
                _log.info("worker %d: process %d, %s", slot + 1, process, memory_of(process))


def run_workers(app: App, sockets: Sequence[socket.socket]) -> None:
    """A worker for each socket, until SIGTERM or SIGINT; SIGHUP looks for new model files, in all of them."""
    app.state.service.registry.check()
    freeze()
    workers = _Workers(app, sockets, Board(len(sockets)))
    awaited = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        signal.setitimer(signal.ITIMER_REAL, WATCH_SECONDS, WATCH_SECONDS)
        for slot in range(len(sockets)):
            workers.start(slot)
        end = float("inf")
        while workers.running:
            number = signal.sigwait(awaited)
            if number in (signal.SIGTERM, signal.SIGINT):
                workers.stop(signal.SIGTERM)  # and at once, where it is said again
                end = min(end, time.monotonic() + DRAIN_SECONDS + 5)
            elif number == signal.SIGHUP:
                app.state.service.registry.reload(is_forced=True)
                workers.signal_all(signal.SIGHUP)
            elif time.monotonic() > end:
                workers.signal_all(signal.SIGKILL)
            workers.reap()
            workers.tick()
    finally:
        workers.signal_all(signal.SIGKILL)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if workers.n_short_lives >= _MOST_SHORT_LIVES:
        raise WorkersError("workers end as soon as they have begun; the lines above say why")


def _work(app: App, listening: socket.socket, board: Board, slot: int) -> None:
    """In a new process, until it is told to stop."""
    code = 1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        # The parent is told of Ctrl-C too, and tells its workers: twice would mean to end at once.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        logging.getLogger("labeltree.serve.registry").setLevel(logging.CRITICAL)  # the parent says it
        service, parent = app.state.service, os.getppid()
        service.share(board, slot)
        service.ask_others = lambda: os.kill(parent, signal.SIGHUP)
        service.ticks.append(lambda: _end_with(parent))
        run(app, listening, is_worker=True)
        code = 0
    except BaseException:
        _log.exception("a worker failed")
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    """A worker whose parent was killed would hold the port for ever."""
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def check_workers(n_workers: int) -> None:
    if n_workers > 1 and not (hasattr(os, "fork") and hasattr(signal, "sigwait")):
        raise ParameterError(f"workers is {n_workers}, but this system cannot fork processes; leave it out")
