"""Whatever is sent, the answer is one that the description names, and never a fault of the service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.serving import client_of, text_model, vector_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

PATHS = [
    f"/v1/models/{name}/{what}" for name in ("text", "vector") for what in ("predict", "explain", "why-not")
]
PATHS += ["/v1/models/text/corrections", "/v1/models/text/neighbours", "/v1/projects/text/suggest-batch"]
EXPECTED = {200, 400, 404, 413, 415, 422}

numbers = st.one_of(st.integers(), st.floats(), st.integers(0, 5), st.floats(0, 1))
scalars = st.one_of(
    st.none(), st.booleans(), numbers, st.text(max_size=8), st.sampled_from(["bread", "none", "exact"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
vectors = st.fixed_dictionaries({"indices": st.lists(st.integers(-1, 5)), "values": st.lists(numbers)})
fields = {
    "text": st.text() | values,
    "texts": st.lists(st.text(), max_size=3) | values,
    "vector": vectors | values,
    "vectors": st.lists(vectors, max_size=3) | values,
    "k": st.integers(1, 5) | values,
    "threshold": st.floats(0, 1) | values,
    "allowed": st.lists(st.sampled_from(["bread", "tea", "label1"])) | values,
    "rule": st.sampled_from(["model", "none"]) | values,
    "label": st.sampled_from(["bread", "label1"]) | values,
    "labels": st.lists(st.sampled_from(["bread", "label1"]), max_size=3) | values,
    "n": st.integers(1, 5) | values,
    "documents": values,
    "rejected": st.lists(st.text(max_size=3)) | values,
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    kept = tmp_path_factory.mktemp("hostile") / "kept.jsonl"
    with client_of({"text": text_model(), "vector": vector_model()}, corrections=kept) as client:
        yield client


@settings(max_examples=150)
@given(
    name=st.sampled_from(["text", "vector"]),
    what=st.sampled_from(["tree", "label", "labels", "about"]),
    asked=st.dictionaries(
        st.sampled_from(["tree", "node", "label", "offset", "limit", "q", "other"]),
        st.one_of(st.integers(-1, 9), st.integers(), st.floats(), st.text(max_size=5), st.just("bread")),
    ),
)
def test_queries(client: Any, name: str, what: str, asked: dict[str, Any]) -> None:
    query = {key: str(value).encode("utf-8", "replace").decode() for key, value in asked.items()}
    answer = client.get(f"/v1/models/{name}/{what}", params=query)
    assert answer.status_code in EXPECTED, answer.text
    answer.json()


@settings(max_examples=150)
@given(path=st.sampled_from(PATHS), asked=st.fixed_dictionaries({}, optional=fields))
def test_objects(client: Any, path: str, asked: dict[str, Any]) -> None:
    body = json.dumps(asked).encode("utf-8", "surrogatepass")
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in EXPECTED, answer.text
    answer.json()


@settings(max_examples=60)
@given(path=st.sampled_from(PATHS), body=st.binary(max_size=200))
def test_bytes(client: Any, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}, answer.text
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/v1/projects/text/suggest", content=body, headers=form)
    assert answer.status_code in EXPECTED, answer.text


@settings(max_examples=60)
@given(part=st.text(max_size=20), limit=st.text(max_size=5) | st.integers().map(str))
def test_searches(client: Any, part: str, limit: str) -> None:
    answer = client.get("/v1/models/text/labels", params={"q": part, "limit": limit})
    assert answer.status_code in EXPECTED, answer.text
    assert client.get("/v1/models/text/labels", params={"q": part}).status_code == 200
