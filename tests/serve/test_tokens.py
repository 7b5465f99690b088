"""Who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.serving import client_of, text_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

from labeltree.errors import ParameterError
from labeltree.serve.tokens import Tokens, read_tokens

TOKEN, OTHER = "a-token-of-some-length", "another-token-of-this"


def status(client: Any, authorization: str | None) -> int:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    answer = client.get("/v1/models", headers=headers)
    if answer.status_code == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["Content-Type"] == "application/problem+json"
    return answer.status_code


def test_only_those_with_a_token_may_ask() -> None:
    with client_of({"text": text_model()}, tokens=[TOKEN, OTHER]) as client:
        assert status(client, f"Bearer {TOKEN}") == status(client, f"bearer {OTHER}") == 200
        for wrong in (None, "", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer é"):
            assert status(client, wrong) == 401
        assert client.get("/no/such/path").status_code == 401
        assert client.get("/metrics").status_code == 401
        for path in ("/health/live", "/docs", "/openapi.json", "/"):
            assert client.get(path).status_code == 200


def test_a_file_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# of the shop\n{TOKEN}\n\n")
    read_tokens(path).check(f"Bearer {TOKEN}")
    for content, told in (
        (b"", "no token"),
        (b"# nothing\n", "no token"),
        (b"\xff", "UTF-8"),
        (b"short", "at least"),
    ):
        path.write_bytes(content)
        with pytest.raises(ParameterError, match=told):
            read_tokens(path)
    assert not Tokens()
