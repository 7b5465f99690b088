"""The driver: data -> features -> tree -> nodes -> model, with progress."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config, make_config, node_kinds
from labeltree.data.memory import row_weights
from labeltree.errors import ParameterError, show
from labeltree.experts.tree_search import Parameters, TreeExpert
from labeltree.model import Model
from labeltree.nodes.defaults import chosen_by_data, resolve
from labeltree.nodes.dense.fitting import Report, fit_dense
from labeltree.nodes.dense.quantized import quantize
from labeltree.nodes.sparse.fitting import fit_sparse
from labeltree.parallel import Pool
from labeltree.storage.card import check_card
from labeltree.training.calibration import calibrate
from labeltree.training.data import TrainingData, read_training_data, with_labels
from labeltree.training.needs import Estimate, estimate_needs
from labeltree.training.progress import Callback, Progress, listeners
from labeltree.tree import LabelTree
from labeltree.trees import TREES, build_tree, check_tree
from labeltree.trees.learned import fit_learned
from labeltree.trees.profiles import ENTRIES_PER_LABEL, label_profiles


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
    progress: bool = False,
    card: Mapping[str, str] | None = None,
    **parameters: Any,
) -> Model:
    """Train a model on a file, or on texts or vectors with their labels.

    ``X`` is the path of a data file with labels (``-``: standard input), or a list of texts or a sparse or
    dense matrix; then ``Y`` is a list of lists of labels or an indicator matrix, and ``label_names`` may give
    the names of the labels in the order of their ids (of the matrix' columns). ``parameters`` are those of
    :class:`labeltree.config.Config`. The callback gets a :class:`Progress` again and again, one call at a
    time, but maybe from another thread; what it raises ends the training. ``progress=True`` shows the bar of
    the command line on a terminal or in a notebook, and lines elsewhere. Stages are logged as "labeltree".
    ``card`` are facts to keep with the model, such as ``{"licence": "CC0-1.0"}``.
    """
    config = _merge_config(config, preset, parameters)
    check_tree(config)
    card = check_card({} if card is None else card)
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be a function of one argument, but is {show(callback)}")
    if type(progress) is not bool:
        raise ParameterError(
            f"progress must be True or False, but is {show(progress)}; a function is a callback"
        )
    with Pool(threads) as pool, listeners(callback, bar=progress) as report:
        report(_stage("read", config, 0.0))
        watch_file = _file_watch(config, report)
        data = read_training_data(
            X, Y, config, format, skip_bad_lines, label_names, watch_file, given=parameters
        )
        weight = row_weights(sample_weight, data.X.n_rows)
        if config.link == "hsm":
            data, weight = with_labels(data, weight)
        report(_stage("read", config, 1.0)._replace(estimate=estimate_needs(config, data)))
        resolved = {
            kind: resolve(config, kind, data.Y.n_labels, data.Y.examples_per_label)
            for kind in node_kinds(config)
        }
        trees = _train_trees(data, config, resolved, weight, pool, report)
    counts = np.bincount(data.Y.indices, minlength=len(data.labels)).astype(np.int64)
    if config.tree not in TREES:
        config = dataclasses.replace(config, tree="file")  # a path means nothing on another machine
    experts = []
    for trained, own in zip(trees, config.trees * list(resolved.values()), strict=True):
        expert = TreeExpert(*trained, data.X.n_columns, config.link)
        expert.chosen = chosen_by_data(config, own)
        experts.append(expert)
    model = Model(config, data.features, data.labels, counts, data.X.n_rows, experts, card)
    model.skipped_lines, model.skipped_messages = data.bad_lines.skipped, data.bad_lines.messages
    model.unused_rows = data.unused_rows
    return model


def _train_trees(
    data: TrainingData, config: Config, resolved: Mapping[str, Config], weight: NDArray[np.float32],
    pool: Pool, report: Callback,
) -> list[tuple[LabelTree, Parameters]]:  # fmt: skip
    """``resolved`` are the configs of each kind of nodes."""
    names = data.labels.strings()
    # Kept for the other trees; for a single one they are freed before training.
    is_shared = config.tree == "kmeans" and config.trees * len(node_kinds(config)) > 1
    profiles = None
    if is_shared:
        profiles = label_profiles(data.X, data.Y, pool, ENTRIES_PER_LABEL, config.profiles)
    trees = []
    for number in range(config.trees):
        built: dict[int, LabelTree] = {}  # by arity: both kinds of nodes may have the same
        for kind, own in resolved.items():
            seed = tree_seed(config.seed, number)
            report(_stage("tree", config, 0.0, number))
            if own.arity not in built:
                built[own.arity] = build_tree(own, data.X, data.Y, names, pool, seed, profiles)
            tree = built[own.arity]
            report(_stage("tree", config, 1.0, number))
            fit = _fit_dense if kind == "dense" else _fit_sparse
            trees.append(fit(data, tree, own, weight, number, pool, report))
    return trees


def _fit_dense(
    data: TrainingData, tree: LabelTree, config: Config, weight: NDArray[np.float32], number: int,
    pool: Pool, report: Callback,
) -> tuple[LabelTree, Parameters]:  # fmt: skip
    seed, watch = tree_seed(config.seed, number), _epoch_watch(config, number, report)
    how: dict[str, Any] = dict(weight=weight, seed=seed, pool=pool, report=watch)
    if config.tree == "learned":
        fitted, tree = fit_learned(data.X, data.Y, tree, config, **how)
    else:
        fitted = fit_dense(data.X, data.Y, tree, config, **how)
    return tree, quantize(fitted)


def _fit_sparse(
    data: TrainingData, tree: LabelTree, config: Config, weight: NDArray[np.float32], number: int,
    pool: Pool, report: Callback,
) -> tuple[LabelTree, Parameters]:  # fmt: skip
    seed, watch = tree_seed(config.seed, number), _task_watch(config, number, data.X.n_rows, report)
    fit = fit_sparse(data.X, data.Y, tree, config, weight=weight, seed=seed, pool=pool, report=watch)
    return tree, calibrate(fit, tree, data.X, data.Y, weight, pool, config.link)


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
    threads: int = 0,
    **parameters: Any,
) -> Estimate:
    """Read the data and say what training on it would need, after training a small part of it."""
    config = _merge_config(config, preset, parameters)
    check_tree(config)
    with Pool(threads) as pool:
        data = read_training_data(X, Y, config, format, skip_bad_lines, given=parameters)
        if config.link == "hsm":
            data, _ = with_labels(data, np.ones(data.X.n_rows, np.float32))
        return estimate_needs(config, data, pool)


def _merge_config(config: Config | None, preset: str | None, parameters: dict[str, Any]) -> Config:
    if config is None:
        return make_config(parameters, preset=preset)
    if not isinstance(config, Config):
        raise ParameterError(
            f"config must be a Config (of make_config), but is {show(config)}; "
            "give single parameters by name, like trees=3"
        )
    if preset is not None:
        raise ParameterError("give either config or preset, not both")
    return make_config(parameters, config=config)


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


def _task_watch(config: Config, number: int, n_rows: int, report: Callback) -> Callable[[float], None]:
    began, nan = time.perf_counter(), float("nan")

    def watch(fraction: float) -> None:
        seconds = max(time.perf_counter() - began, 1e-9)
        speed, seconds_left = fraction * n_rows / seconds, seconds * (1 - fraction) / fraction
        report(Progress("train", number + 1, config.trees, 0, 0, fraction, nan, speed, seconds_left))

    return watch
