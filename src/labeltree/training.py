"""The driver: data -> features -> tree -> nodes -> model, with progress."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labeltree.build import TREES, build_tree, check_tree
from labeltree.build.profiles import ENTRIES_PER_LABEL, label_profiles
from labeltree.config import Config, make_config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import check_format, detect_format, where_labels_are
from labeltree.data.labels import label_rows
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.memory import text_blocks
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.data.weights import row_weights
from labeltree.errors import DataError, ParameterError
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures
from labeltree.model import Model
from labeltree.nodes.dense import BLOCK_CHILDREN, MAX_BLOCKS, Report, fit_dense
from labeltree.nodes.quantized import quantize
from labeltree.parallel import Pool
from labeltree.streaming import Features


class Progress(NamedTuple):
    """What a callback hears."""

    stage: str  # "read", "tree", "train"
    tree: int  # of the ensemble, from 1
    trees: int
    epoch: int  # from 1; 0 before training
    epochs: int
    fraction: float  # of this stage
    loss: float  # mean per example of this epoch; NaN before training
    examples_per_second: float
    seconds_left: float  # of this stage; NaN if unknown


class TrainingData(NamedTuple):
    """Everything training needs, in the shape it needs it."""

    features: Features
    X: SparseRows
    Y: LabelRows
    labels: StringTable
    bad_lines: BadLines
    format: str = ""  # of the file; empty for objects in memory


class Estimate(NamedTuple):
    """What training would need (`--dry-run`)."""

    n_rows: int
    n_features: int
    n_labels: int
    data_bytes: int
    parameter_bytes: int
    model_bytes: int
    peak_bytes: int


Callback = Callable[[Progress], None]


def train(
    X: Any,
    Y: Any = None,
    *,
    sample_weight: Any = None,
    label_names: Sequence[str] | None = None,
    config: Config | None = None,
    preset: str | None = None,
    format: str = "auto",
    skip_bad_lines: bool = False,
    threads: int = 0,
    callback: Callback | None = None,
    **parameters: Any,
) -> Model:
    """Train a model on a file, or on texts or vectors with their labels.

    ``X`` is the path of a data file with labels (``-``: standard input), or a list of texts or a sparse or
    dense matrix; then ``Y`` is a list of lists of labels or an indicator matrix, and ``label_names`` may give
    the names of the labels in the order of their ids (of the matrix' columns). ``parameters`` are those of
    :class:`labeltree.config.Config`. The callback gets a :class:`Progress` several times per epoch; what it
    raises ends the training.
    """
    config = _merge_config(config, preset, parameters)
    check_tree(config)
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be a function of one argument, but is {callback!r}")
    report = callback or (lambda progress: None)
    with Pool(threads) as pool:
        report(_stage("read", config, 0.0))
        watch_file = _file_watch(config, report)
        data = read_training_data(X, Y, config, format, skip_bad_lines, label_names, watch_file)
        weight = row_weights(sample_weight, data.X.n_rows)
        report(_stage("read", config, 1.0))
        names = data.labels.strings()
        # Kept for the other trees; for a single one they are freed before training.
        is_shared = config.tree == "kmeans" and config.trees > 1
        profiles = label_profiles(data.X, data.Y, pool, ENTRIES_PER_LABEL) if is_shared else None
        trees = []
        for number in range(config.trees):
            seed = tree_seed(config.seed, number)
            report(_stage("tree", config, 0.0, number))
            tree = build_tree(config, data.X, data.Y, names, pool, seed, profiles)
            report(_stage("tree", config, 1.0, number))
            watch = _epoch_watch(config, number, report)
            nodes = fit_dense(data.X, data.Y, tree, config, weight=weight, seed=seed, pool=pool, report=watch)
            trees.append((tree, quantize(nodes)))
    counts = np.bincount(data.Y.indices, minlength=len(data.labels)).astype(np.int64)
    if config.tree not in TREES:
        config = dataclasses.replace(config, tree="file")  # a path means nothing on another machine
    model = Model(config, data.features, data.labels, counts, data.X.n_rows, trees)
    model.skipped_lines, model.skipped_messages = data.bad_lines.skipped, data.bad_lines.messages
    return model


def tree_seed(seed: int, number: int) -> int:
    """The seed of a tree of the ensemble; the first tree's is that of a single one."""
    if number == 0:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def estimate(
    X: Any,
    Y: Any = None,
    *,
    config: Config | None = None,
    preset: str | None = None,
    format: str = "auto",
    skip_bad_lines: bool = False,
    **parameters: Any,
) -> Estimate:
    """Read the data and say what training on it would need, without training.

    Inner nodes, label profiles and the buffers of a batch are guessed from averages: a tree's real shape is
    only known once it is built.
    """
    config = _merge_config(config, preset, parameters)
    check_tree(config)
    data = read_training_data(X, Y, config, format, skip_bad_lines)
    n_labels = len(data.labels)
    n_inner = 1 if config.tree == "flat" else math.ceil(n_labels / max(1, min(config.arity, n_labels) - 1))
    n_vectors = data.X.n_columns + n_labels + n_inner
    data_bytes = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
    parameter_bytes = config.trees * n_vectors * (config.dim + 4)  # a byte per number, and a scale
    names = sum(array.nbytes for array in data.labels.tensors())
    vocabulary = sum(array.nbytes for array in data.features.tensors().values())
    model_bytes = parameter_bytes + names + vocabulary + 20 * (n_labels + n_inner) * config.trees
    profile_bytes = 8 * min(
        int(np.diff(data.X.indptr).mean() * len(data.Y.indices)), n_labels * data.X.n_columns
    )
    in_training = 4 * n_vectors * config.dim  # of one tree, in 32 bits
    peak_bytes = 150_000_000 + data_bytes + parameter_bytes + in_training + _batch_bytes(config, data)
    if config.tree == "kmeans":
        peak_bytes += 2 * profile_bytes
    return Estimate(
        data.X.n_rows, data.X.n_columns, n_labels, data_bytes, parameter_bytes, model_bytes, peak_bytes
    )


def _batch_bytes(config: Config, data: TrainingData) -> int:
    """The buffers of a mini-batch: two vectors per example, and one per block of siblings that it visits.

    An example visits the blocks below the root, and below one node per level and label.
    """
    n_labels = len(data.labels)
    if config.tree == "flat":
        n_children, depth = n_labels, 1
    else:
        n_children = min(max(config.arity, config.max_leaves * (config.tree == "kmeans")), n_labels)
        depth = max(1, math.ceil(math.log(n_labels) / math.log(config.arity)))
    n_blocks = min(math.ceil(n_children / BLOCK_CHILDREN), MAX_BLOCKS)
    labels_per_row = len(data.Y.indices) / data.X.n_rows
    n_visits = 1 + n_blocks * (1 + labels_per_row * (depth - 1))
    return int(min(config.batch_size, data.X.n_rows) * (2 + n_visits) * config.dim * 4)


def read_training_data(
    X: Any,
    Y: Any,
    config: Config,
    format: str = "auto",
    skip_bad_lines: bool = False,
    label_names: Sequence[str] | None = None,
    progress: Callable[[float], None] | None = None,
) -> TrainingData:
    """Features, rows and labels of a file or of objects in memory, checked for being trainable."""
    if isinstance(X, (str, Path)):
        if Y is not None or label_names is not None:
            raise DataError("Y and label_names must be None when X is a file, whose lines have the labels")
        data = _read_file(X, config, check_format(format), BadLines(skip=skip_bad_lines), progress)
        place = f"{X}: "
    else:
        data = _read_memory(X, Y, config, label_names)
        place = ""
    if data.X.n_rows == 0:
        raise DataError(f"{place}no rows to train on")
    if len(data.Y.indices) == 0:
        hint = ""
        if data.format:
            found = where_labels_are(data.format, config.label_prefix)
            hint = (
                f"; it was read as {data.format}, where {found}; set the format (--format) if it is another"
            )
        raise DataError(f"{place}no row has a label{hint}")
    return data


def _read_file(
    path: str | Path,
    config: Config,
    format: str,
    bad_lines: BadLines,
    progress: Callable[[float], None] | None,
) -> TrainingData:
    from labeltree.data.opening import Source
    from labeltree.data.reading import read_blocks
    from labeltree.data.xmlc import read_xmlc

    with Source(path, progress=progress) as source:
        found = detect_format(source.first_bytes, source.path) if format == "auto" else format
        if found == "xmlc":
            rows, Y = read_xmlc(source, bad_lines=bad_lines)
            vectors, rows = VectorFeatures.fit(rows, config)
            labels = StringTable.from_strings([str(label) for label in range(Y.n_labels)])
            return TrainingData(vectors, rows, Y, labels, bad_lines, found)
        blocks = read_blocks(source, found, bad_lines=bad_lines)
        features, labels, rows, Y = TextFeatures.fit(blocks, config, bad_lines)
    return TrainingData(features, rows, Y, labels, bad_lines, found)


def _read_memory(X: Any, Y: Any, config: Config, label_names: Sequence[str] | None) -> TrainingData:
    if Y is None:
        raise DataError("Y is missing: give the labels of each row, or the path of a file as X")
    features: Features
    is_matrix = type(X) is SparseRows or is_sparse(X) or getattr(X, "ndim", 1) != 1
    if is_matrix or _holds_numbers(X):
        features, rows = VectorFeatures.fit(sparse_rows(X), config)
    else:
        features, _, rows, _ = TextFeatures.fit(text_blocks(X), config)
    labels, names = label_rows(Y, label_names, n_rows=rows.n_rows)
    if len(labels.indices) and labels.indices.min() < 0:
        row = int(np.searchsorted(labels.indptr, np.argmin(labels.indices), side="right")) - 1
        raise DataError(f"Y, row {row}: a label is not among the {len(names)} label_names")
    return TrainingData(features, rows, labels, StringTable.from_strings(names), BadLines())


def _holds_numbers(X: Any) -> bool:
    """A list of lists of numbers is a dense matrix, not texts; an array of numbers may have too few axes."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "biufc"
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (list, tuple, np.ndarray))


def _merge_config(config: Config | None, preset: str | None, parameters: dict[str, Any]) -> Config:
    if config is None:
        return make_config(parameters, preset=preset)
    if not isinstance(config, Config):
        raise ParameterError(
            f"config must be a Config (of make_config), but is {config!r:.60}; "
            "give single parameters by name, like dim=100"
        )
    if preset is not None:
        raise ParameterError("give either config or preset, not both")
    return make_config({**config.to_dict(), **parameters})


def _stage(stage: str, config: Config, fraction: float, number: int = 0) -> Progress:
    nan = float("nan")
    return Progress(stage, number + 1, config.trees, 0, config.epochs, fraction, nan, nan, nan)


def _file_watch(config: Config, report: Callback) -> Callable[[float], None]:
    return lambda fraction: report(_stage("read", config, fraction))


def _epoch_watch(config: Config, number: int, report: Callback) -> Callable[[Report], None]:
    began = time.perf_counter()

    def watch(done: Report) -> None:
        fraction = done.epoch / config.epochs
        seconds_left = (time.perf_counter() - began) * (1 - fraction) / fraction
        epoch = min(math.ceil(done.epoch), config.epochs)
        speed = done.examples_per_second
        report(
            Progress(
                "train",
                number + 1,
                config.trees,
                epoch,
                config.epochs,
                fraction,
                done.loss,
                speed,
                seconds_left,
            )
        )

    return watch
