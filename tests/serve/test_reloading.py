"""Models are replaced while the service runs, and bad files are refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.serving import TEXTS, client_of, text_model, wait_until

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

from labeltree.errors import LabelTreeError, NotAModelError, ParameterError
from labeltree.serve import service as service_module
from labeltree.serve.registry import Registry, Reload


@pytest.fixture
def path(tmp_path: Path) -> Path:
    text_model().save(tmp_path / "model.labeltree")
    return tmp_path / "model.labeltree"


def replace(path: Path, content: bytes) -> None:
    """As whoever copies files should do it."""
    beside = path.with_name("beside")
    beside.write_bytes(content)
    os.replace(beside, path)


def test_a_new_file_takes_the_place_of_the_old_one(path: Path) -> None:
    registry = Registry({"model": path})
    old = registry["model"]
    assert registry.reload() == []
    text_model(seed=2).save(path)
    assert registry.reload() == [Reload("model", is_done=True)]
    assert registry["model"].version != old.version
    assert registry.reload() == []
    assert old.model.predict(TEXTS[:2]) == text_model().predict(TEXTS[:2])  # whoever has it can still use it
    assert registry["model"].model.predict(TEXTS[:2]) == text_model(seed=2).predict(TEXTS[:2])


@pytest.mark.parametrize("content", [b"", b"garbage", None], ids=["empty", "garbage", "half"])
def test_a_bad_file_is_refused_once(path: Path, content: bytes | None) -> None:
    registry, good = Registry({"model": path}), path.read_bytes()
    old = registry["model"]
    replace(path, good[: len(good) // 2] if content is None else content)
    assert [(each.name, each.is_done) for each in registry.reload()] == [("model", False)]
    assert registry.reload() == []
    (again,) = registry.reload(is_forced=True)
    assert (again.is_done, bool(again.told)) == (False, True)
    assert registry["model"] is old
    path.unlink()
    assert registry.reload() == []
    replace(path, good)
    assert registry.reload() == [Reload("model", is_done=True)]
    assert registry["model"].version == old.version


def test_the_version_is_of_the_content(path: Path) -> None:
    version = Registry({"model": path})["model"].version
    assert version == path.read_bytes()[-32:].hex()[:12]


def test_what_cannot_be_served(path: Path) -> None:
    with pytest.raises(ParameterError, match="no model to serve"):
        Registry({})
    with pytest.raises(ParameterError, match="name must be of letters"):
        Registry({"a/b": path})
    path.write_bytes(b"garbage" * 20)
    with pytest.raises((NotAModelError, LabelTreeError)):
        Registry({"model": path})


def test_the_service_sees_new_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "WATCH_SECONDS", 0.02)

    def version(client: Any) -> str:
        answer = client.post("/v1/models/model/predict", json={"text": TEXTS[0]})
        assert answer.status_code == 200
        return answer.json()["model"]["version"]

    def count(client: Any, outcome: str) -> bool:
        return (
            f'labeltree_reloads_total{{model="model",outcome="{outcome}"}} 1.0' in client.get("/metrics").text
        )

    with client_of({"model": path}) as client:
        first = version(client)
        text_model(seed=2).save(path)
        wait_until(lambda: version(client) != first)
        second = version(client)
        replace(path, b"garbage")
        wait_until(lambda: count(client, "refused"))
        assert version(client) == second
        assert count(client, "done")


def test_on_request_with_a_token(tmp_path: Path) -> None:
    path, token = tmp_path / "model.labeltree", "a-token-of-some-length"
    text_model().save(path)
    headers = {"Authorization": f"Bearer {token}"}
    with client_of({"model": path, "memory": text_model()}, tokens=[token]) as client:
        ask = "/v1/models/model/reload"
        assert client.post(ask).status_code == 401
        told = client.post(ask, headers=headers).json()
        assert told["reloaded"] is False
        text_model(seed=2).save(path)
        new = client.post(ask, headers=headers).json()
        assert new["model"]["version"] != told["model"]["version"]  # the watch may have been quicker
        (tmp_path / "new").write_bytes(b"no model")
        (tmp_path / "new").replace(path)
        answer = client.post(ask, headers=headers)
        assert answer.status_code == 409
        assert f"version {new['model']['version']} stays: " in answer.json()["detail"]
        assert client.post("/v1/models/memory/reload", headers=headers).status_code == 409
    text_model().save(path)
    with client_of({"model": path}) as client:
        assert client.post(ask).status_code == 403
