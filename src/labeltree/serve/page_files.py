"""The page at `/`: files of the folder `page`, read once, and the headers that keep them to themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from labeltree import __version__
from labeltree.serve.routes import answer
from labeltree.serve.service import Service

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, no text that becomes markup or code, whatever labels and texts hold.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-cache",  # kept, and asked for each time whether it is still the same
}


class PageFile(NamedTuple):
    """One file, ready to be sent."""

    content: bytes
    media_type: str
    tag: str


def _read(path: Path) -> PageFile:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:20]
    return PageFile(content, _MEDIA_TYPES[path.suffix], f'"{digest}"')


# By their paths: no request can name another file.
FILES: Mapping[str, PageFile] = MappingProxyType(
    {
        "/" if path.name == INDEX else f"/page/{path.name}": _read(path)
        for path in sorted(FOLDER.iterdir())
        if path.suffix in _MEDIA_TYPES
    }
)


async def page(request: Request) -> Response:
    """A file of the page, or that it has not changed."""
    file = FILES.get(request.url.path)
    if file is None:
        raise HTTPException(404)
    headers = {**_HEADERS, "ETag": file.tag}
    given = request.headers.get("if-none-match", "")
    if file.tag in [tag.strip().removeprefix("W/") for tag in given.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


class Settings(Struct):
    """What the page must know of the service."""

    version: str
    keeps_corrections: bool
    most_documents: int  # of a request
    most_characters: int  # of a text
    most_bytes: int  # of a request
    most_labels: int  # that may be asked for


async def settings(request: Request) -> Response:
    service: Service = request.app.state.service
    limits = service.limits
    return answer(
        Settings(
            __version__, service.corrections is not None, limits.documents, limits.text_characters,
            limits.body_bytes, limits.labels,
        )
    )  # fmt: skip
