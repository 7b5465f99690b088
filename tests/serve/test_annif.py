"""Annif's API: what its clients send is answered as Annif would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.serving import TEXTS, client_of, text_model, vector_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

SUGGEST, BATCH = "/v1/projects/kitchen/suggest", "/v1/projects/kitchen/suggest-batch"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tmp_path_factory.mktemp("annif") / "kitchen.labeltree"
    text_model().save(path)
    with client_of({"kitchen": path}) as client:
        yield client


def pairs(told: dict[str, Any]) -> list[tuple[str, float]]:
    assert all(found["uri"] == found["label"] and found["notation"] is None for found in told["results"])
    return [(found["uri"], found["score"]) for found in told["results"]]


def test_projects(client: Any) -> None:
    assert client.get("/v1/").json()["title"] == "labeltree"
    (project,) = client.get("/v1/projects").json()["projects"]
    assert project == client.get("/v1/projects/kitchen").json()
    assert (project["project_id"], project["is_trained"]) == ("kitchen", True)
    assert project["modification_time"].endswith("+00:00")


def test_suggestions_of_a_form(client: Any) -> None:
    told = client.post(SUGGEST, data={"text": TEXTS[0], "limit": "2", "language": "en", "project": "x"})
    assert pairs(told.json()) == text_model().predict([TEXTS[0]], 2)[0]
    told = client.post(SUGGEST, data={"text": TEXTS[0], "threshold": "0.5"})
    assert pairs(told.json()) == text_model().predict([TEXTS[0]], 10, threshold=0.5)[0]
    assert client.post(SUGGEST, data={"text": "größe ≠ zzz"}).json() == {"results": []}


def test_suggestions_of_a_batch(client: Any) -> None:
    documents = [{"text": text, "document_id": str(n), "metadata": {}} for n, text in enumerate(TEXTS[:3])]
    told = client.post(BATCH, params={"limit": 1}, json={"documents": [*documents, {"text": ""}]}).json()
    assert [each["document_id"] for each in told] == ["0", "1", "2", None]
    assert [pairs(each) for each in told] == [*text_model().predict(TEXTS[:3], 1), []]


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (422, {"content": b"", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        (400, {"content": b"text=%ff", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        (400, {"content": b"text=\xff", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        (400, {"content": b"a=1&" * 200, "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        (422, {"data": {"text": "a", "limit": "x"}}),
        (422, {"data": {"text": "a", "limit": "0"}}),
        (422, {"data": {"text": "a", "limit": "1001"}}),
        (422, {"data": {"text": "a", "limit": "9" * 5_000}}),
        (422, {"data": {"text": "a", "threshold": "nan"}}),
        (422, {"data": {"text": "a", "threshold": "inf"}}),
        (422, {"data": {"text": "a", "threshold": "-1"}}),
        (415, {"json": {"text": "a"}}),
    ],
)
def test_bad_forms_are_problems(client: Any, status: int, asked: dict[str, Any]) -> None:
    answer = client.post(SUGGEST, **asked)
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_other_problems(client: Any) -> None:
    assert client.get("/v1/projects/none").status_code == 404
    assert client.post("/v1/projects/none/suggest", data={"text": "a"}).status_code == 404
    for body in ({}, {"documents": []}, {"documents": [{"text": 1}]}, {"documents": [{"text": "a"}] * 257}):
        assert client.post(BATCH, json=body).status_code == 422
    assert client.post(BATCH, params={"limit": "x"}, json={"documents": [{"text": "a"}]}).status_code == 422


def test_models_of_vectors_are_no_projects() -> None:
    with client_of({"text": text_model(), "vector": vector_model()}) as client:
        listed = client.get("/v1/projects").json()["projects"]
        assert [project["project_id"] for project in listed] == ["text"]
        for answer in (
            client.get("/v1/projects/vector"),
            client.post("/v1/projects/vector/suggest", data={"text": "a"}),
            client.post("/v1/projects/vector/suggest-batch", json={"documents": [{"text": "a"}]}),
        ):
            assert (answer.status_code, "takes vectors" in answer.json()["detail"]) == (404, True)
