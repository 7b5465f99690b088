"""The service as an ASGI app, for any server that runs such: ``create_app({"name": "file.labeltree"})``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from labeltree.errors import ParameterError
from labeltree.model import Model
from labeltree.serve.about import read_scorecard
from labeltree.serve.access import Access
from labeltree.serve.corrections import Corrections
from labeltree.serve.dispatch import dispatch, is_short
from labeltree.serve.limits import USUAL_LIMITS, Limits
from labeltree.serve.openapi import description
from labeltree.serve.operations import OPERATIONS
from labeltree.serve.page_files import FILES, page
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


ROUTES = [
    *(Route(each.path, each.endpoint, methods=[each.method]) for each in OPERATIONS),
    *(Route(path, page) for path in FILES),
]


def create_app(
    models: Mapping[str, str | Path | Model],
    *,
    limits: Limits = USUAL_LIMITS,
    tokens: Sequence[str] | Tokens = (),
    corrections: str | Path | None = None,
    scorecards: Mapping[str, str | Path] | None = None,
) -> App:
    """The app that serves models, each a file or a model in memory, by name. Files are loaded now; they are
    replaced when their content is. With ``tokens``, who asks must have one of them. ``corrections`` is a file
    that those of the page's users are appended to, ``scorecards`` are files of `labeltree test --scorecard`
    by names of models."""
    kept = tokens if isinstance(tokens, Tokens) else Tokens(tokens)
    for name in scorecards or {}:
        if name not in models:
            raise ParameterError(
                f"there is no model {name} to show a scorecard of; there are {', '.join(models)}"
            )
    service = Service(
        Registry(models), limits, kept, None if corrections is None else Corrections(corrections),
        {name: read_scorecard(Path(path)) for name, path in (scorecards or {}).items()},
    )  # fmt: skip

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
