"""The driver: data -> features -> tree -> nodes -> model, with progress."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labeltree.config import AskedConfig, Config, ask_config, without_unused_blocks
from labeltree.data.files import are_files, find_files
from labeltree.data.formats import Reading
from labeltree.data.memory import row_weights
from labeltree.data.rows import TrainingRows
from labeltree.decisions.goals import Goal, parse_goal
from labeltree.errors import DataError, ParameterError, WorkDirError, show
from labeltree.experts import EXPERTS
from labeltree.experts.combining import Combined, combine
from labeltree.experts.held_out import hold_out
from labeltree.experts.job import Callback, TrainingJob, stage
from labeltree.model import Model
from labeltree.nodes import KINDS, LINKS
from labeltree.nodes.kind import Facts
from labeltree.parallel import Pool
from labeltree.storage.card import check_card
from labeltree.storage.work_dir import WorkDir
from labeltree.training.cluster import check_client
from labeltree.training.data import TrainingData, check_labels_of_files, read_training_data, with_labels
from labeltree.training.kept_rows import (
    ROWS,
    keep_rows,
    kept_rows,
    same_rows,
    training_key,
    with_standard_input,
)
from labeltree.training.means import Means, open_means
from labeltree.training.needs import Estimate, estimate_needs
from labeltree.training.parsing import can_read_in_parts, read_in_parts
from labeltree.training.progress import listeners
from labeltree.training.tuning import check_calibrates, check_held_out, tune_on_held_out
from labeltree.trees import BUILDERS, FROM_FILE, check_tree


def train(
    X: Any,
    Y: Any = None,
    *,
    sample_weight: Any = None,
    label_names: Sequence[str] | None = None,
    config: Config | AskedConfig | None = None,
    preset: str | None = None,
    format: str = "auto",
    text_column: str = "text",
    labels_column: str = "labels",
    label_separator: str = ";",
    skip_bad_lines: bool = False,
    threads: int = 0,
    callback: Callback | None = None,
    progress: bool = False,
    card: Mapping[str, str] | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    max_memory: str | int | None = None,
    client: Any = None,
    tune_for: str | None = None,
    **parameters: Any,
) -> Model:
    """Train a model on files, or on texts or vectors with their labels.

    ``X`` is the path of a data file with labels (``-``: standard input), of a folder of them, a pattern such
    as ``"part-*.csv"``, or a list of ``pathlib.Path`` objects; or a list of texts, a sparse or dense matrix,
    or a pair of one of these and dense vectors beside it; then ``Y`` is a list of lists of labels or an
    indicator matrix, and ``label_names`` may give the names of the labels in the order of their ids (of the
    matrix' columns). Without ``Y``, X may also be an iterable of blocks, pairs of such an X and its Y, or of
    dicts, or a ``pyarrow.dataset.Dataset``: it is iterated over once, and texts are not kept.
    The columns are those of CSV and Parquet files, dicts and data sets, ``label_separator`` stands between
    labels in one string. ``parameters`` are those of :class:`labeltree.config.Config`. The callback gets a
    :class:`~labeltree.experts.job.Progress` again and again, one call at a time, but maybe from another
    thread; what it raises ends the training.
    ``progress=True`` shows the bar of the command line on a terminal or in a notebook, and lines elsewhere.
    Stages are logged as "labeltree". ``card`` are facts to keep with the model, such as
    ``{"licence": "CC0-1.0"}``. With ``tune_for``, such as ``"macro-f1@5"``, the model gets a rule for that
    measure, tuned on rows that were held out at first; ``model.tuned`` says what it gains.

    ``work_dir`` is a folder for data larger than memory, and for what is finished: the same call goes on
    there after it was ended, however that was. It stays until someone removes it. With ``max_memory``, such
    as ``"2GB"``, large arrays beyond that are mapped files (in the work dir, or a temporary folder). The
    workers of ``client``, of ``dask.distributed``, train nodes; all must see the work dir. The model is the
    same, byte for byte.
    """
    config, given = merge_config(config, preset, parameters)
    check_choices(config)
    card = check_card({} if card is None else card)
    goal = None if tune_for is None else parse_goal(tune_for)
    if goal is not None:
        check_calibrates(config)
    _check_listeners(callback, progress)
    reading = Reading(format, text_column, labels_column, label_separator)
    source = Source(X, Y, label_names, sample_weight, reading, skip_bad_lines)
    if client is not None:
        _check_cluster(client, config, work_dir)
    with (
        open_means(threads, work_dir, max_memory, client) as means,
        listeners(callback, bar=progress) as report,
    ):
        prepared = prepare(source, AskedConfig(config, given), means, report)
        return train_prepared(prepared, card, goal)


def _check_cluster(client: Any, config: Config, work_dir: Any) -> None:
    check_client(client)
    check_can_share(config)
    if work_dir is None:
        raise ParameterError("client needs work_dir, a folder that all workers see")


def check_can_share(config: Config) -> None:
    """Refuse what one machine must do alone."""
    for kind in KINDS.parts_of(config.nodes):
        if config.trees and not KINDS[kind].has_parts:
            others = " or ".join(repr(name) for name in KINDS.single() if KINDS[name].has_parts)
            raise ParameterError(
                f"{kind} nodes are trained on one machine only, as a step depends on the one before; use "
                f"nodes={others}, or train without sharing out"
            )


class Source(NamedTuple):
    """What to train on, as it was given."""

    X: Any
    Y: Any
    label_names: Sequence[str] | None
    sample_weight: Any
    reading: Reading
    skip_bad_lines: bool


class Prepared(NamedTuple):
    """Data that was read, and what is to be done with it."""

    data: TrainingData
    job: TrainingJob


def prepare(source: Source, asked: AskedConfig, means: Means, report: Callback) -> Prepared:
    """Read the data, or find what was read before; choose what is left to it."""
    report(stage("read", asked.config, 0.0))
    data, rows = _read(source, asked, means, report)
    job = make_job(data, rows, asked.config, means.pool)._replace(report=report, work=means.work)
    report(stage("read", asked.config, 1.0)._replace(estimate=estimate_needs(data, job)))
    return Prepared(data, job)


def train_prepared(prepared: Prepared, card: Mapping[str, str], goal: Goal | None = None) -> Model:
    data, job = prepared
    if goal is not None:
        check_held_out(job)
    combined = train_experts(job)
    model = make_model(data, job.config, combined, card)
    if goal is not None:
        model.tuned = tune_on_held_out(goal, combined, job, model.label_counts)
        model.rule = model.tuned.rule
    return model


def train_experts(job: TrainingJob) -> Combined:
    """All that the config asks for."""
    trained = [each for kind in EXPERTS.values() for each in kind.train(job)]
    if not trained:
        raise DataError(
            "no rows are similar by what only some of them have, so there are no neighbours; use trees=1"
        )
    return combine(trained, job.held_out, job.pool)


def _read(
    source: Source, asked: AskedConfig, means: Means, report: Callback
) -> tuple[TrainingData, TrainingRows]:
    """Rows that can be trained on, and their weights; in a work dir, where there is one."""
    config, work = asked.config, means.work
    X, files = source.X, None
    if work is not None:
        if are_files(X):
            check_labels_of_files(source.Y, source.label_names)
            X = files = with_standard_input(find_files(X), work.folder.path)
        work.folder.begin(training_key(config, files, source.sample_weight, source[4:]))
        if files is not None and work.folder.has(ROWS):
            return _of_work(work.folder, config)

    def tell(fraction: float) -> None:
        report(stage("read", config, fraction))

    how, skip = source.reading, source.skip_bad_lines
    if work is not None and files is not None and can_read_in_parts(files, asked, how.check()):
        data = read_in_parts(files, config, how, skip, work, means.pool, tell)
    else:
        names, space = source.label_names, means.pool.space
        data = read_training_data(X, source.Y, config, how, skip, names, tell, asked.given, space)
    data, rows = _usable_rows(data, config, source.sample_weight)
    if work is None:
        return data, rows
    if not work.folder.has(ROWS):
        if files is None:  # results may be those of other rows, as no digest of a file tells
            work.folder.forget()
        keep_rows(work.folder, data, rows.weight)
    elif not same_rows(work.folder, data, rows.weight):
        raise WorkDirError(
            f"{work.folder.path}: holds the work of a training on other rows; choose another work dir, or "
            "remove it"
        )
    del data, rows  # those of the work dir need no memory
    return _of_work(work.folder, config)


def _of_work(folder: WorkDir, config: Config) -> tuple[TrainingData, TrainingRows]:
    data, weight = kept_rows(folder, config)
    return data, data.training_rows(weight)


def check_choices(config: Config) -> None:
    """What does not go together is better found before the data is read."""
    check_tree(config.tree)
    link = LINKS[config.link]
    for kind in KINDS.parts_of(config.nodes):
        if not KINDS[kind].takes(link):
            others = " or ".join(repr(name) for name in KINDS.single() if KINDS[name].takes(link))
            raise ParameterError(
                f"{kind} nodes cannot be trained with link {config.link!r}; use nodes={others}"
            )


def _check_listeners(callback: Any, progress: Any) -> None:
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be a function of one argument, but is {show(callback)}")
    if type(progress) is not bool:
        raise ParameterError(
            f"progress must be True or False, but is {show(progress)}; a function is a callback"
        )


def _usable_rows(
    data: TrainingData, config: Config, sample_weight: Any = None
) -> tuple[TrainingData, TrainingRows]:
    """The data without rows that the link cannot learn from, and its rows with their weights."""
    weight = row_weights(sample_weight, data.X.n_rows)
    if LINKS[config.link].picks_label:
        data, weight = with_labels(data, weight, config.link)
    return data, data.training_rows(weight)


def make_job(data: TrainingData, rows: TrainingRows, config: Config, pool: Pool) -> TrainingJob:
    """What the config leaves to the data is chosen here, once."""
    kinds = KINDS.parts_of(config.nodes)
    # Dense vectors do not change which tree is the best: who adds them gets the one without.
    n_entries = int(np.count_nonzero(rows.X.indices < data.features.n_sparse))
    facts = Facts(rows.Y.n_labels, rows.Y.examples_per_label, n_entries)
    return TrainingJob(
        rows=rows,
        label_names=data.labels.strings(),
        config=config,
        facts=facts,
        resolved={kind: KINDS[kind].resolve(config, facts) for kind in kinds},
        held_out=hold_out(data.features, rows, config),
        n_compared=data.features.n_compared,
        pool=pool,
    )


def make_model(data: TrainingData, config: Config, combined: Combined, card: Mapping[str, str]) -> Model:
    """Of experts that were trained on the data."""
    counts = np.bincount(data.Y.indices, minlength=len(data.labels)).astype(np.int64)
    if config.tree not in BUILDERS:
        config = dataclasses.replace(config, tree=FROM_FILE)
    model = Model(
        config=config, features=data.features, labels=data.labels, label_counts=counts,
        n_examples=data.X.n_rows, experts=combined.experts, combination=combined.combination, card=card,
    )  # fmt: skip
    model.skipped_lines, model.skipped_messages = data.bad_lines.skipped, data.bad_lines.messages
    model.unused_rows = data.unused_rows
    return model


def estimate(
    X: Any,
    Y: Any = None,
    *,
    config: Config | AskedConfig | None = None,
    preset: str | None = None,
    format: str = "auto",
    text_column: str = "text",
    labels_column: str = "labels",
    label_separator: str = ";",
    skip_bad_lines: bool = False,
    threads: int = 0,
    **parameters: Any,
) -> Estimate:
    """Read the data and say what training on it would need, after training a small part of it."""
    config, given = merge_config(config, preset, parameters)
    check_choices(config)
    reading = Reading(format, text_column, labels_column, label_separator)
    with Pool(threads) as pool:
        data = read_training_data(X, Y, config, reading, skip_bad_lines, given=given)
        data, rows = _usable_rows(data, config)
        return estimate_needs(data, make_job(data, rows, config, pool), closely=True)


def merge_config(
    config: Config | AskedConfig | None,
    preset: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> AskedConfig:
    """What a training is asked for, however it was said."""
    merged = _asked(config, preset, dict(parameters or {}))
    return merged._replace(config=without_unused_blocks(merged.config))


def _asked(
    config: Config | AskedConfig | None, preset: str | None, parameters: dict[str, Any]
) -> AskedConfig:
    if isinstance(config, AskedConfig) and not parameters and preset is None:
        return config
    if config is None:
        return ask_config(parameters, preset=preset)
    if not isinstance(config, Config):
        raise ParameterError(
            f"config must be a Config (of make_config), but is {show(config)}; "
            "give single parameters by name, like trees=3"
        )
    if preset is not None:
        raise ParameterError("give either config or preset, not both")
    return ask_config(parameters, config=config)
