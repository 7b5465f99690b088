"""The trees of a model: each is built, its nodes of every kind are fitted, their probabilities calibrated."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from labeltree.config import Config, chosen_by_data
from labeltree.experts.calibration import calibrate
from labeltree.experts.tree_search import TreeExpert
from labeltree.nodes import KINDS
from labeltree.nodes.kind import FitInput, FitProgress
from labeltree.training.job import TrainingJob
from labeltree.training.progress import Callback, Progress, stage
from labeltree.tree import LabelTree
from labeltree.trees.builder import TreeInput, builder_of


def resolve(config: Config, n_labels: int, examples_per_label: float) -> dict[str, Config]:
    """The config of each kind of nodes, with what the data chooses in place of each 0."""
    kinds = KINDS.parts_of(config.nodes)
    return {kind: KINDS[kind].resolve(config, n_labels, examples_per_label) for kind in kinds}


def train_trees(job: TrainingJob) -> list[TreeExpert]:
    """All trees of the config, each with all its kinds of nodes."""
    config, Y = job.config, job.rows.Y
    resolved = resolve(config, Y.n_labels, Y.examples_per_label)
    given = {kind: TreeInput(job.rows, job.label_names, own, job.pool) for kind, own in resolved.items()}
    builder = builder_of(config.tree)
    # Kept for the other trees; what a single one is built from is freed before training.
    is_shared = config.trees * len(given) > 1
    prepared = builder.prepare(next(iter(given.values()))) if is_shared else None
    trained = []
    for number in range(config.trees):
        built: dict[int, LabelTree] = {}  # by arity: kinds of nodes may have the same
        seed = tree_seed(config.seed, number)
        for kind, own in given.items():
            tell = _tell_building(config, number, job.report)
            tell(0.0)
            if own.config.arity not in built:
                shared: Any = prepared if is_shared else builder.prepare(own)
                built[own.config.arity] = builder.build(own._replace(report=tell), seed, shared)
                del shared
            tree = built[own.config.arity]
            tell(1.0)
            watch = _watch(config, number, job.report)
            fit = KINDS[kind].fit(FitInput(job.rows, tree, own.config, seed, job.pool, watch))
            parameters = calibrate(kind, fit, tree, job.rows, own.config, job.pool)
            expert = TreeExpert(tree, kind, parameters, job.rows.X.n_columns, config.link)
            expert.chosen = chosen_by_data(config, own.config)
            trained.append(expert)
    return trained


def tree_seed(seed: int, number: int) -> int:
    """The seed of a tree of the ensemble; the first tree's is that of a single one."""
    if number == 0:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _tell_building(config: Config, number: int, report: Callback) -> Callable[[float], None]:
    def tell(fraction: float) -> None:
        report(stage("tree", config, fraction, number))

    return tell


def _watch(config: Config, number: int, report: Callback) -> Callable[[FitProgress], None]:
    began = time.perf_counter()

    def watch(done: FitProgress) -> None:
        seconds_left = (time.perf_counter() - began) * (1 - done.fraction) / done.fraction
        place = ("train", number + 1, config.trees, done.epoch, done.epochs)
        report(Progress(*place, done.fraction, done.loss, done.examples_per_second, seconds_left))

    return watch
