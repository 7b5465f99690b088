"""The short way is Starlette's, only shorter."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")

from labeltree.serve.dispatch import is_short
from labeltree.serve.operations import OPERATIONS


def scope(method: str, path: str) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path}


def test_operations_on_a_model_are_short() -> None:
    n_short = 0
    for operation in OPERATIONS:
        given = scope(operation.method, operation.path.replace("{name}", "kitchen").replace("{version}", "1"))
        if "{name}" not in operation.path or "{version}" in operation.path:
            assert not is_short(given)
            continue
        assert is_short(given)
        assert given["endpoint"] is operation.endpoint
        assert given["path_params"] == {"name": "kitchen"}
        n_short += 1
    assert n_short > 8


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models/kitchen/predict"),
        ("HEAD", "/v1/models/kitchen"),
        ("POST", "/v1/models/kitchen/predict/"),
        ("POST", "/prefix/v1/models/kitchen/predict"),
        ("POST", "//v1/models/kitchen/predict"),
        ("POST", "/v1/models/a/b/predict"),
        ("GET", "/"),
        ("GET", ""),
        ("OPTIONS", "*"),
    ],
)
def test_all_else_is_for_starlette(method: str, path: str) -> None:
    assert not is_short(scope(method, path))
    assert not is_short({"type": "lifespan"})
