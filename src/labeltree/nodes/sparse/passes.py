"""The ways that go through all examples, for all siblings side by side: in the dual, and online steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.errors import TrainingError
from labeltree.kernels.lanes import LANES
from labeltree.kernels.sparse.arrays import (
    Gathered,
    OnlineLogLoss,
    OnlineSoftmax,
    State,
    padded,
)
from labeltree.nodes.sparse.gathering import Material
from labeltree.nodes.sparse.solver import DualSolver, Method, Solver, Trained
from labeltree.storage.space import Space


@dataclass(frozen=True, kw_only=True)
class Passes(Solver):
    """Passes over all examples. Where rows are held out, they join in the last one, or one more."""

    # What positive examples of columns that only pad count. Those of a softmax must have no part in it.
    padding: float = 1.0

    @abstractmethod
    def tolerance(self, config: Config, n_columns: int, with_held_out: bool) -> np.float32:
        """Of the variables, what a pass may change to be the last one."""

    @abstractmethod
    def first_dual(self, examples: Gathered, n_columns: int, space: Space) -> NDArray[np.float32]:
        """The variables with which no example has a part in the weights."""

    def working_bytes(self, n_columns: int, n_features: int, n_examples: int, n_entries: int) -> int:
        return 4 * n_columns * (n_features + self.n_duals(n_examples))

    def train(self, material: Material, config: Config, random: int) -> Iterator[Trained]:
        examples, features = material.examples, material.features
        method = self.kernel_method(config)
        state = self._first_state(material, len(features) + (config.bias > 0), random)
        trained = Trained(features, state.weights, float(method.l1))
        n_passes = self.most_passes(config)
        if np.any(examples.held_out):
            n_done = self._make_passes(material, config, state, max(1, n_passes - 1), False)
            yield trained
            n_passes = max(1, n_passes - n_done)
            state.is_active[:] = True
        self._make_passes(material, config, state, n_passes, True)
        yield trained

    def _first_state(self, material: Material, n_weights: int, random: int) -> State:
        """No weights yet, ``n_weights`` of each child."""
        examples, positive_weight = material.examples, material.positive_weight
        n_examples, n_children = len(examples.weight), len(positive_weight)
        n_columns = int(padded(n_children))
        of_column = np.full(n_columns, self.padding, np.float32)
        of_column[:n_children] = positive_weight
        return State(
            material.space.zeros((n_weights, n_columns), np.float32),
            self.first_dual(examples, n_columns, material.space),
            of_column,
            np.arange(n_examples),
            np.ones(n_examples, np.bool_),
            np.array([random], np.uint64),
            np.zeros(1, np.int64),
        )

    def _make_passes(
        self, material: Material, config: Config, state: State, n_passes: int, with_held_out: bool
    ) -> int:
        """At most so many; how many there were. Those with the held-out rows are the last ones."""
        from labeltree.kernels.sparse.passes import train_passes

        method, examples, visits = self.kernel_method(config), material.examples, material.visits
        tolerance = self.tolerance(config, state.weights.shape[1], with_held_out)
        if visits is None:
            return train_passes(method, examples, state, n_passes, tolerance, with_held_out)
        for bits in visits[-n_passes:] if with_held_out else visits[:n_passes]:
            order = np.flatnonzero(np.unpackbits(bits, count=len(examples.weight)))
            train_passes(method, examples, state._replace(order=order), 1, tolerance, with_held_out)
        return n_passes


@dataclass(frozen=True, kw_only=True)
class Dual(DualSolver, Passes):
    """Coordinate descent in the dual: passes over all examples until one hardly changes anything."""

    few_passes: float = 8
    # Times the tolerance: before the held-out rows join, weights need not be exact. Those of the log loss
    # grow long after they rank well, and a map fitted to smaller ones would not suit them.
    first_tolerance: float = 1.0
    no_dual: float = 0.0  # a variable that gives its example no part in the weights

    def tolerance(self, config: Config, n_columns: int, with_held_out: bool) -> np.float32:
        # Columns that only pad are settled soon and count as well: without them a pass seems to change more.
        few = min(1.0, n_columns / LANES)
        return np.float32(config.tolerance * few * (1.0 if with_held_out else self.first_tolerance))

    def first_dual(self, examples: Gathered, n_columns: int, space: Space) -> NDArray[np.float32]:
        dual = space.empty((len(examples.weight), n_columns), np.float32)
        dual[:] = self.no_dual
        return dual


@dataclass(frozen=True, kw_only=True)
class SoftmaxDual(Dual):
    """A variable for each example and child, at first 1 for the child that the example goes to."""

    def first_dual(self, examples: Gathered, n_columns: int, space: Space) -> NDArray[np.float32]:
        dual = super().first_dual(examples, n_columns, space)
        dual[np.arange(len(examples.positive)), examples.positive] = 1.0
        return dual


@dataclass(frozen=True, kw_only=True)
class Online(Passes):
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

    def usual_passes(self, config: Config) -> float:
        return config.epochs

    def tolerance(self, config: Config, n_columns: int, with_held_out: bool) -> np.float32:
        return np.float32(0.0)

    def n_duals(self, n_examples: int) -> int:
        return 0

    def first_dual(self, examples: Gathered, n_columns: int, space: Space) -> NDArray[np.float32]:
        return np.empty((0, 0), np.float32)

    def diverged(self, config: Config) -> TrainingError:
        eta = config.eta
        return TrainingError(
            f"weights are no longer finite: eta={eta:g} is too large for this data; try eta={eta / 10:g}"
        )
