"""A model as it is served: under a name, in a version, checked before anyone asks it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labeltree.data.rows import SparseRows
from labeltree.errors import DataError, ModelFileError
from labeltree.model import Model, load
from labeltree.query import USUAL_K, Query, make_query
from labeltree.serve.schemas import ModelCard, ModelName
from labeltree.serve.walking import TreeWalk
from labeltree.storage.container.layout import DIGEST_BYTES

IN_MEMORY = "in-memory"  # the version of a model that has no file
_SHORT = 12  # hexadecimal digits of a digest
_TRIES = 3
_QUICK_SECONDS = 0.005  # for the test rows; the most common models take a tenth of a millisecond
_MASKS = 8  # that are kept: what follows from one is about a byte per node of the model


class Signature(NamedTuple):
    """What changes when a file is replaced."""

    inode: int
    modified: int
    size: int


class Served:
    """A model that does not change. It is equal to itself only, so that batches are of one version."""

    def __init__(self, name: str, model: Model, version: str, signature: Signature | None = None) -> None:
        if model.features.takes_pairs:
            raise ModelFileError(
                f"model {name}: was trained on rows with vectors beside them, which no request can hold; "
                "call it from Python with [X, vectors], or serve a model of texts or vectors alone"
            )
        self.name, self.model, self.version, self.signature = name, model, version, signature
        self.model_name = ModelName(name, version)
        self.headers = ((b"x-model", f"{name}@{version}".encode()),)  # of all answers
        self.takes_text = model.features.takes_texts
        self.is_quick = False  # whether it may answer in the event loop; the check finds out
        self.mask = lru_cache(_MASKS)(model.mask)  # of tuples; kept here, and so not longer than the model

    @cached_property
    def walk(self) -> TreeWalk:
        return TreeWalk(self.model)

    def card(self) -> ModelCard:
        model = self.model
        return ModelCard(
            name=self.name, version=self.version, n_labels=model.n_labels, n_features=model.n_features,
            n_examples=model.n_examples, calibrated=model.is_calibrated,
            rule=None if model.rule is None else model.rule.measure, input=model.features.facts()["input"],
            card=model.card,
        )  # fmt: skip

    def check(self) -> Served:
        """Answer test rows, by the model's rule too, by which kernels are compiled and loaded; an error where
        answers are none."""
        model, plain = self.model, make_query(USUAL_K)
        n = min(1, model.n_features)
        row = SparseRows(np.array([0, n]), np.zeros(n, np.int32), np.ones(n, np.float32), model.n_features)
        documents = [model.features.given_rows(row)]
        try:
            documents.append(model.features.given_rows(["some words"]))
        except DataError:  # it takes no texts
            documents.append(documents[0])
        queries = [plain] if model.rule is None else [plain, model.ruled(plain, is_usual=True)]
        are_quick = [self._is_quick(documents, query) for query in queries]  # each is asked
        self.is_quick = all(are_quick)
        return self

    def _is_quick(self, documents: Sequence[SparseRows], query: Query) -> bool:
        """After the first answers, which are checked, and which make what is kept for the next ones."""
        model = self.model
        for rows in documents:
            _, probabilities, _ = model.best(rows, query, 1)
            if not (
                np.isfinite(probabilities).all() and (probabilities >= 0).all() and (probabilities <= 1).all()
            ):
                raise ModelFileError(
                    f"model {self.name} answers a test row with {probabilities[0]}; train it again"
                )
        model.answer(documents[0], query, 1)  # also makes the list of labels
        began = time.perf_counter()
        for rows in documents:
            model.answer(rows, query, 1)
        return time.perf_counter() - began < _QUICK_SECONDS


def signature_of(path: Path) -> Signature:
    found = os.stat(path)
    return Signature(found.st_ino, found.st_mtime_ns, found.st_size)


def load_served(name: str, path: Path) -> Served:
    """The model of a file, verified; its version is the beginning of the file's digest."""
    for _ in range(_TRIES):
        before = None
        with suppress(OSError):  # `load` says what is wrong
            before = signature_of(path)
        model = load(path)
        with open(path, "rb") as file:
            file.seek(-DIGEST_BYTES, os.SEEK_END)
            version = file.read().hex()[:_SHORT]
        if signature_of(path) == before:
            return Served(name, model, version, before)
    raise ModelFileError(f"{path}: is being changed while it is read; replace it by renaming a complete file")
