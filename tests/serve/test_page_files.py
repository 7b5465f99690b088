"""The page's files: sent with headers that keep them to themselves, and nothing else can be had."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.serving import client_of, text_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

from labeltree.serve.page_files import FILES, FOLDER

SCRIPTS = {path: file.content.decode() for path, file in FILES.items() if path.endswith(".js")}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of({"text": text_model()}, tokens=["a-token-for-the-tests"]) as client:
        yield client


def test_the_page_is_open_to_those_without_a_token(client: Any) -> None:
    assert client.get("/").headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/v1/settings").status_code == 401
    told = client.get("/v1/settings", headers={"Authorization": "Bearer a-token-for-the-tests"}).json()
    assert told["keeps_corrections"] is False
    assert told["most_documents"] == 256


@pytest.mark.parametrize("path", FILES)
def test_every_file_is_kept_to_itself(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers.get_list("cache-control") == ["no-cache"]


def test_what_has_not_changed_is_not_sent_again(client: Any) -> None:
    tag = client.get("/page/main.js").headers["etag"]
    for given in (tag, f"W/{tag}", f'"other", {tag}'):
        answer = client.get("/page/main.js", headers={"If-None-Match": given})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
    assert client.get("/page/main.js", headers={"If-None-Match": '"other"'}).status_code == 200
    assert client.head("/").status_code == 200


@pytest.mark.parametrize(
    "path", ["/page/", "/page/../app.py", "/page/%2e%2e/app.py", "/page/index.html", "/page"]
)
def test_no_other_file_can_be_had(client: Any, path: str) -> None:
    headers = {"Authorization": "Bearer a-token-for-the-tests"}
    assert client.get(path, headers=headers).status_code == 404


def test_all_that_is_named_is_there() -> None:
    assert {f"/page/{path.name}" for path in FOLDER.iterdir()} - {"/page/index.html"} == FILES.keys() - {"/"}
    index = FILES["/"].content.decode()
    for name in re.findall(r'(?:src|href)="(page/[^"]+)"', index):
        assert f"/{name}" in FILES
    for content in SCRIPTS.values():
        for name in re.findall(r'from "\./([\w.]+)"', content):
            assert f"/page/{name}" in FILES


def test_all_texts_are_in_one_place() -> None:
    known = set(re.findall(r"^  (\w+)[:(]", SCRIPTS["/page/texts.js"], re.M))
    used = set(re.findall(r'data-(?:text|label)="(\w+)"', FILES["/"].content.decode()))
    for path, content in SCRIPTS.items():
        if path != "/page/texts.js":
            used |= set(re.findall(r"\btexts\.(?!js\b)(\w+)", content))
    assert used == known


@pytest.mark.parametrize("path", SCRIPTS)
def test_nothing_becomes_markup(path: str) -> None:
    """Elements are made by `h` and `s` only. The policy refuses the rest, where a browser knows it."""
    for name in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
        "Function(",
    ):
        assert name not in SCRIPTS[path]
    assert "http://" not in SCRIPTS[path].replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in SCRIPTS[path]
