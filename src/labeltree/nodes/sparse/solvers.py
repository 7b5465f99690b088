"""The ways to train siblings: losses in the dual, and online steps. ``SOLVERS`` is the table of them.

A way is an object without state. What the kernels do with an example is resolved by the type of its
``kernel_method``; all else that differs between the ways is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.kernels.lanes import LANES
from labeltree.kernels.sparse.arrays import (
    Gathered,
    LogLoss,
    OnlineLogLoss,
    OnlineSoftmax,
    SoftmaxLoss,
    SquaredHinge,
    State,
    padded,
)
from labeltree.nodes import LINKS

USUAL_PASSES = 8  # in the dual until the default tolerance is reached, seen on real data

AS_THEY_ARE = (1.0, 0.0)  # scores that are log-odds

Method = SquaredHinge | LogLoss | SoftmaxLoss | OnlineLogLoss | OnlineSoftmax


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """A way to train siblings on the examples of their parent."""

    default_cost: float = 5.0  # C where it is left to the data (:mod:`labeltree.nodes.sparse.defaults`)
    log_odds: tuple[float, float] = AS_THEY_ARE  # that a score stands for: factor, summand
    # What positive examples of columns that only pad count. Those of a softmax must have no part in it.
    padding: float = 1.0

    @property
    @abstractmethod
    def draws_labels(self) -> bool:
        """Whether each pass draws one of a row's alternative labels; if not, all count in equal parts."""

    @abstractmethod
    def kernel_method(self, config: Config) -> Method:
        """What the kernel does with an example, and its parameters."""

    @abstractmethod
    def most_passes(self, config: Config) -> int:
        """Over all examples. Where rows are held out, they join in the last one, or one more."""

    @abstractmethod
    def usual_passes(self, config: Config) -> int:
        """How many there will be, about."""

    @abstractmethod
    def tolerance(self, config: Config, n_columns: int, with_held_out: bool) -> np.float32:
        """Of the variables, what a pass may change to be the last one."""

    @abstractmethod
    def n_duals(self, n_examples: int) -> int:
        """Variables of each column."""

    @abstractmethod
    def first_dual(self, examples: Gathered, n_columns: int) -> NDArray[np.float32]:
        """The variables with which no example has a part in the weights."""

    @abstractmethod
    def diverged(self, config: Config) -> TrainingError:
        """What to do about weights that have grown beyond all bounds."""

    def first_state(
        self, examples: Gathered, n_weights: int, positive_weight: NDArray[np.float32], random: int
    ) -> State:
        """No weights yet, ``n_weights`` of each child; ``positive_weight`` is that of each child."""
        n_examples, n_children = len(examples.weight), len(positive_weight)
        n_columns = int(padded(n_children))
        of_column = np.full(n_columns, self.padding, np.float32)
        of_column[:n_children] = positive_weight
        return State(
            np.zeros((n_weights, n_columns), np.float32),
            self.first_dual(examples, n_columns),
            of_column,
            np.arange(n_examples),
            np.ones(n_examples, np.bool_),
            np.array([random], np.uint64),
            np.zeros(1, np.int64),
        )


