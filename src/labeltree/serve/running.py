"""Running the app in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from labeltree.errors import ParameterError

_DRAIN_SECONDS = 30  # that requests have to be answered after the service was told to stop
_IDLE_SECONDS = 30  # that a connection may be silent between requests
HEADER_SECONDS = 10.0  # that the head of a request may take to arrive
_BACKLOG = 2048
_ALLOCATIONS = 10_000  # between two looks for garbage in cycles


class _Protocol(HttpToolsProtocol):
    """Connections that keep silent, or send the head of a request byte by byte, are closed."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit  # who asks again wants it at once
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """The socket, before anything is printed: whether it can be had shows here."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or error
        raise ParameterError(f"{host} port {port} cannot be listened on ({told}); choose another") from error


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def run(app: Starlette, listening: socket.socket) -> None:
    """Until SIGTERM or SIGINT; SIGHUP looks for new model files."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        ws="none",
    )
    # What is there now stays: the collector need not look at it again and again while requests wait.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    with _reload_on_hangup(app):
        _Server(config).run(sockets=[listening])


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
