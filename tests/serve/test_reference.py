"""The description to read: complete, and safe without anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from support.serving import client_of, text_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

from labeltree.serve.operations import OPERATIONS


class Tags(HTMLParser):
    """What is opened must be closed; ids and links are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.ids, self.links = list[str](), set[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "tr", "td", "th", "p"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.add(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("tr", "td", "th", "p"):
            assert self.open.pop() == tag


def test_the_page() -> None:
    with client_of({"secret-name": text_model()}, tokens=["a-token-of-some-length"]) as client:
        answer = client.get("/docs")  # a browser has no token to send
    assert answer.status_code == 200
    tags = Tags()
    tags.feed(answer.text)
    assert not tags.open
    assert {link for link in tags.links if not link.startswith("#")} == {"/openapi.json"}
    assert {link[1:] for link in tags.links if link.startswith("#")} <= tags.ids
    for operation in OPERATIONS:
        assert operation.endpoint.__name__ in tags.ids
        assert operation.told.replace("'", "&#x27;") in answer.text
    assert "secret-name" not in answer.text
    style = re.search("<style>(.*?)</style>", answer.text, re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert f"'sha256-{digest}'" in policy
