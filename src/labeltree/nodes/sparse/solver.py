"""What every way to train siblings is: an object without state.

What the kernels do with an example is resolved by the type of its ``kernel_method``; all else that differs
between the ways is theirs. The table of them is in :mod:`labeltree.nodes.sparse.solvers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.kernels.sparse.arrays import (
    Hinge,
    LogLoss,
    OnlineLogLoss,
    OnlineSoftmax,
    SoftmaxLoss,
    SquaredHinge,
)
from labeltree.nodes.sparse.gathering import Material

AS_THEY_ARE = (1.0, 0.0)  # scores that are log-odds

Method = SquaredHinge | Hinge | LogLoss | SoftmaxLoss | OnlineLogLoss | OnlineSoftmax


class Trained(NamedTuple):
    """Weights of siblings; what they do not mention is 0."""

    features: NDArray[np.int32]  # among all
    weights: NDArray[np.float32]  # (n_features, n_columns), and at last a row of the bias, if there is one
    l1: float  # by which they are still to be shrunk


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """A way to train siblings on the examples of their parent."""

    default_cost: float = 5.0  # C where it is left to the data (:mod:`labeltree.nodes.sparse.defaults`)
    log_odds: tuple[float, float] = AS_THEY_ARE  # that a score stands for: factor, summand

    @property
    @abstractmethod
    def draws_labels(self) -> bool:
        """Whether each pass draws one of a row's alternative labels; if not, all count in equal parts."""

    @abstractmethod
    def kernel_method(self, config: Config) -> Method:
        """What the kernel does with an example, and its parameters."""

    @abstractmethod
    def most_passes(self, config: Config) -> int:
        """Over all examples."""

    @abstractmethod
    def usual_passes(self, config: Config) -> float:
        """How many there will be, about."""

    @abstractmethod
    def n_duals(self, n_examples: int) -> int:
        """Variables of each column."""

    @abstractmethod
    def working_bytes(self, n_columns: int, n_features: int, n_examples: int, n_entries: int) -> int:
        """What the training of a task takes, besides the examples."""

    @abstractmethod
    def train(self, material: Material, config: Config, random: int) -> Iterator[Trained]:
        """The weights before the held-out rows join, if there are any, and at the end.

        They may be one array, which training goes on with.
        """

    @abstractmethod
    def diverged(self, config: Config) -> TrainingError:
        """What to do about weights that have grown beyond all bounds."""


@dataclass(frozen=True, kw_only=True)
class DualSolver(Solver):
    """A way in the dual: a variable for each example, and no step size that could be too large."""

    method: type[SquaredHinge | Hinge | LogLoss | SoftmaxLoss]
    few_passes: float  # how many there are until the default tolerance is reached, seen on real data

    @property
    def draws_labels(self) -> bool:
        return False

    def kernel_method(self, config: Config) -> Method:
        return self.method(np.float32(config.C), np.float32(config.l1))

    def most_passes(self, config: Config) -> int:
        return config.max_iterations

    def usual_passes(self, config: Config) -> float:
        return min(config.max_iterations, self.few_passes)

    def n_duals(self, n_examples: int) -> int:
        return n_examples

    def diverged(self, config: Config) -> TrainingError:
        return TrainingError(
            f"weights are no longer finite: the features' values are too large; scale them, or set "
            f"row_norm='l2' (it is {config.row_norm!r})"
        )
