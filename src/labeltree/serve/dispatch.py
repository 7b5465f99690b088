"""The short way to an operation: a look into a table.

Starlette's router tries the patterns of all routes in turn, between two layers that look after exceptions;
that takes longer than to predict. Whatever is not found here is for it, also where a method is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from labeltree.serve.operations import OPERATIONS, Endpoint, Operation

Shape = tuple[str, str, str]  # method, what stands before the name of a model, and what behind it
_NAME = "{name}"


def shapes(operations: Iterable[Operation]) -> dict[Shape, Endpoint]:
    """Of the operations on a model, as ``POST /v1/models/{name}/predict``."""
    found: dict[Shape, Endpoint] = {}
    for each in operations:
        before, name, behind = each.path.partition(_NAME)
        if name and before.count("/") == _SLASHES and "{" not in behind:
            found[each.method, before, behind] = each.endpoint
    return found


_SLASHES = 3  # before the name
_ENDPOINTS = shapes(OPERATIONS)


def is_short(scope: Scope) -> bool:
    """Whether a request is in the table; then it also has what Starlette's router would have added."""
    if scope["type"] != "http":
        return False
    parts = scope["path"].split("/", _SLASHES + 1)
    if len(parts) <= _SLASHES:
        return False
    behind = f"/{parts[4]}" if len(parts) > _SLASHES + 1 else ""
    endpoint = _ENDPOINTS.get((scope["method"], f"/{parts[1]}/{parts[2]}/", behind))
    if endpoint is None:
        return False
    scope["endpoint"], scope["path_params"] = endpoint, {"name": parts[3]}
    return True


async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
    """A request that :func:`is_short`; its errors are for who calls."""
    response = await scope["endpoint"](Request(scope, receive))
    await response(scope, receive, send)
