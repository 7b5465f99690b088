"""Small models behind a client."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import labeltree
from labeltree.model import Model

TOPICS = {
    "bread": "flour yeast oven dough knead",
    "soup": "broth spoon pot simmer ladle",
    "cake": "sugar icing oven sponge layer",
    "tea": "leaf cup kettle steep pour",
}
TEXTS = [f"{words} word{number}" for number in range(12) for words in TOPICS.values()]
LABELS = [[label] for _ in range(12) for label in TOPICS]


@functools.cache
def text_model(seed: int = 1) -> Model:
    return labeltree.train(TEXTS, LABELS, seed=seed, max_leaves=2, threads=1)


@functools.cache
def vector_model() -> Model:
    from scipy.sparse import csr_matrix

    X = csr_matrix([[float(column == row % 4) for column in range(4)] for row in range(40)])
    return labeltree.train(X, [[f"label{row % 4}"] for row in range(40)], threads=1)


@contextmanager
def client_of(models: Any, **settings: Any) -> Iterator[Any]:
    """Of a service that is ready."""
    from starlette.testclient import TestClient

    from labeltree.serve.app import create_app

    with TestClient(create_app(models, **settings), raise_server_exceptions=False) as client:
        wait_until(lambda: client.get("/health/ready").status_code == 200)
        yield client


def wait_until(is_so: Any, seconds: float = 120.0) -> None:
    """Kernels may have to be compiled first."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
