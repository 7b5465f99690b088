"""The target for model files, with digests that fit: what a forger could write."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random_array

import labeltree
from fuzz.target import Target, file_of
from labeltree.config import parameters
from labeltree.errors import LabelTreeError, ModelFileError
from labeltree.model import Model
from labeltree.storage.container import FORMAT_VERSION, read_model, write_model
from labeltree.storage.container.layout import DIGEST_BYTES

_TEXTS = ["one two", "three four", "one four two", "four five:0.5", "", "one:2 unknown " * 9]
_WEIGHTED = [
    "one:1 two:0.5",
    "three:2 four:1",
    "one:1 four:3 two:1",
    "four:1 five:0.5",
    "",
    "one:2 no:1 " * 9,
]
_LABELS = [["a"], ["b", "c"], ["a", "d"], ["e"], [], ["f", "a"]]
_DENSE: dict[str, Any] = dict(nodes="dense", dim=2, epochs=1)
_KINDS: list[dict[str, Any]] = [
    dict(prune=0.0),
    _DENSE,
    dict(_DENSE, nodes="both", trees=2),
    dict(link="hsm", word_ngrams=2, ngram_buckets=5),
    dict(_DENSE, link="hsm", row_norm="mean"),
]
_NUMBERS = (0, 1, -1, 2, 3, 5, 64, 127, 128, 255, 2**15, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e-30, 1e30, 3e38, -3e38, np.inf, -np.inf, np.nan)
_STRINGS = ("", "\ud800", "file", "learned", "a b")
_OF_EXPERTS = (None, "tree", "dense", "sparse", "plt", "hsm", 0, 1, 2, True, 10**400, {}, {"arity": 2}, [])
_GOLDEN = Path(__file__).parents[1] / "tests" / "storage" / "golden"


def with_digest(content: bytes) -> bytes:
    """The content with the digest that a reader expects at its end."""
    body = content[:-DIGEST_BYTES]
    return body + hashlib.sha256(body).digest()


def check_model(content: bytes) -> bool:
    with file_of(with_digest(content)) as path:
        try:
            model = labeltree.load(path)
        except ModelFileError:
            return False
        assert len(model.label_names) == model.n_labels
        model.inspect()
        for X, some_rows in _inputs(model):
            _check_answers(model, X, some_rows)
    return True


def _inputs(model: Model) -> list[tuple[Any, list[Any]]]:
    """Batches, each with rows of it alone: texts where the model takes them, and rows of its features."""
    found: list[tuple[Any, list[Any]]] = []
    if model.inspect()["input"] == "text":
        texts = _WEIGHTED if model.config.weighted_words else _TEXTS
        found.append((texts, [[text] for text in texts]))
    if 0 < model.n_features < 100_000:
        X = csr_matrix(random_array((4, model.n_features), density=0.5, rng=1, dtype=np.float32))
        found.append((X, [X[i] for i in range(4)]))
    return found


def _check_answers(model: Model, X: Any, some_rows: list[Any]) -> None:
    n_rows, k = len(some_rows), 3
    for how in ({}, {"normalize": True}, {"search": "beam", "beam": 2}):
        ids, probabilities = model.predict_arrays(X, k, threads=1, **how)
        assert ids.shape == probabilities.shape == (n_rows, k)
        assert np.all((ids >= -1) & (ids < model.n_labels))
        _check_probabilities(probabilities)
        alone = [model.predict_arrays(row, k, threads=1, **how) for row in some_rows]
        assert np.array_equal(np.concatenate([row_ids for row_ids, _ in alone]), ids)
        assert np.allclose(
            np.concatenate([row_probabilities for _, row_probabilities in alone]), probabilities, atol=1e-5
        )
    assert len(model.predict(X, None, threshold=0.2, threads=1)) == n_rows
    rows = model.predict_rows(X, 0.1, threads=1)
    assert rows.n_rows == n_rows
    _check_probabilities(rows.values)
    names = model.label_names[:8]
    probabilities = model.probability(X, names, threads=1)
    assert probabilities.shape == (n_rows, len(names))
    _check_probabilities(probabilities)


def _check_probabilities(probabilities: NDArray[np.float32]) -> None:
    assert np.all(np.isfinite(probabilities)), "not finite"
    assert np.all((probabilities >= 0) & (probabilities <= 1.001)), "no probability"


def seeds() -> list[bytes]:
    vectors = csr_matrix(np.array([[1, 0, 2], [0, 1, 0], [0.5, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 1]]))
    models = [labeltree.train(_TEXTS, _LABELS, arity=2, max_leaves=2, threads=1, **kind) for kind in _KINDS]
    models.append(labeltree.train(_WEIGHTED, _LABELS, weighted_words=True, tree="flat", threads=1))
    models.append(labeltree.train(vectors, _LABELS, threads=1))
    found = []
    for model in models:
        with file_of(b"") as path:
            model.save(path)
            found.append(path.read_bytes())
    return found + [path.read_bytes() for path in sorted(_GOLDEN.glob("*-1.labeltree"))]


def mutate(content: bytes, longest: int, seed: int) -> bytes:
    """Change some numbers of a tensor, its length, or a parameter; or else, as fuzzers do, some bytes."""
    import atheris

    random = Random(seed)
    if random.random() < 0.7:
        try:
            with file_of(with_digest(content)) as path:
                tensors, metadata = read_model(path)
                version = metadata.pop("format")
                for _ in range(random.randrange(1, 4)):
                    _change_one(tensors, metadata, random)
                write_model(path, tensors, metadata)
                changed = with_digest(_of_version(version, path.read_bytes()))
            if len(changed) <= longest:
                return changed
        except LabelTreeError:
            pass
    return with_digest(atheris.Mutate(content, longest))


def _of_version(version: int, content: bytes) -> bytes:
    """What is written as of the present version, as of another one."""
    return content.replace(b'\\"format\\":%d' % FORMAT_VERSION, b'\\"format\\":%d' % version)


def _change_one(tensors: dict[str, NDArray[Any]], metadata: dict[str, Any], random: Random) -> None:
    kind = random.randrange(10)
    if kind == 0:
        parameter = random.choice(list(parameters()))
        values = (*parameter.choices, *_STRINGS, *_NUMBERS, *_FLOATS[:9], True, False, 10**400, None)
        if isinstance(metadata.get("config"), dict):
            metadata["config"][parameter.name] = random.choice(values)
        return
    if kind == 1 and metadata:
        metadata[random.choice(sorted(metadata))] = random.choice(
            (None, "text", "vectors", 1, 2, {}, [], 10**400)
        )
        return
    if kind == 2 and isinstance(metadata.get("experts"), list):
        entry = random.choice(metadata["experts"] or [{}])
        if isinstance(entry, dict) and entry:
            entry[random.choice(sorted(entry))] = random.choice(_OF_EXPERTS)
        return
    if not tensors:
        return
    name = random.choice(sorted(tensors))
    array = tensors[name]
    if kind <= 3:
        tensors[name] = np.resize(array, max(0, array.size + random.choice((-2, -1, 1, 2))))
    elif kind == 4:
        tensors[name] = tensors[random.choice(sorted(tensors))]
    elif kind == 5 and random.random() < 0.2:
        del tensors[name]
    elif array.size:
        changed = array.copy().reshape(-1)
        for _ in range(random.randrange(1, 3)):
            changed[random.randrange(array.size)] = _number(array.dtype, random)
        tensors[name] = changed.reshape(array.shape)


def _number(dtype: np.dtype[Any], random: Random) -> Any:
    if dtype.kind == "f":
        return dtype.type(random.choice((*_FLOATS, random.gauss(0, 1), random.gauss(0, 100))))
    bits = 8 * dtype.itemsize
    value = random.choice((*_NUMBERS, random.randrange(-4, 20))) % (1 << bits)
    return np.array([value], f"u{dtype.itemsize}").view(dtype)[0] if dtype.kind in "iu" else bool(value)


MODEL = Target(check_model, seeds, mutate=mutate, longest=1 << 15)
