"""Running the app in this process, until it is told to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from labeltree.errors import ParameterError

_DRAIN_SECONDS = 30  # that requests have to be answered after the service was told to stop
_IDLE_SECONDS = 30  # that a connection may be silent between requests
_BACKLOG = 2048


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
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        ws="none",
    )
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
