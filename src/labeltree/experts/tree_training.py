"""The trees of a model: each is built, its nodes of every kind are fitted, their probabilities calibrated."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import BY_DATA, Config, chosen_by_data
from labeltree.data.rows import TrainingRows
from labeltree.experts.calibration import map_of_found, map_of_rows
from labeltree.experts.expert import Trained
from labeltree.experts.group_odds import choose_summand
from labeltree.experts.job import Callback, ExpertNeeds, Progress, TrainingJob, stage
from labeltree.experts.tree_expert import TreeExpert
from labeltree.nodes import KINDS
from labeltree.nodes.kind import MAX_LEAVES, Fit, FitInput, FitProgress, Parameters, Parts
from labeltree.parallel import Pool
from labeltree.storage.work_dir import WorkDir
from labeltree.tree import LabelTree
from labeltree.trees import BUILDERS
from labeltree.trees.builder import TreeInput, build_tree, builder_of

PROFILES = "profiles"  # the parts in a work dir that trees are built from
_BYTES_PER_NODE = 20  # of the tree itself
# Beside a tree of one level, which is more accurate: with as much as that has, they gain less at P@5 than
# they lose at P@1.
_SHARE_OF_OTHERS = 0.25


class Built(NamedTuple):
    """A tree, and what its nodes of one kind are trained with."""

    number: int  # of the ensemble, from 0
    kind: str
    config: Config  # resolved
    seed: int
    tree: LabelTree

    @property
    def name(self) -> str:
        """In a work dir."""
        return f"tree-{self.number}-{self.kind}"


def train_trees(job: TrainingJob) -> list[Trained]:
    """All trees of the config, each with all its kinds of nodes."""
    return [_fitted(built, job) for built in build_trees(job)]


def build_trees(job: TrainingJob) -> Iterator[Built]:
    """Each tree of the config, with what will be trained; from the work dir, if it is there."""
    config = job.config
    parts = None if job.work is None else Parts(job.work.folder, PROFILES, job.work.elsewhere)
    common = TreeInput(job.rows, job.label_names, config, job.pool, parts=parts)
    given = {kind: common._replace(config=own) for kind, own in job.resolved.items()}
    builder, prepared = builder_of(config.tree), list[Any]()  # what all trees share, once there is any
    for number in range(config.trees):
        trees: dict[Any, LabelTree] = {}
        seed = tree_seed(config.seed, number)
        for kind, first in given.items():
            own = first if number == 0 else first._replace(config=_other_shape(kind, job))
            tell, shape = _tell_building(config, number, job.report), _what_shapes(own.config)
            tell(0.0)
            name = f"tree-{number}-{kind}"
            kept = None if job.work is None else job.work.folder.read_sound(name)
            if kept is not None:
                trees[shape] = LabelTree.from_tensors(kept[0], "tree")
            elif shape not in trees:  # kinds of nodes may have the same tree
                prepared = prepared or [builder.prepare(next(iter(given.values())))]
                trees[shape] = builder.build(own._replace(report=tell), seed, prepared[0])
            built = Built(number, kind, own.config, seed, trees[shape])
            if kept is None and job.work is not None:
                _keep(built, job.work.folder, job.held_out.numbers)
            tell(1.0)
            if config.trees * len(given) == 1:
                prepared.clear()  # before training needs memory
            yield built


def _keep(built: Built, folder: WorkDir, held_out: NDArray[np.int64]) -> None:
    """All that its nodes are trained with, but the rows."""
    tensors = built.tree.tensors("tree") | {"held_out": held_out}
    what = {"number": built.number, "kind": built.kind, "config": built.config.to_dict()}
    folder.write(built.name, tensors, what | {"seed": str(built.seed)})


def kept_fit(folder: WorkDir, name: str, rows: TrainingRows, pool: Pool) -> tuple[str, FitInput]:
    """The kind of nodes of a tree that was kept, and what they are trained with."""
    tensors, what = folder.read(name)
    tree, config = LabelTree.from_tensors(tensors, "tree"), Config(**what["config"])
    given = FitInput(rows, tree, config, int(what["seed"]), pool, held_out=tensors["held_out"])
    return what["kind"], given._replace(parts=Parts(folder, name))


def _fitted(built: Built, job: TrainingJob) -> Trained:
    work, watch = job.work, _watch(job.config, built.number, job.report)
    parts = None if work is None else Parts(work.folder, built.name, work.elsewhere)
    numbers = job.held_out.numbers
    fit = KINDS[built.kind].fit(
        FitInput(job.rows, built.tree, built.config, built.seed, job.pool, watch, numbers, parts)
    )
    trained = _calibrated(built.kind, built.tree, fit, job)
    trained.expert.chosen = chosen_by_data(job.config, built.config)
    if built.config != job.resolved[built.kind]:
        trained.expert.usual_share = _SHARE_OF_OTHERS
    return trained


def _other_shape(kind: str, job: TrainingJob) -> Config:
    """Of the trees after the first: if that has one level, as the data chose, others like it add nothing."""
    asked, own = job.config, job.resolved[kind]
    if asked.max_leaves or own.max_leaves < job.facts.n_labels:
        return own
    return KINDS[kind].resolve(dataclasses.replace(asked, max_leaves=MAX_LEAVES), job.facts)


def _calibrated(kind: str, tree: LabelTree, fit: Fit, job: TrainingJob) -> Trained:
    """The tree with what was fitted to all rows and, where rows were held out, with what was to the others;
    both with the log-odds of groups and the map that suit those rows, if they keep one."""

    def expert(parameters: Parameters) -> TreeExpert:
        return TreeExpert(tree, kind, parameters, job.rows.X.n_columns, job.config.link)

    if fit.without_held_out is None:
        return Trained(expert(fit.parameters))
    if not KINDS[kind].keeps_map:
        return Trained(expert(fit.parameters), expert(fit.without_held_out))
    if tree.shape().depth > 1 and KINDS[kind].assumes_odds(job.resolved[kind]):
        fit, map = _with_group_odds(kind, tree, fit, expert, job)
    else:
        map = map_of_rows(expert(fit.without_held_out), job.held_out, job.pool)
    both = [expert(KINDS[kind].calibrated(each, map.astype(np.float32))) for each in fit]
    return Trained(both[0], both[1])


def _with_group_odds(
    kind: str, tree: LabelTree, fit: Fit, expert: Callable[[Parameters], TreeExpert], job: TrainingJob
) -> tuple[Fit, NDArray[np.float64]]:
    """With log-odds of groups that suit the held-out rows, and the map that then does."""

    def changed(parameters: Parameters, summand: float) -> Parameters:
        return KINDS[kind].with_group_odds(parameters, tree, summand)

    def first(summand: float) -> TreeExpert:
        return expert(changed(fit.without_held_out, summand))

    chosen = choose_summand(first, job.held_out, job.pool)
    map = map_of_found(chosen.ids, chosen.probabilities, job.held_out)
    return Fit(*(changed(parameters, chosen.summand) for parameters in fit)), map


def needs_of_trees(job: TrainingJob, *, closely: bool) -> ExpertNeeds:
    """Closely a tree of each kind of nodes is built, and a part of its nodes may be trained."""
    config, rows, n_labels = job.config, job.rows, job.rows.Y.n_labels
    if not config.trees:
        return ExpertNeeds()
    builder, default = builder_of(config.tree), builder_of(Config.tree)
    kept = in_file = training = building = 0
    cpu_seconds = of_default = 0.0
    for kind, own in job.resolved.items():
        tree = build_tree(TreeInput(rows, job.label_names, own, job.pool), own.seed) if closely else None
        shape = builder.guess_shape(own, n_labels) if tree is None else tree.shape()
        needs = KINDS[kind].needs(rows, shape, own, tree)
        kept += config.trees * needs.kept_bytes
        in_file += config.trees * (needs.kept_bytes + _BYTES_PER_NODE * (n_labels + shape.n_inner))
        training = max(training, needs.training_bytes)
        building = max(building, builder.working_bytes(rows, own))
        cpu_seconds += config.trees * needs.cpu_seconds
        if tree is not None or builder is not default:
            needs = KINDS[kind].needs(rows, default.guess_shape(own, n_labels), own, None)
        of_default += config.trees * needs.cpu_seconds
    times = cpu_seconds / of_default if of_default > 0.0 else 1.0  # also where nothing is known
    # What a tree is built in is given back before its nodes are trained.
    return ExpertNeeds(kept, in_file, max(training, building), cpu_seconds, times)


def tree_seed(seed: int, number: int) -> int:
    """The seed of a tree of the ensemble; the first tree's is that of a single one."""
    if number == 0:
        return seed
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _what_shapes(config: Config) -> tuple[Any, ...]:
    """What the data may have chosen of that which the tree depends on."""
    return tuple(getattr(config, name) for name in BY_DATA if config.tree in BUILDERS.users_of(name))


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
