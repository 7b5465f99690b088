"""One data set in every form that a tool may read, with label ids and features that all tools share.

The ids are labeltree's own, and so are the vectors: TF-IDF of words cut at spaces, or the vectors of the data
set, of unit length, whatever the defaults of `labeltree train` are, so that peers are given what they are
usually given; or, if asked for, labeltree's default features. The forms are ``source`` (the file itself),
``text`` (fastText lines with ids for labels; the test rows without labels), ``npz`` (CSR arrays), ``xmlc``
(the repository's text format) and ``vw`` (Vowpal Wabbit lines). Each is written once, into a folder whose
name holds a digest of the data, so that changed features are never mixed with old files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labeltree.config import Config
from labeltree.data.formats import find_format
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.model import Model
from labeltree.training.data import read_training_data

LABEL = Config().label_prefix
FEATURES = {
    "words": {
        "text": Config(
            tokens="spaces",
            lowercase=True,
            min_count=1,
            word_ngrams=1,
            weighted_words=False,
            char_weight=0.0,
            pair_weight=0.0,
            tf="log",
            idf=True,
            row_norm="l2",
        ),
        "vectors": Config(idf=False, row_norm="l2"),
    },
    "full": {"text": Config(), "vectors": Config()},
}  # what vectors are made of -> input of the data set -> the parameters of it


class Part(NamedTuple):
    """The training or the test rows."""

    source: Path
    X: SparseRows
    Y: LabelRows


class Prepared(NamedTuple):
    name: str
    folder: Path
    digest: str
    train: Part
    test: Part
    label_ids: dict[str, int]
    is_text: bool

    @property
    def n_train(self) -> int:
        return self.train.X.n_rows

    @property
    def n_features(self) -> int:
        return self.train.X.n_columns

    @property
    def n_labels(self) -> int:
        return self.train.Y.n_labels

    @property
    def test_labels(self) -> LabelRows:
        return self.test.Y

    @property
    def label_counts(self) -> Any:
        return np.bincount(self.train.Y.indices, minlength=self.train.Y.n_labels)

    def files(self, part: str, forms: tuple[str, ...]) -> dict[str, str]:
        """Form -> path, for the forms that this data set has; those missing on disk are written."""
        found: dict[str, str] = {}
        rows: Part = getattr(self, part)
        for form in forms:
            if form == "text" and not self.is_text:
                continue
            if form == "source":
                found[form] = str(rows.source)
                continue
            path = self.folder / f"{part}.{form}"
            if not path.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(f"{path.name}.{os.getpid()}")
                WRITERS[form](self, part, partial)
                partial.replace(path)
            found[form] = str(path)
        return found


def prepare(name: str, train: Path, test: Path, cache: Path, features: str = "words") -> Prepared:
    """Read both parts as these features (of ``FEATURES``)."""
    with Source(train) as source:
        config = FEATURES[features][find_format("auto", source).input]
    data = read_training_data(str(train), None, config)
    names = data.labels.strings()
    # A model without trees reads a file in the features of its training data; nothing is predicted with it.
    reader = Model(config, data.features, data.labels, np.zeros(len(names), np.int64), data.X.n_rows, [])
    X, Y, _ = reader.read(test)
    is_text = reader.inspect()["input"] == "text"
    X = data.features.prepared(X)  # texts come out normalised, vectors as they stand in the file
    digest = hashlib.sha256()
    for array in (*data.X[:3], *data.Y[:2], *X[:3], *Y[:2]):
        digest.update(np.ascontiguousarray(array).data)
    key = digest.hexdigest()[:16]
    return Prepared(
        name=name,
        folder=cache / "data" / f"{name}-{key}",
        digest=key,
        train=Part(train, data.X, data.Y),
        test=Part(test, X, Y),
        label_ids={label: i for i, label in enumerate(names)},
        is_text=is_text,
    )


def _write_text(prepared: Prepared, part: str, path: Path) -> None:
    """Labels become ids because extremeText cuts every token, labels too, at a colon."""
    source: Path = getattr(prepared, part).source
    with source.open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
        for line in lines:
            labels, words = [], []
            for token in line.split():
                if token.startswith(LABEL):
                    labels.append(f"{LABEL}{prepared.label_ids.get(token.removeprefix(LABEL), -1)}")
                else:
                    words.append(token)
            out.write(" ".join((labels if part == "train" else []) + words) + "\n")


def _write_npz(prepared: Prepared, part: str, path: Path) -> None:
    X, Y = getattr(prepared, part)[1:]
    arrays = dict(zip(("indptr", "indices", "values"), X[:3], strict=True))
    with path.open("wb") as out:
        np.savez(out, **arrays, label_indptr=Y.indptr, label_indices=Y.indices)


def _rows(rows: Part) -> Iterator[tuple[list[int], Iterator[tuple[int, float]]]]:
    """Known labels, and pairs of feature and value, of each row."""
    for i in range(rows.X.n_rows):
        start, stop = rows.X.indptr[i : i + 2]
        labels = rows.Y.indices[rows.Y.indptr[i] : rows.Y.indptr[i + 1]].tolist()
        features, values = rows.X.indices[start:stop].tolist(), rows.X.values[start:stop].tolist()
        yield [label for label in labels if label >= 0], zip(features, values, strict=True)


def _write_xmlc(prepared: Prepared, part: str, path: Path) -> None:
    rows: Part = getattr(prepared, part)
    with path.open("w", encoding="ascii") as out:
        out.write(f"{rows.X.n_rows} {rows.X.n_columns} {rows.Y.n_labels}\n")
        for labels, features in _rows(rows):
            out.write(",".join(map(str, labels)) + " " + " ".join(f"{f}:{v:.7g}" for f, v in features) + "\n")


def _write_vw(prepared: Prepared, part: str, path: Path) -> None:
    rows: Part = getattr(prepared, part)
    with path.open("w", encoding="ascii") as out:
        for labels, features in _rows(rows):
            out.write(",".join(map(str, labels)) + " | " + " ".join(f"{f}:{v:.7g}" for f, v in features))
            out.write("\n")


WRITERS: dict[str, Callable[[Prepared, str, Path], None]] = {
    "text": _write_text,
    "npz": _write_npz,
    "xmlc": _write_xmlc,
    "vw": _write_vw,
}