@dataclass(frozen=True, kw_only=True)
class Dual(Solver):
    """Coordinate descent in the dual: passes over all examples until one hardly changes anything."""

    method: type[SquaredHinge | LogLoss | SoftmaxLoss]
    # Times the tolerance: before the held-out rows join, weights need not be exact. Those of the log loss
    # grow long after they rank well, and a map fitted to smaller ones would not suit them.
    first_tolerance: float = 1.0
    no_dual: float = 0.0  # a variable that gives its example no part in the weights

    @property
    def draws_labels(self) -> bool:
        return False

    def kernel_method(self, config: Config) -> Method:
        return self.method(np.float32(config.C), np.float32(config.l1))

    def most_passes(self, config: Config) -> int:
        return config.max_iterations

    def usual_passes(self, config: Config) -> int:
        return min(config.max_iterations, USUAL_PASSES)

    def tolerance(self, config: Config, n_columns: int, with_held_out: bool) -> np.float32:
        # Columns that only pad are settled soon and count as well: without them a pass seems to change more.
        few = min(1.0, n_columns / LANES)
        return np.float32(config.tolerance * few * (1.0 if with_held_out else self.first_tolerance))

    def n_duals(self, n_examples: int) -> int:
        return n_examples

    def first_dual(self, examples: Gathered, n_columns: int) -> NDArray[np.float32]:
        return np.full((len(examples.weight), n_columns), self.no_dual, np.float32)

    def diverged(self, config: Config) -> TrainingError:
        return TrainingError(
            f"weights are no longer finite: the features' values are too large; scale them, or set "
            f"row_norm='l2' (it is {config.row_norm!r})"
        )


@dataclass(frozen=True, kw_only=True)
class SoftmaxDual(Dual):
    """A variable for each example and child, at first 1 for the child that the example goes to."""

    def first_dual(self, examples: Gathered, n_columns: int) -> NDArray[np.float32]:
        dual = super().first_dual(examples, n_columns)
        dual[np.arange(len(examples.positive)), examples.positive] = 1.0
        return dual


@dataclass(frozen=True, kw_only=True)
class Online(Solver):
    """Steps along the gradient, so many passes as there are epochs."""

    method: type[OnlineLogLoss | OnlineSoftmax]

    @property
    def draws_labels(self) -> bool:
        return True

    def kernel_method(self, config: Config) -> Method:
        step = (config.eta, config.eta_power, config.l2, 0.0)
        return self.method(*(np.float32(number) for number in step))

    def most_passes(self, config: Config) -> int:
        return config.epochs

    def usual_passes(self, config: Config) -> int:
        return config.epochs

    def tolerance(self, config: Config, n_columns: int, with_held_out: bool) -> np.float32:
        return np.float32(0.0)

    def n_duals(self, n_examples: int) -> int:
        return 0

    def first_dual(self, examples: Gathered, n_columns: int) -> NDArray[np.float32]:
        return np.empty((0, 0), np.float32)

    def diverged(self, config: Config) -> TrainingError:
        eta = config.eta
        return TrainingError(
            f"weights are no longer finite: eta={eta:g} is too large for this data; try eta={eta / 10:g}"
        )


SQUARED_HINGE = Dual(
    method=SquaredHinge,
    default_cost=0.5,
    # They rank labels as exp(-max(0, 1 - s)³) does, the map of Parabel's successors, but are those of a
    # probability.
    log_odds=(3.0, 1.0),
    first_tolerance=4.0,
)
LOG = Dual(method=LogLoss, no_dual=-30.0)  # a logit that is as good as 0
SOFTMAX = SoftmaxDual(method=SoftmaxLoss, padding=0.0)
ONLINE_LOG = Online(method=OnlineLogLoss)
ONLINE_SOFTMAX = Online(method=OnlineSoftmax, padding=0.0)

# By the parameters ``solver`` and ``loss``; "softmax" is the log loss of more than two alternatives.
SOLVERS: dict[tuple[str, str], Solver] = {
    ("dual", "squared-hinge"): SQUARED_HINGE,
    ("dual", "log"): LOG,
    ("dual", "softmax"): SOFTMAX,
    ("sgd", "squared-hinge"): ONLINE_LOG,  # online there is only one loss
    ("sgd", "log"): ONLINE_LOG,
    ("sgd", "softmax"): ONLINE_SOFTMAX,
}


def solver_of(config: Config, n_children: int = 1) -> Solver:
    """The way to train so many siblings."""
    of_siblings = LINKS[config.link].sparse_loss
    assert of_siblings is not None, "what the nodes do not take is refused before"
    return SOLVERS[config.solver, of_siblings(config.loss, n_children)]
