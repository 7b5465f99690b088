"""The Open Inference Protocol: as its description has it, and by a client that many use."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.serving import TEXTS, client_of, text_model, vector_model, wait_until
from support.serving_process import Process, ask

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

from labeltree.serve.limits import Limits

INFER = "/v2/models/text/infer"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    models = {"text": text_model(), "vector": vector_model()}
    with client_of(models, limits=Limits(labels=50, documents=8)) as client:
        yield client


def tensor(texts: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts, **fields}


def test_what_it_is(client: Any) -> None:
    assert client.get("/v2").json()["name"] == "labeltree"
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    told = client.get("/v2/models/text").json()
    assert (told["versions"], told["inputs"][0]["datatype"]) == (["in-memory"], "BYTES")
    assert client.get("/v2/models/text/versions/in-memory").json() == told
    for path in ("/v2/models/text/ready", "/v2/models/text/versions/in-memory/ready"):
        assert client.get(path).json() == {"ready": True}
    for path in ("/v2/models/text/versions/1", "/v2/models/none", "/v2/none", "/v2/models/none/ready"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert list(answer.json()) == ["error"]
        assert answer.headers["Content-Type"] == "application/json"


def test_labels_and_probabilities(client: Any) -> None:
    asked = {"id": "mine", "inputs": [tensor(TEXTS[:3])], "parameters": {"k": 2, "priority": 1}}
    told = client.post(INFER, json=asked).json()
    assert (told["model_name"], told["model_version"], told["id"]) == ("text", "in-memory", "mine")
    expected = text_model().predict(TEXTS[:3], 2)
    assert told["outputs"] == [
        {
            "name": "labels", "datatype": "BYTES", "shape": [3, 2],
            "data": [p[0] for row in expected for p in row],
        },
        {
            "name": "probabilities", "datatype": "FP32", "shape": [3, 2],
            "data": [p[1] for row in expected for p in row],
        },
    ]  # fmt: skip
    by_version = client.post("/v2/models/text/versions/in-memory/infer", json=asked).json()
    assert by_version == told


def test_fewer_labels_than_asked_for_are_filled_up(client: Any) -> None:
    asked = {"inputs": [tensor(TEXTS[:1])], "parameters": {"k": 3, "threshold": 0.9}}
    labels, probabilities = client.post(INFER, json=asked).json()["outputs"]
    assert labels["data"][1:] == ["", ""]
    assert probabilities["data"][1:] == [0.0, 0.0]
    # There are four labels: more columns would take memory and say nothing.
    asked = {
        "inputs": [tensor([[TEXTS[0]]], shape=[1, 1])],
        "outputs": [{"name": "labels"}],
        "parameters": {"k": 9},
    }
    (labels,) = client.post(INFER, json=asked).json()["outputs"]
    assert labels["shape"] == [1, 4]


def test_binary_tensors(client: Any) -> None:
    texts = [text.encode() for text in TEXTS[:2]]
    binary = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    head = '{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [2], "parameters": %s}]}'
    head %= '{"binary_data_size": %d}'
    told = (head % len(binary)).encode()
    headers = {"Inference-Header-Content-Length": str(len(told))}
    answer = client.post(INFER, content=told + binary, headers=headers)
    plain = client.post(INFER, json={"inputs": [tensor(TEXTS[:2])]})
    assert answer.json() == plain.json()
    for part in (binary[:-1], binary + b"\x01", b"", binary[:2]):
        assert client.post(INFER, content=told + part, headers=headers).status_code == 400
        own = (head % len(part)).encode()
        cut = {"Inference-Header-Content-Length": str(len(own))}
        assert client.post(INFER, content=own + part, headers=cut).status_code == 400
    for length in ("x", "-1", "9999999", "9" * 30):
        wrong = {"Inference-Header-Content-Length": length}
        assert client.post(INFER, content=told + binary, headers=wrong).status_code == 400


def test_binary_answers(client: Any) -> None:
    asked = {"inputs": [tensor(TEXTS[:1])], "parameters": {"k": 2, "binary_data_output": True}}
    answer = client.post(INFER, json=asked)
    length = int(answer.headers["Inference-Header-Content-Length"])
    labels, probabilities = json.loads(answer.content[:length])["outputs"]
    size = labels["parameters"]["binary_data_size"]
    rest = answer.content[length:]
    expected = text_model().predict(TEXTS[:1], 2)[0]
    assert rest[:size] == b"".join(struct.pack("<I", len(name)) + name.encode() for name, _ in expected)
    assert struct.unpack("<2f", rest[size:]) == tuple(p for _, p in expected)
    assert probabilities["parameters"]["binary_data_size"] == 8
    assert answer.headers["X-Model"] == "text@in-memory"
    asked["outputs"] = [{"name": "labels", "parameters": {"binary_data": False}}]  # type: ignore[assignment]
    (labels,) = client.post(INFER, json=asked).json()["outputs"]
    assert labels["data"] == [name for name, _ in expected]


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (422, {}),
        (422, {"inputs": "text"}),
        (400, {"inputs": []}),
        (400, {"inputs": [tensor(TEXTS[:1]), tensor(TEXTS[:1])]}),
        (400, {"inputs": [tensor([1.5], datatype="FP32")]}),
        (400, {"inputs": [tensor([1])]}),
        (400, {"inputs": [tensor([["a", "b"]])]}),
        (400, {"inputs": [tensor(["a"], shape=[2])]}),
        (400, {"inputs": [tensor(["a"])], "outputs": [{"name": "none"}]}),
        (422, {"inputs": [tensor([])]}),
        (422, {"inputs": [tensor(["a"] * 9)]}),
        (422, {"inputs": [tensor(["a"])], "parameters": {"k": 51}}),
        (422, {"inputs": [tensor(["a"])], "parameters": {"threshold": 2}}),
    ],
)
def test_what_is_wrong_is_told(client: Any, status: int, asked: Any) -> None:
    answer = client.post(INFER, json=asked)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]


def test_unknown_parameters_are_refused(client: Any) -> None:
    answer = client.post(INFER, json={"inputs": [tensor(["a"])], "parameters": {"top_k": 2}})
    assert (answer.status_code, "top_k" in answer.json()["error"]) == (422, True)


def test_other_media_types_and_vectors(client: Any) -> None:
    answer = client.post(INFER, content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    asked = {"inputs": [tensor(["a"])]}
    answer = client.post("/v2/models/vector/infer", json=asked)
    assert (answer.status_code, "/v1/models/vector/predict" in answer.json()["error"]) == (422, True)
    assert client.get("/v2/models/vector").json()["inputs"] == []


def test_the_client_of_triton(tmp_path: Path) -> None:
    for needed in ("tritonclient", "geventhttpclient", "ml_dtypes"):
        pytest.importorskip(needed, reason="no Triton client: pip install 'tritonclient[http]'")
    import numpy as np
    from tritonclient import http, utils

    path = tmp_path / "kitchen.labeltree"
    text_model().save(path)
    service = Process(str(path))
    try:
        wait_until(lambda: ask(service.connect(), "GET", "/health/ready")[0] == 200)
        assert service.address is not None
        client = http.InferenceServerClient("{}:{}".format(*service.address))
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("kitchen")
        version = client.get_model_metadata("kitchen")["versions"][0]
        expected = text_model().predict(TEXTS[:4], 2)
        for is_binary in (True, False):
            texts = http.InferInput("text", [4], "BYTES")
            texts.set_data_from_numpy(np.array(TEXTS[:4], object), binary_data=is_binary)
            found = client.infer("kitchen", [texts], version, request_id="1", parameters={"k": 2})
            labels = found.as_numpy("labels")
            assert labels.tolist() == [[label.encode() for label, _ in row] for row in expected]
            as_json = client.infer("kitchen", [texts], outputs=[http.InferRequestedOutput("labels", False)])
            assert as_json.as_numpy("labels").shape == (4, 4)
            np.testing.assert_array_equal(
                found.as_numpy("probabilities"),
                np.array([[p for _, p in row] for row in expected], np.float32),
            )
        with pytest.raises(utils.InferenceServerException, match="there is no model"):
            client.get_model_metadata("none")
    finally:
        service.process.terminate()
        service.process.wait(60)
