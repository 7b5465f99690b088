"""PPDSparse (Yen et al., KDD 2017): child by child, on a growing set of its examples.

Only examples within the margin have a part in the weights of a hinge loss, and an L1 term leaves few weights:
a child is solved on those few, with those few. Nothing of the size of children x features is ever there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.kernels.sparse.arrays import Columns, Gathered, Work, padded
from labeltree.nodes.sparse.gathering import Material
from labeltree.nodes.sparse.solver import DualSolver, Trained

_RANDOM_STEP = 0xD1B54A32D192ED03  # between the random numbers of two children
_BLOCK_FEATURES = 0.3  # of all features, those with a weight of any sibling


class _Child(NamedTuple):
    """Where a child is: its active examples, and the weights that they make."""

    active: NDArray[np.int32]
    dual: NDArray[np.float64]  # of the active examples
    features: NDArray[np.int32]  # those with a weight, the bias's not among them
    weights: NDArray[np.float32]
    bias: float

    def finished(self) -> _Child:
        """The weights alone: of all children the examples would be most of a task's memory."""
        return self._replace(active=_NOTHING.active, dual=_NOTHING.dual)


_NOTHING = _Child(
    np.empty(0, np.int32), np.empty(0, np.float64), np.empty(0, np.int32), np.empty(0, np.float32), 0.0
)


@dataclass(frozen=True, kw_only=True)
class ActiveSet(DualSolver):
    """Coordinate descent in the dual on an active set, to which the worst of the other examples come."""

    few_passes: float = 3.0  # over all examples, that would take as long

    def working_bytes(self, n_columns: int, n_features: int, n_examples: int, n_entries: int) -> int:
        """The examples by feature, one child's work, and the block in which a task hands its weights on."""
        of_child = 16 * n_features + 40 * n_examples
        return 8 * n_entries + of_child + int(4 * n_columns * _BLOCK_FEATURES * n_features)

    def train(self, material: Material, config: Config, random: int) -> Iterator[Trained]:
        examples, features, positive_weight = material[:3]
        columns, work = _by_feature(examples, len(features)), _blank_work(examples, len(features))
        positive, first = _by_child(examples, len(positive_weight))
        found = [_NOTHING] * len(positive_weight)
        for with_held_out in [False, True] if np.any(examples.held_out) else [True]:
            for child, weight in enumerate(positive_weight):
                work.random[0] = (random ^ (child + 1) * _RANDOM_STEP) % 2**64
                rows = positive[first[child] : first[child + 1]]
                if len(rows):
                    solved = self._solve(
                        config, examples, columns, rows, weight, with_held_out, found[child], work
                    )
                    found[child] = solved.finished() if with_held_out else solved
            yield _block(found, features, config.bias > 0)

    def _solve(
        self,
        config: Config,
        examples: Gathered,
        columns: Columns,
        positive: NDArray[np.int32],
        positive_weight: np.float32,
        with_held_out: bool,
        begun: _Child,
        work: Work,
    ) -> _Child:
        """One child, from where it is; leaves the work blank."""
        from labeltree.kernels.sparse.active import solve_child

        method, n_features = self.kernel_method(config), len(columns.indptr) - 1
        n_active, n_touched = solve_child(
            method, examples, columns, positive, positive_weight, begun.active, begun.dual,
            config.max_iterations, config.tolerance, with_held_out, work,
        )  # fmt: skip
        active, touched = work.active[:n_active].copy(), work.touched[:n_touched].copy()
        dual, bias = work.dual[active], float(work.total[n_features])
        touched = touched[touched < n_features]
        size = np.abs(work.total[touched]) - float(method.l1)
        kept = ~(size <= 0.0)  # also NaN, which is then found
        weights = np.copysign(size, work.total[touched])[kept].astype(np.float32)
        work.total[work.touched[:n_touched]] = 0.0
        work.is_touched[work.touched[:n_touched]] = False
        work.dual[active] = 0.0
        work.is_active[active] = False
        work.sign[positive] = -1.0
        return _Child(active, dual, touched[kept], weights, bias)


def _by_feature(examples: Gathered, n_features: int) -> Columns:
    from labeltree.kernels.sparse.active import turn_examples

    n_entries = int(np.count_nonzero(examples.indices < n_features))  # without those of the bias
    columns = Columns(
        np.empty(n_features + 1, np.int64), np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    )
    turn_examples(examples.indptr, examples.indices, examples.values, *columns)
    return columns


def _blank_work(examples: Gathered, n_features: int) -> Work:
    n = len(examples.weight)
    violation = np.empty(n, np.float32)
    return Work(
        total=np.zeros(n_features + 1), touched=np.empty(n_features + 1, np.int32),
        is_touched=np.zeros(n_features + 1, np.bool_), dual=np.zeros(n), sign=np.full(n, -1.0, np.float32),
        active=np.empty(n, np.int32), is_active=np.zeros(n, np.bool_), score=np.empty(n),
        found=np.empty(n, np.int32), violation=violation, violation_bits=violation.view(np.int32),
        random=np.empty(1, np.uint64),
    )  # fmt: skip


def _by_child(examples: Gathered, n_children: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The positive examples of each child, one child after the other, and where each one's begin."""
    example = np.repeat(np.arange(len(examples.weight), dtype=np.int32), np.diff(examples.positive_indptr))
    order = np.argsort(examples.positive, kind="stable")
    return example[order], np.searchsorted(examples.positive[order], np.arange(n_children + 1))


def _block(found: list[_Child], features: NDArray[np.int32], has_bias: bool) -> Trained:
    """The weights of all siblings, of those features that any of them has a weight of."""
    used = np.unique(np.concatenate([child.features for child in found]))
    weights = np.zeros((len(used) + has_bias, int(padded(len(found)))), np.float32)
    for number, child in enumerate(found):
        weights[np.searchsorted(used, child.features), number] = child.weights
        if has_bias:
            weights[-1, number] = child.bias
    return Trained(features[used], weights, 0.0)
