"""Model: what training makes. It predicts, saves itself, and can be loaded by any number of processes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import check_format, detect_format
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import CorruptedModelError, DataError, ParameterError
from labeltree.features.strings import StringTable
from labeltree.features.tensors import take_tensor
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures
from labeltree.nodes.dense import DenseParameters
from labeltree.parallel import Pool, row_slices
from labeltree.persist import read_model, write_model
from labeltree.predicting import TreeSearch, above_average, best_of_trees
from labeltree.tree import LabelTree

Features = TextFeatures | VectorFeatures

ROWS_PER_THREAD = 128  # below this a second thread costs more than it saves


class Model:
    """A trained label tree, or an ensemble of them. Its methods may be called from many threads at once."""

    def __init__(
        self,
        config: Config,
        features: Features,
        labels: StringTable,
        label_counts: NDArray[np.int64],
        n_examples: int,
        trees: Sequence[tuple[LabelTree, DenseParameters]],
    ) -> None:
        self.config = config
        self.features = features
        self.labels = labels
        self.label_counts = label_counts  # (n_labels,) training rows of each label
        self.n_examples = n_examples
        self.trees = [TreeSearch(tree, parameters) for tree, parameters in trees]
        self.skipped_lines = 0  # bad lines left out when this model was trained
        self._names: list[str] | None = None

    @property
    def label_names(self) -> list[str]:
        if self._names is None:
            self._names = self.labels.strings()
        return self._names

    @property
    def label_trees(self) -> list[LabelTree]:
        return [search.tree for search in self.trees]

    @property
    def n_labels(self) -> int:
        return len(self.labels)

    @property
    def n_features(self) -> int:
        return self.features.n_columns

    def predict(
        self, X: Any, k: int | None = 5, *, threshold: float = 0.0, normalize: bool = False, threads: int = 0
    ) -> list[list[tuple[str, float]]]:
        """For each text or row its most probable labels with their probabilities, best first.

        At most ``k`` labels of at least ``threshold``; with ``k=None`` (and a threshold above 0) all of them.
        """
        names = self.label_names
        if k is None:
            if not threshold > 0.0:
                raise ParameterError(f"with k=None threshold must be above 0, but is {threshold!r}")
            rows = self.predict_rows(X, threshold, normalize=normalize, threads=threads)
            return [
                sorted(
                    ((names[id], float(p)) for id, p in zip(*_row(rows, i), strict=True)),
                    key=lambda pair: -pair[1],
                )
                for i in range(rows.n_rows)
            ]
        ids, probabilities = self.predict_arrays(
            X, k, threshold=threshold, normalize=normalize, threads=threads
        )
        return [
            [(names[id], p) for id, p in zip(row_ids, row_probabilities, strict=True) if id >= 0]
            for row_ids, row_probabilities in zip(ids.tolist(), probabilities.tolist(), strict=True)
        ]

    def predict_arrays(
        self, X: Any, k: int = 5, *, threshold: float = 0.0, normalize: bool = False, threads: int = 0
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Label ids and probabilities, both (n_rows, k), best first; -1 and 0 where fewer labels exist."""
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise ParameterError(f"k must be at least 1, but is {k!r}")
        log_threshold = _log_threshold(threshold)
        rows = self._rows(X)
        k = int(k)  # kernels are compiled once per kind of integer
        n_found = min(k, self.n_labels)
        ids = np.full((rows.n_rows, k), -1, np.int32)
        probabilities = np.zeros((rows.n_rows, k), np.float32)

        def search(part: slice) -> None:
            arrays = (rows.indptr[part.start : part.stop + 1], rows.indices, rows.values)
            if len(self.trees) == 1:
                self.trees[0].topk(arrays, k, log_threshold, normalize, ids[part], probabilities[part])
                return
            best = best_of_trees(self.trees, arrays, n_found, float(threshold), normalize)
            ids[part, :n_found], probabilities[part, :n_found] = best

        self._by_rows(search, rows.n_rows, threads)
        return ids, probabilities

    def predict_rows(
        self, X: Any, threshold: float, *, normalize: bool = False, threads: int = 0
    ) -> SparseRows:
        """All labels of at least ``threshold``: rows of probabilities over label ids."""
        log_threshold = _log_threshold(threshold)
        rows = self._rows(X)
        parts: dict[int, tuple[NDArray, NDArray, NDArray]] = {}

        def search(part: slice) -> None:
            arrays = (rows.indptr[part.start : part.stop + 1], rows.indices, rows.values)
            if len(self.trees) == 1:
                parts[part.start] = self.trees[0].above(arrays, log_threshold, normalize)
            else:
                parts[part.start] = above_average(
                    self.trees, arrays, float(threshold), log_threshold, normalize
                )

        self._by_rows(search, rows.n_rows, threads)
        found = [parts[start] for start in sorted(parts)]
        lengths = np.concatenate([np.zeros(1, np.int64), *(part[0] for part in found)])
        ids = np.concatenate([np.empty(0, np.int32), *(part[1] for part in found)])
        values = np.concatenate([np.empty(0, np.float32), *(part[2] for part in found)])
        return SparseRows(np.cumsum(lengths), ids, values, self.n_labels)

    def probability(
        self, X: Any, labels: Sequence[str], *, normalize: bool = False, threads: int = 0
    ) -> NDArray[np.float32]:
        """The marginal probabilities (n_rows, len(labels)) of the given labels."""
        if isinstance(labels, (str, bytes)):
            raise DataError(f"labels must be a list of labels, but is {labels!r}; wrap it in a list")
        wanted = [str(label) for label in labels]
        ids = self.labels.ids(wanted)
        if len(ids) and ids.min() < 0:
            unknown = wanted[int(np.argmin(ids))]
            raise DataError(f"label {unknown!r} is not among the model's {self.n_labels} labels")
        rows = self._rows(X)
        indptr = np.arange(rows.n_rows + 1, dtype=np.int64) * len(ids)
        given = LabelRows(indptr, np.tile(ids, rows.n_rows), self.n_labels)
        found = self._score(rows, given, normalize, threads)
        return found.reshape(rows.n_rows, len(ids))

    def probability_rows(
        self, X: Any, labels: LabelRows, *, normalize: bool = False, threads: int = 0
    ) -> NDArray[np.float32]:
        """The marginal probability of each label of each row, in the order of ``labels.indices``."""
        rows = self._rows(X)
        if labels.n_rows != rows.n_rows:
            raise DataError(f"X has {rows.n_rows} rows, but labels has {labels.n_rows}")
        if len(labels.indices) and labels.indices.max() >= self.n_labels:
            raise DataError(f"label id {labels.indices.max()} is not below {self.n_labels}")
        return self._score(rows, labels, normalize, threads)

    def read(
        self, path: str | Path, *, format: str = "auto", skip_bad_lines: bool = False
    ) -> tuple[SparseRows, LabelRows, int]:
        """A data file as rows for this model: features, labels (-1: unknown), number of skipped lines."""
        from labeltree.data.opening import Source
        from labeltree.data.reading import read_blocks
        from labeltree.data.xmlc import read_xmlc

        check_format(format)
        bad_lines = BadLines(skip=skip_bad_lines)
        with Source(path) as source:
            if isinstance(self.features, VectorFeatures):
                if format not in ("auto", "xmlc"):
                    raise DataError(f"{source.name}: this model takes vectors (format xmlc), not {format}")
                rows, labels = read_xmlc(
                    source, bad_lines=bad_lines, n_columns=self.n_features, n_labels=self.n_labels,
                    header="optional",
                )  # fmt: skip
                return rows, labels, bad_lines.skipped
            found = detect_format(source.first_bytes, source.path) if format == "auto" else format
            if found == "xmlc":
                raise DataError(f"{source.name}: an XMLC file, but this model was trained on text")
            blocks = read_blocks(source, found, bad_lines=bad_lines)
            rows, labels = self.features.transform(blocks, self.labels, bad_lines)
        return rows, labels, bad_lines.skipped

    def inspect(self) -> dict[str, Any]:
        """What `labeltree inspect` shows."""
        return {
            "config": self.config.to_dict(),
            "input": "vectors" if isinstance(self.features, VectorFeatures) else "text",
            "n_examples": self.n_examples,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "n_labels_without_examples": int(np.count_nonzero(self.label_counts == 0)),
            "parameter_bytes": sum(search.parameter_bytes for search in self.trees),
            "trees": [search.tree.statistics() for search in self.trees],
        }

    def save(self, path: str | Path) -> None:
        """Write one file, completely or not at all."""
        data, offsets = self.labels.tensors()
        tensors: dict[str, NDArray] = dict(self.features.tensors())
        tensors |= {"labels.names": data, "labels.offsets": offsets, "labels.counts": self.label_counts}
        for number, search in enumerate(self.trees):
            tensors |= search.tree.tensors(f"tree.{number}")
            for name, array in search.parameters._asdict().items():
                tensors[f"nodes.{number}.{name}"] = array
        metadata = {
            "config": self.config.to_dict(),
            "features": "vectors" if isinstance(self.features, VectorFeatures) else "text",
            "n_examples": self.n_examples,
            "n_trees": len(self.trees),
        }
        write_model(path, tensors, metadata)

    def _rows(self, X: Any) -> SparseRows:
        """X in the model's features: texts are transformed, vectors normalised, prepared rows checked."""
        if isinstance(self.features, VectorFeatures):
            return self.features.transform(sparse_rows(X, self.n_features))
        if type(X) is SparseRows or is_sparse(X):
            return sparse_rows(X, self.n_features)
        if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
            raise DataError(f"X must be a list of texts, but is {X!r:.60}; wrap a single text in a list")
        return self.features.transform_texts(X if type(X) is list else list(X))

    def _score(
        self, rows: SparseRows, labels: LabelRows, normalize: bool, threads: int
    ) -> NDArray[np.float32]:
        out = np.zeros(len(labels.indices), np.float32)

        def score(part: slice) -> None:
            arrays = (rows.indptr[part.start : part.stop + 1], rows.indices, rows.values)
            label_indptr = labels.indptr[part.start : part.stop + 1]
            begin, end = label_indptr[0], label_indptr[-1]
            given = (label_indptr - begin, labels.indices[begin:end])
            total = np.zeros(end - begin)
            for search in self.trees:
                total += search.score(arrays, given, normalize)
            out[begin:end] = total / len(self.trees)

        self._by_rows(score, rows.n_rows, threads)
        return out

    def _by_rows(self, function: Any, n_rows: int, threads: int) -> None:
        if threads == 1 or n_rows < 2 * ROWS_PER_THREAD:
            if n_rows:
                function(slice(0, n_rows))
            return
        with Pool(threads) as pool:
            # several parts per thread: rows differ in cost
            pool.map(function, row_slices(n_rows, min(4 * pool.threads, n_rows // ROWS_PER_THREAD)))


def load(path: str | Path, *, verify: bool = True) -> Model:
    """Map a saved model into memory. ``verify=False`` skips the digest, for an instant start."""
    tensors, metadata = read_model(path, verify=verify)
    try:
        return _assemble(tensors, metadata, verify)
    except CorruptedModelError as error:
        raise CorruptedModelError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ParameterError) as error:
        raise CorruptedModelError(
            f"{path}: its contents do not make a model ({type(error).__name__}: {error}); train it again"
        ) from error


def _assemble(tensors: dict[str, NDArray], metadata: dict[str, Any], verify: bool) -> Model:
    config = Config(**metadata["config"]).validate()
    kind = metadata["features"]
    if kind not in ("text", "vectors"):
        raise CorruptedModelError(f"unknown kind of features {kind!r}")
    features: Features = (
        TextFeatures.from_tensors(tensors, config)
        if kind == "text"
        else VectorFeatures.from_tensors(tensors, config)
    )
    labels = StringTable.from_tensors(
        take_tensor(tensors, "labels.names", np.uint8),
        take_tensor(tensors, "labels.offsets", np.int64),
        "labels.names",
    )
    counts = take_tensor(tensors, "labels.counts", np.int64)
    n_examples, n_trees = metadata["n_examples"], metadata["n_trees"]
    if type(n_trees) is not int or n_trees != config.trees:
        raise CorruptedModelError(f"n_trees is {n_trees!r}, but the config has {config.trees} trees")
    if len(counts) != len(labels) or len(labels) == 0 or counts.min() < 0:
        raise CorruptedModelError(f"labels.counts does not give {len(labels)} counts")
    if type(n_examples) is not int or n_examples < counts.max():
        raise CorruptedModelError(f"n_examples is {n_examples!r}, but a label has {counts.max()} examples")
    trees = []
    for number in range(n_trees):
        tree = LabelTree.from_tensors(tensors, f"tree.{number}")
        if tree.n_labels != len(labels):
            raise CorruptedModelError(f"tree.{number} has {tree.n_labels} labels instead of {len(labels)}")
        shape = (features.n_columns, tree.n_nodes, config.dim)
        trees.append((tree, _take_parameters(tensors, f"nodes.{number}", shape, verify)))
    return Model(config, features, labels, counts, n_examples, trees)


def _take_parameters(
    tensors: dict[str, NDArray], prefix: str, shape: tuple[int, int, int], verify: bool
) -> DenseParameters:
    n_features, n_nodes, dim = shape
    shapes = {"embedding": (n_features, dim), "weights": (n_nodes, dim), "bias": (n_nodes,)}
    arrays = {}
    for name, expected in shapes.items():
        array = tensors[f"{prefix}.{name}"]
        if array.dtype != np.float32 or array.shape != expected:
            raise CorruptedModelError(
                f"{prefix}.{name} is {array.dtype} {array.shape}, but must be float32 {expected}"
            )
        wrong = np.isnan(array) if name == "bias" else ~np.isfinite(array) if verify else np.False_
        if np.any(wrong):
            raise CorruptedModelError(f"{prefix}.{name} has values that are not finite")
        arrays[name] = array
    return DenseParameters(**arrays)


def _row(rows: SparseRows, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return rows.indices[part], rows.values[part]


def _log_threshold(threshold: float) -> np.float32:
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.floating)):
        raise ParameterError(f"threshold must be a number from 0 to 1, but is {threshold!r}")
    if not 0.0 <= threshold <= 1.0:
        raise ParameterError(f"threshold must be from 0 to 1, but is {threshold!r}")
    return np.float32(math.log(threshold)) if threshold > 0 else np.float32(-np.inf)
