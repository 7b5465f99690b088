"""The service as an ASGI app, for any server that runs such: ``create_app({"name": "file.labeltree"})``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from labeltree.model import Model
from labeltree.serve.access import Access
from labeltree.serve.dispatch import dispatch, is_short
from labeltree.serve.limits import USUAL_LIMITS, Limits
from labeltree.serve.openapi import description
from labeltree.serve.operations import OPERATIONS
from labeltree.serve.problems import HANDLERS
from labeltree.serve.registry import Registry
from labeltree.serve.routes import encode
from labeltree.serve.service import Service
from labeltree.serve.tokens import Tokens


class App(Starlette):
    """What the table of operations has takes a short way; Starlette's own is for all the rest."""

    short: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_short(scope):
            scope["app"] = self
            await self.short(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


ROUTES = [Route(each.path, each.endpoint, methods=[each.method]) for each in OPERATIONS]


def create_app(
    models: Mapping[str, str | Path | Model],
    *,
    limits: Limits = USUAL_LIMITS,
    tokens: Sequence[str] | Tokens = (),
) -> App:
    """The app that serves models, each a file or a model in memory, by name. Files are loaded now; they are
    replaced when their content is. With ``tokens``, who asks must have one of them."""
    kept = tokens if isinstance(tokens, Tokens) else Tokens(tokens)
    service = Service(Registry(models), limits, kept)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = App(
        routes=ROUTES,
        middleware=[Middleware(Access, service=service)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.short = Access(dispatch, service)
    app.state.service, app.state.openapi = service, encode(description(list(models)))
    return app
