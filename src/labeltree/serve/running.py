"""Running the app in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from labeltree.errors import ParameterError
from labeltree.serve.limits import USUAL_LIMITS
from labeltree.serve.problems import busy

DRAIN_SECONDS = 30  # that requests have to be answered after the service was told to stop
_IDLE_SECONDS = 30  # that a connection may be silent between requests
HEADER_SECONDS = 10.0  # that the head of a request may take to arrive
_BACKLOG = 2048
_OTHER_FILES = 200  # besides connections: models, the log, the loop's own
_ALLOCATIONS = 10_000  # between two looks for garbage in cycles


def _full() -> bytes:
    """What a connection gets that is one too many."""
    problem = busy(503, "there are too many connections; try again a little later, and keep one open")
    response = problem.response("")
    response.headers["Connection"] = "close"
    lines = [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
    return b"".join([b"HTTP/1.1 503 Service Unavailable\r\n", *lines, b"\r\n", bytes(response.body)])


_FULL = _full()


class _Protocol(HttpToolsProtocol):
    """Connections that keep silent, or send the head of a request byte by byte, are closed."""

    most_connections = USUAL_LIMITS.connections
    _late: asyncio.TimerHandle | None = None
    _is_in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.write(_FULL)
            transport.close()
            return
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head and self._late is None:  # most come whole, and need no clock
            self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Server(uvicorn.Server):
    """A server that was told to stop has done well: it answers what it has, and ends without an error."""

    is_worker = False  # the parent of workers is told of Ctrl-C too, and tells them

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.is_worker and sig == signal.SIGINT:
            return
        self.force_exit = self.should_exit  # who asks again wants it at once
        self.should_exit = True


def listen(host: str, port: int, n: int = 1) -> list[socket.socket]:
    """A socket for each worker, before anything is printed: whether they can be had shows here.

    Linux shares connections out between sockets of one port. Elsewhere workers have the same one.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        first = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        if n == 1 or not sys.platform.startswith("linux"):
            return [first] * n
        # The first shows that nobody else has the port: sockets that share it would not.
        host, port = first.getsockname()[:2]
        first.close()
        return [
            socket.create_server((host, port), family=family, backlog=_BACKLOG, reuse_port=True)
            for _ in range(n)
        ]
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or error
        raise ParameterError(f"{host} port {port} cannot be listened on ({told}); choose another") from error


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def freeze() -> None:
    """What is there now stays: the collector need not look at it again and again while requests wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)


def _allow_files(n: int) -> None:
    """So many open files, if the system lets us: a connection is one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < n:
        most = n if hard == resource.RLIM_INFINITY else min(n, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def run(app: Starlette, listening: socket.socket, *, is_worker: bool = False) -> None:
    """Until SIGTERM or SIGINT; SIGHUP looks for new model files."""
    limit = app.state.service.limits.connections
    _allow_files(limit + _OTHER_FILES)
    config = uvicorn.Config(
        app,
        http=type("Protocol", (_Protocol,), {"most_connections": limit}),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        ws="none",
    )
    freeze()
    server = _Server(config)
    server.is_worker = is_worker
    with _reload_on_hangup(app):
        server.run(sockets=[listening])


@contextmanager
def _reload_on_hangup(app: Starlette) -> Iterator[None]:
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is None:
        yield
        return

    def ask(number: int, frame: Any) -> None:
        app.state.service.is_reload_asked = True

    before = signal.signal(hangup, ask)
    try:
        yield
    finally:
        signal.signal(hangup, before)
