"""What experts are trained from, and what they tell meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.experts.held_out import HeldOut
from labeltree.nodes.kind import Facts
from labeltree.parallel import Pool
from labeltree.storage.work_dir import WorkDir

if TYPE_CHECKING:
    from labeltree.training.needs import Estimate


class Progress(NamedTuple):
    """What a callback hears."""

    stage: str  # "read", "tree", "train", "neighbours", "forest"
    tree: int  # of the ensemble, from 1
    trees: int
    epoch: int  # from 1; 0 before training, and for sparse nodes, each of which has its own
    epochs: int
    fraction: float  # of this stage
    loss: float  # mean per example of this epoch; NaN before training, and for sparse nodes
    # Dense nodes: of the last part of an epoch. Sparse nodes, which are trained one after another, each on
    # its rows: the training rows times the fraction of all nodes' work that is done, per second so far.
    examples_per_second: float  # NaN before training
    seconds_left: float  # of this stage; NaN if unknown
    estimate: Estimate | None = None  # when the data is read: what its training will need


Callback = Callable[[Progress], None]


def stage(name: str, config: Config, fraction: float, number: int = 0) -> Progress:
    """How far a stage before training is, of tree ``number``."""
    nan = float("nan")
    return Progress(name, number + 1, config.trees, 0, 0, fraction, nan, nan, nan)


class ExpertNeeds(NamedTuple):
    """What all experts of a kind take, about."""

    kept_bytes: int = 0  # of their parameters
    file_bytes: int = 0  # in the model file
    training_bytes: int = 0  # besides what is kept, while they are trained
    cpu_seconds: float = 0.0  # of one core; NaN where nothing is known
    times_of_default: float = 1.0  # how many times as long as with the default parameters for trees


class Work(NamedTuple):
    """Where a training keeps what is finished."""

    folder: WorkDir
    # Who does the parts of a fit, as :class:`~labeltree.nodes.kind.Parts` has it; None: this process.
    elsewhere: Callable[[str, Sequence[int], Callable[[int], None]], None] | None = None


class TrainingJob(NamedTuple):
    """Data, parameters and means of one training."""

    rows: TrainingRows
    label_names: Sequence[str]
    config: Config  # as it was given: a 0 leaves a value to the data
    facts: Facts  # by which the data chooses
    resolved: Mapping[str, Config]  # of each kind of nodes, with what the data chose
    held_out: HeldOut
    n_compared: int  # columns by which rows are similar, the first ones
    pool: Pool
    report: Callback = lambda progress: None
    work: Work | None = None  # None: nothing is kept before the end
