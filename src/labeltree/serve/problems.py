"""Errors as problem details (RFC 9457): each says what is wrong and what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from labeltree.errors import LabelTreeError

MEDIA_TYPE = "application/problem+json"
_BRIEF = 1_000  # characters of a message: it may hold what the client sent


class Problem(Exception):
    """A request that is not answered, with what to do about it."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}

    def response(self, path: str) -> Response:
        """In the form of the path's protocol."""
        detail = self.detail[:_BRIEF].encode("utf-8", "backslashreplace").decode()
        content: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(self.status).phrase}
        content |= {"status": self.status, "detail": detail}
        media_type = MEDIA_TYPE
        if is_inference(path):
            content, media_type = {"error": detail}, "application/json"
        return Response(
            msgspec.json.encode(content), self.status, media_type=media_type, headers=self.headers
        )


def is_inference(path: str) -> bool:
    """Whether a path is one of the Open Inference Protocol, which has problems in its own form."""
    return path == "/v2" or path.startswith("/v2/")


def busy(status: int, detail: str) -> Problem:
    """One that may be gone when the request is sent again."""
    return Problem(status, detail, {"Retry-After": "1"})


def problem_of(error: Exception) -> Problem:
    """What an error is to the client. What is wrong with a request is never a fault of the service."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, LabelTreeError):
        return Problem(422, str(error))
    if isinstance(error, HTTPException):
        return Problem(
            error.status_code, _HINTS.get(error.status_code, error.detail), dict(error.headers or {})
        )
    return Problem(500, "the service failed; its log has the reason under this request's id")


_HINTS = {
    404: "there is no such path; GET /openapi.json lists those that exist",
    405: "this path takes another method; GET /openapi.json lists which",
}


async def handle(request: Request, error: Exception) -> Response:
    """For Starlette's table of handlers."""
    return problem_of(error).response(request.url.path)


HANDLERS: dict[Any, Any] = {Problem: handle, LabelTreeError: handle, HTTPException: handle}
