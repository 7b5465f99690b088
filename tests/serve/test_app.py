"""What each path answers, and that nothing a client sends is a fault of the service."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.serving import LABELS, TEXTS, client_of, text_model, vector_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

import labeltree
from labeltree.errors import ModelFileError, ParameterError
from labeltree.features import embedding
from labeltree.features.embedding import EMBEDDERS, Embedder
from labeltree.query import IF_UNKNOWN, RULES, SEARCHES
from labeltree.serve.app import create_app
from labeltree.serve.limits import Limits
from labeltree.serve.page_files import FILES
from labeltree.serve.tokens import read_tokens

LIMITS = Limits(
    body_bytes=20_000,
    documents=8,
    text_characters=2_000,
    labels=50,
    explained=3,
    explained_characters=1_000,
    explained_product=2_000,
)
PREDICT, VECTORS = "/v1/models/text/predict", "/v1/models/vector/predict"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of({"text": text_model(), "vector": vector_model()}, limits=LIMITS) as client:
        yield client


def labels_of(result: dict[str, Any]) -> list[tuple[str, float]]:
    return [(found["label"], found["probability"]) for found in result["labels"]]


def test_a_text_gets_the_answer_of_the_model(client: Any) -> None:
    answer = client.post(PREDICT, json={"text": TEXTS[0], "k": 3})
    assert answer.status_code == 200
    (result,) = answer.json()["results"]
    assert labels_of(result) == text_model().predict([TEXTS[0]], 3)[0]
    assert (result["exact"], result["known_words"]) == (True, True)
    assert answer.json()["model"] == {"name": "text", "version": "in-memory"}
    assert answer.headers["X-Model"] == "text@in-memory"


def test_several_texts_are_answered_in_their_order(client: Any) -> None:
    answer = client.post(PREDICT, json={"texts": TEXTS[:8], "threshold": 0.1}).json()
    assert list(map(labels_of, answer["results"])) == text_model().predict(TEXTS[:8], threshold=0.1)


def test_vectors(client: Any) -> None:
    row = {"indices": [2], "values": [1.0]}
    both = client.post(VECTORS, json={"vectors": [row, {"indices": [], "values": []}], "k": 1}).json()[
        "results"
    ]
    assert [found["label"] for found in both[0]["labels"]] == ["label2"]
    assert [result["known_words"] for result in both] == [True, False]
    single = client.post(VECTORS, json={"vector": row, "k": 1}).json()["results"]
    assert single == both[:1]


def test_masks_and_unknown_words(client: Any) -> None:
    found = client.post(PREDICT, json={"text": TEXTS[0], "allowed": ["soup", "tea"]}).json()["results"][0]
    assert labels_of(found) == text_model().predict([TEXTS[0]], allowed=["soup", "tea"])[0]
    found = client.post(PREDICT, json={"text": TEXTS[0], "without": ["bread"], "rule": "none"}).json()
    assert labels_of(found["results"][0]) == text_model().predict([TEXTS[0]], without=["bread"])[0]
    nothing = client.post(PREDICT, json={"text": "zzz", "if_unknown": "nothing"}).json()["results"][0]
    assert nothing == {"labels": [], "exact": True, "known_words": False}


def test_rules() -> None:
    tuned = labeltree.train(TEXTS, LABELS, max_leaves=2, threads=1)
    tuned.rule = tuned.tune(TEXTS, LABELS, measure="micro-f1", threads=1).rule
    with client_of({"tuned": tuned}) as client:
        assert client.get("/v1/models/tuned").json()["model"]["rule"] == tuned.rule.measure
        asked = {"texts": TEXTS[:3]}
        by_rule = client.post("/v1/models/tuned/predict", json=asked).json()["results"]
        assert list(map(labels_of, by_rule)) == tuned.predict(TEXTS[:3])
        without = client.post("/v1/models/tuned/predict", json=asked | {"rule": "none"}).json()["results"]
        assert list(map(labels_of, without)) == tuned.predict(TEXTS[:3], rule="none")
        assert by_rule != without
        for rule in ("model", "none"):
            how = {"text": TEXTS[0], "rule": rule}
            told = client.post("/v1/models/tuned/explain", json=how).json()["explanation"]
            wanted = json.loads(json.dumps(tuned.explain(TEXTS[0], rule=rule).to_dict()))
            assert told == wanted
            told = client.post("/v1/models/tuned/why-not", json=how | {"label": "tea"}).json()["why_not"]
            given = tuned.predict(TEXTS[:1], rule=rule)[0][:3]
            assert [(found["label"], found["probability"]) for found in told["instead"]] == given


def test_explanations(client: Any) -> None:
    told = client.post("/v1/models/text/explain", json={"text": TEXTS[0], "labels": ["bread"]}).json()
    expected = json.loads(json.dumps(text_model().explain(TEXTS[0], "bread").to_dict()))
    assert told["explanation"] == expected
    told = client.post("/v1/models/text/why-not", json={"text": TEXTS[0], "label": "tea"}).json()
    assert told["why_not"] == json.loads(json.dumps(text_model().why_not(TEXTS[0], "tea").to_dict()))
    told = client.post("/v1/models/vector/explain", json={"vector": {"indices": [1], "values": [1]}}).json()
    assert told["explanation"]["labels"]
    told = client.post("/v1/models/text/neighbours", json={"text": TEXTS[0], "n": 2}).json()["neighbours"]
    assert [(near["row"], near["similarity"]) for near in told] == text_model().neighbours([TEXTS[0]], 2)[0]


@pytest.mark.parametrize(
    ("path", "asked", "told"),
    [
        ("text/explain", {"text": "a " * 501}, "1,002 characters are more than the 1,000"),
        ("text/why-not", {"text": "a " * 501, "label": "bread"}, "1,002 characters are more than the 1,000"),
        ("text/explain", {"text": "a " * 500, "k": 3}, "at most 2 labels"),
        ("text/explain", {"text": "a " * 500, "labels": ["bread", "tea", "soup"]}, "at most 2 labels"),
        (
            "vector/explain",
            {"vector": {"indices": [1] * 201, "values": [1] * 201}},
            "201 entries are more than the 200",
        ),
    ],
)
def test_only_so_much_is_explained(client: Any, path: str, asked: dict[str, Any], told: str) -> None:
    answer = client.post(f"/v1/models/{path}", json=asked)
    assert (answer.status_code, told in answer.json()["detail"]) == (422, True), answer.text
    assert client.post("/v1/models/text/explain", json={"text": "a " * 500, "k": 2}).status_code == 200


def test_searches_do_not_wait_for_explanations(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    model = labeltree.train(TEXTS, LABELS, max_leaves=2, threads=1)
    monkeypatch.setattr(
        model, "explain", lambda *given, **_: may_end.wait(60) and model.why_not("oven", "tea")
    )
    with client_of({"text": model}) as client, ThreadPoolExecutor(1) as thread:
        explained = thread.submit(client.post, "/v1/models/text/explain", json={"text": "oven"})
        try:
            for what in ("labels?q=br", "label?label=tea", "tree", "about"):
                assert client.get(f"/v1/models/text/{what}").status_code == 200
            assert not explained.done()
        finally:
            may_end.set()
        assert explained.result().status_code == 200


def test_models_and_labels(client: Any) -> None:
    models = client.get("/v1/models").json()["models"]
    assert [(model["name"], model["n_labels"]) for model in models] == [("text", 4), ("vector", 4)]
    assert client.get("/v1/models/text").json()["model"] == models[0]
    found = client.get("/v1/models/text/labels?q=EA").json()
    assert (found["labels"], found["n_found"]) == (
        [{"label": "bread", "rows": 12}, {"label": "tea", "rows": 12}],
        2,
    )
    found = client.get("/v1/models/text/labels?limit=1").json()
    assert (len(found["labels"]), found["n_found"]) == (1, 4)


def test_ids_and_headers(client: Any) -> None:
    assert client.get("/health/live", headers={"X-Request-ID": "mine-1"}).headers["X-Request-ID"] == "mine-1"
    answer = client.get(
        "/health/live", headers={"X-Request-ID": "a b\tc" * 99, "Origin": "https://example.org"}
    )
    assert re.fullmatch(r"[0-9a-f]{16}-[0-9a-f]+", answer.headers["X-Request-ID"])
    assert not [name for name in answer.headers if name.startswith("access-control")]


BAD = [
    (400, b""),
    (400, b"{"),
    (400, b"\xff\xfe"),
    (400, b'{"text": "\xff"}'),
    (400, b'{"text": "\\ud800"}'),
    (400, b'{"vector": {"indices": [0], "values": [NaN]}}'),
    (422, b'{"text": ' + b"[" * 9_000),
    (422, b"[" * 9_000),
    (422, b'{"more": ' + b"[" * 9_000),
    (422, b"null"),
    (422, b"{}"),
    (422, b'{"text": null}'),
    (422, b'{"text": 3}'),
    (422, b'{"texts": []}'),
    (422, b'{"texts": ["a", null]}'),
    (422, b'{"text": "a", "texts": ["b"]}'),
    (422, b'{"text": "a", "vector": {"indices": [], "values": []}}'),
    (422, json.dumps({"texts": ["a"] * 9}).encode()),
    (422, json.dumps({"text": "a" * 2_001}).encode()),
    (422, b'{"text": "a", "k": 0}'),
    (422, b'{"text": "a", "k": -1}'),
    (422, b'{"text": "a", "k": 51}'),
    (422, b'{"text": "a", "k": 1.5}'),
    (422, b'{"text": "a", "k": true}'),
    (422, b'{"text": "a", "k": "5"}'),
    (422, b'{"text": "a", "k": ' + b"9" * 40 + b"}"),
    (422, b'{"text": "a", "k": ' + b"9" * 9_000 + b"}"),
    (422, b'{"text": "a", "threshold": 2}'),
    (422, b'{"text": "a", "threshold": 1e999}'),
    (422, b'{"text": "a", "rule": "other"}'),
    (422, b'{"text": "a", "search": "beam"}'),
    (422, b'{"text": "a", "if_unknown": "what"}'),
    (422, b'{"text": "a", "allowed": ["no such label"]}'),
    (422, b'{"text": "a", "allowed": []}'),
    (422, b'{"text": "a", "allowed": "bread"}'),
    (422, b'{"text": "a", "without": ["bread", "soup", "cake", "tea"]}'),
    (422, b'{"text": "a", "kk": 1}'),
    (413, json.dumps({"text": "a" * 20_000}).encode()),
]  # fmt: skip
BAD_VECTORS = [
    b'{"text": "a"}',
    b'{"vector": {"indices": [4], "values": [1]}}',
    b'{"vector": {"indices": [-1], "values": [1]}}',
    b'{"vector": {"indices": [2147483647], "values": [1]}}',
    b'{"vector": {"indices": [99999999999999999999], "values": [1]}}',
    b'{"vector": {"indices": [0.5], "values": [1]}}',
    b'{"vector": {"indices": [0], "values": [1e300]}}',
    b'{"vector": {"indices": [0], "values": [1, 2]}}',
    b'{"vector": {"indices": [0]}}',
    b'{"vectors": [{"indices": [0], "values": [1]}, 3]}',
]


def test_choices_are_those_of_queries(client: Any) -> None:
    asked = client.get("/openapi.json").json()["components"]["schemas"]["PredictRequest"]["properties"]
    assert set(asked["rule"]["enum"]) == set(RULES)
    assert set(asked["if_unknown"]["enum"]) == set(IF_UNKNOWN)
    assert set(asked["search"]["enum"]) == set(SEARCHES) - {"beam"}


def check_problem(answer: Any, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert told["title"]
    assert told["detail"]


@pytest.mark.parametrize(("status", "body"), BAD, ids=lambda value: str(value)[:60])
def test_bad_bodies_are_problems(client: Any, status: int, body: bytes) -> None:
    check_problem(client.post(PREDICT, content=body, headers={"Content-Type": "application/json"}), status)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"text": "\\ud800"}', "half of a surrogate pair"),
        (b'{"text": "bread \\udc00 and much more of it"}', "half of a surrogate pair"),
        (b'{"text": "bread', "truncated"),
        (b'{"text": "a", "rule": "x"}', "which may be 'model' or 'none'"),
    ],
)
def test_problems_of_bodies_say_what_to_send(client: Any, body: bytes, told: str) -> None:
    answer = client.post(PREDICT, content=body, headers={"Content-Type": "application/json"})
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("labels?limt=3", "no query parameter 'limt': this path takes q, limit; did you mean 'limit'?"),
        ("labels?limit=3&page=2", "no query parameter 'page': this path takes q, limit"),
        ("label?label=tea&x", "'x': this path takes label"),
        ("label?label=tea&x=1", "'x': this path takes label"),
        ("tree?nod=1", "'nod': this path takes tree, node,"),
        ("about?verbose=1", "'verbose': this path takes none"),
        ("?x=1", "'x': this path takes none"),
        ("/v1/models?limit=3", "'limit': this path takes none"),
        ("/v1/settings?a=b", "'a'"),
        ("/health/ready?a=b", "'a'"),
        ("/metrics?a=b", "'a'"),
        ("/openapi.json?a=b", "'a'"),
    ],
)
def test_unknown_parameters_are_named(client: Any, path: str, told: str) -> None:
    answer = client.get(path if path.startswith("/") else f"/v1/models/text/{path}".replace("/?", "?"))
    check_problem(answer, 400)
    assert told in answer.json()["detail"]


def test_bodies_have_no_parameters_beside_them(client: Any) -> None:
    for path in ("predict", "explain", "why-not", "neighbours", "corrections", "reload"):
        check_problem(client.post(f"/v1/models/text/{path}?k=1", json={"text": "a"}), 400)


def test_protocols_may_have_more_parameters(client: Any) -> None:
    for path in ("/v1/projects?language=en", "/v1/projects/text?a=b", "/v2?a=b", "/v2/models/text/ready?a=b"):
        assert client.get(path).status_code == 200
    asked = {"documents": [{"text": "bread"}]}
    assert client.post("/v1/projects/text/suggest-batch?language=en", json=asked).status_code == 200


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("beside", [TEXTS, np.eye(len(TEXTS))], ids=["texts", "rows"])
def test_models_of_pairs_are_refused(tmp_path: Path, beside: Any, is_file: bool) -> None:
    """No request can hold a text or vector and numbers beside it."""
    numbers = np.arange(3.0 * len(TEXTS)).reshape(-1, 3)
    model = labeltree.train([beside, numbers], LABELS, max_leaves=2, threads=1)
    model.save(tmp_path / "pairs")
    with pytest.raises(ModelFileError, match=r"model a: was trained on rows with vectors beside them"):
        create_app({"a": tmp_path / "pairs" if is_file else model})


def test_texts_that_are_embedded_are_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_letters(texts: Sequence[str]) -> Any:
        return np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)

    monkeypatch.setitem(EMBEDDERS, "wordllama", Embedder("wordllama", 3, "embed", lambda: count_letters))
    embedding._loaded.cache_clear()
    model = labeltree.train(TEXTS, LABELS, embed="wordllama", max_leaves=2, threads=1)
    with client_of({"text": model}) as client:
        assert client.get("/v1/models/text").json()["model"]["input"] == "text"
        found = client.post(PREDICT, json={"text": TEXTS[0], "k": 2}).json()["results"][0]
        assert labels_of(found) == model.predict([TEXTS[0]], 2)[0]
    embedding._loaded.cache_clear()


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    with pytest.raises(ModelFileError, match=r"nothing: cannot be read \(No such file"):
        create_app({"a": nothing})
    with pytest.raises(ParameterError, match="labeltree test MODEL DATA"):
        create_app({"text": text_model()}, scorecards={"text": nothing})
    with pytest.raises(ParameterError, match="one token per line"):
        read_tokens(nothing)


def test_problems_of_vectors_are_told_in_words_of_the_request(client: Any) -> None:
    told = client.post(VECTORS, json={"text": "a"}).json()["detail"]
    assert told == "vector takes vectors, not texts: send vector with indices (0 to 3) and values"
    rows = [{"indices": [0], "values": [1]}, {"indices": [2, 4], "values": [1, 1]}]
    told = client.post(VECTORS, json={"vectors": rows}).json()["detail"]
    assert told.startswith("vector 1 has index 4, but vector has indices from 0 to 3")
    rows = [{"indices": [2], "values": [-1e300]}]
    assert "vector 0 has a value beyond" in client.post(VECTORS, json={"vectors": rows}).json()["detail"]


@pytest.mark.parametrize("body", BAD_VECTORS, ids=lambda body: str(body)[:70])
def test_bad_vectors_are_problems(client: Any, body: bytes) -> None:
    check_problem(client.post(VECTORS, content=body, headers={"Content-Type": "application/json"}), 422)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("explain", {"text": "a", "labels": ["no such label"]}),
        ("explain", {"text": "a", "k": 4}),
        ("explain", {"text": "a", "labels": ["bread"] * 4}),
        ("explain", {}),
        ("why-not", {"text": "a", "label": "no such label"}),
        ("why-not", {"text": "a"}),
        ("neighbours", {"text": "a", "n": 0}),
        ("neighbours", {"text": "a", "n": 10**9}),
    ],
)
def test_bad_questions_are_problems(client: Any, path: str, body: dict[str, Any]) -> None:
    check_problem(client.post(f"/v1/models/text/{path}", json=body), 422)


def test_a_wrong_label_is_answered_with_names_near_it(client: Any) -> None:
    told = client.post("/v1/models/text/why-not", json={"text": "a", "label": "breat"}).json()
    assert "did you mean 'bread'" in told["detail"]


def test_other_problems(client: Any) -> None:
    check_problem(client.get("/nothing"), 404)
    check_problem(client.get("/v1/models/none"), 404)
    check_problem(client.post("/v1/models/none/predict", json={"text": "a"}), 404)
    check_problem(client.get(PREDICT), 405)
    check_problem(client.request("BREW", PREDICT), 405)
    check_problem(client.post(PREDICT, data={"text": "a"}), 415)
    check_problem(client.post(PREDICT, json={"text": "a"}, headers={"Content-Encoding": "gzip"}), 415)
    for limit in ("0", "x", "-1", "51", "9" * 5000, "٣"):
        check_problem(client.get("/v1/models/text/labels", params={"limit": limit}), 422)


def test_a_body_without_a_length_is_limited_too(client: Any) -> None:
    parts = (b"a" * 1_000 for _ in range(30))
    check_problem(client.post(PREDICT, content=parts, headers={"Content-Type": "application/json"}), 413)


def test_the_description_covers_all_routes(client: Any) -> None:
    told = client.get("/openapi.json").json()
    described = {(method.upper(), path) for path, of_path in told["paths"].items() for method in of_path}
    routes = {(method, route.path) for route in client.app.routes for method in route.methods - {"HEAD"}}
    assert described == routes - {("GET", path) for path in FILES}
    text = json.dumps(told)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in told["components"]["schemas"]


def test_metrics(client: Any) -> None:
    client.post(PREDICT, json={"text": "a"})
    client.get("/made/up/by/a/client")
    lines = client.get("/metrics").text.splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    assert all(name.startswith("labeltree_") for name in names)
    assert 'labeltree_model_info{model="text",version="in-memory"} 1.0' in names
    assert "labeltree_ready 1.0" in names
    assert not [name for name in names if "made" in name]
    assert any(
        name.startswith('labeltree_requests_total{method="POST",route="/v1/models/{name}/predict"')
        for name in names
    )
