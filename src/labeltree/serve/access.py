"""What is done around every request: its id, who may ask, the log, the metrics, and that nothing escapes."""

from __future__ import annotations

import itertools
import logging
import os
import re
import secrets
import time
from functools import lru_cache
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labeltree.serve.operations import OPEN_PATHS, OPERATIONS
from labeltree.serve.page_files import FILES
from labeltree.serve.problems import problem_of
from labeltree.serve.service import Service
from labeltree.wording import timestamp

access_log = logging.getLogger("labeltree.serve.access")
_log = logging.getLogger(__name__)
_ID = re.compile(rb"[\w.:-]{1,64}")
_PATH_OF: dict[Any, str] = {each.endpoint: each.path for each in OPERATIONS}
_NUMBERS = itertools.count(1)
_GONE = 499  # the client left; only the log sees it
_ALWAYS = [(b"x-content-type-options", b"nosniff")]
_NOT_KEPT = [(b"cache-control", b"no-store")]  # by caches, of all but the page
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@lru_cache(1)
def _process_id(process: int) -> bytes:
    """Workers are forked, and must not have the same one."""
    return secrets.token_hex(8).encode()


def _new_id() -> bytes:
    """A number: to ask the system for randomness each time would take longer than to predict."""
    return b"%s-%x" % (_process_id(os.getpid()), next(_NUMBERS))


class Access:
    """Around the app, as ASGI has it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given if _ID.fullmatch(given) else _new_id()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = (b"x-request-id", request_id)
                kept = [] if scope["path"] in FILES else _NOT_KEPT
                message["headers"] = [*message["headers"], *_ALWAYS, *kept, own]
            await send(message)

        try:
            try:
                if scope["path"] not in OPEN_PATHS:
                    self.service.tokens.check(headers.get(b"authorization", b"").decode("latin-1"))
                await self.app(scope, receive, send_with_id)
            except ClientDisconnect:
                status = _GONE
            except Exception as error:
                problem = problem_of(error)
                if problem.status == 500:
                    _log.exception("request %s failed", request_id.decode())
                if not status:
                    await problem.response(scope["path"])(scope, receive, send_with_id)
        finally:
            self._record(scope, request_id, status, time.perf_counter() - started)

    def _record(self, scope: Scope, request_id: bytes, status: int, seconds: float) -> None:
        """Metrics are by route: what clients make up must not become names of metrics."""
        route = _PATH_OF.get(scope.get("endpoint"), "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.service.numbers.answered(route, method, status, seconds)
        if access_log.isEnabledFor(logging.INFO):
            access_log.info("%s", _line(scope, request_id, status, seconds))


def _line(scope: Scope, request_id: bytes, status: int, seconds: float) -> str:
    """One object of JSON, without anything of the documents."""
    client = scope.get("client")
    told: dict[str, Any] = {
        "time": timestamp(int(time.time())),
        "request_id": request_id.decode(),
        "client": client[0] if client else None,
        "method": scope["method"],
        "path": scope["path"][:200],
        "status": status,
        "ms": round(seconds * 1000, 3),
    }
    return msgspec.json.encode(told).decode()
