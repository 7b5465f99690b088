"""A forest as an expert: trees over rows (FastXML), whose leaves say which labels their rows have."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays, pointers, read_only, read_only_rows
from labeltree.errors import CorruptedModelError, show
from labeltree.experts.expert import Above, Saved, Trained
from labeltree.experts.explaining.contribution import Contribution
from labeltree.experts.job import ExpertNeeds
from labeltree.experts.listing import ListingExpert, fill_lists
from labeltree.kernels.forest.arrays import HALF_BITS, Tail, Trees
from labeltree.storage.tensors import take_tensor

if TYPE_CHECKING:
    from labeltree.experts.job import TrainingJob


SHARPNESS = 30.0  # of PfastreXML: how fast a label falls with the distance from its mean row


class ForestExpert(ListingExpert):
    """Trees over rows.

    Each leads a row to a leaf by the signs of linear scores. A label's votes are its part of what the rows of
    all these leaves count; with a tail they are ranked besides by how similar the label's mean row is.
    """

    kind = "forest"
    usual_share = 0.15
    must_pay = True

    def __init__(
        self, trees: Trees, n_labels: int, n_columns: int, tail: Tail | None = None, share: float = 0.0
    ) -> None:
        """``n_columns`` are those that the trees know, the first ones.

        ``share`` is that of the tail's mean rows.
        """
        self.n_labels, self.n_columns = n_labels, n_columns
        self.forest = Trees(*[read_only(array) for array in trees])
        from labeltree.kernels.forest import voting  # only for a model that has one

        self.tail, self.share, self._kernels = tail, share, voting
        self._table = voting.TREES_TABLE.table(**self.forest._asdict())
        if tail is not None:
            from labeltree.kernels.forest.tail import TAIL_TABLE

            self.tail = Tail(*[read_only(array) for array in tail])
            self._tail_table = TAIL_TABLE.table(**self.tail._asdict())
        self._of_thread = threading.local()

    def nonzero(self, arrays: Arrays) -> Above:
        given = self._table, self._work(), *read_only_rows(arrays)
        found = fill_lists(partial(self._kernels.vote_of_leaves, *given), len(arrays[0]) - 1)
        if self.tail is not None:
            self._rank(arrays, found)
        return found

    def _rank(self, arrays: Arrays, found: Above) -> None:
        """Votes become what they are ranked by."""
        from labeltree.kernels.forest.tail import rank_votes

        lengths, ids, votes = found
        given = self._tail_table, self._work(), *read_only_rows(arrays), self.share, SHARPNESS
        rank_votes(*given, read_only(pointers(lengths)), read_only(ids), votes)

    def explain(self, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
        from labeltree.experts.explaining.forest import explain_forest

        return explain_forest(self, arrays, labels, SHARPNESS)

    @functools.cached_property
    def parents(self) -> NDArray[np.int32]:
        """(n_nodes,) of each node; a root has -1."""
        first_child = self.forest.first_child
        inner = np.flatnonzero(first_child).astype(np.int32)
        parents = np.full(len(first_child), -1, np.int32)
        parents[first_child[inner]] = parents[first_child[inner] + 1] = inner
        return parents

    def leaves(self, arrays: Arrays) -> NDArray[np.int32]:
        """(n_rows, n_trees) the node of each tree that each row comes to."""
        out = np.empty((len(arrays[0]) - 1, len(self.forest.root)), np.int32)
        self._kernels.find_leaves(self._table, self._work(), *read_only_rows(arrays), out)
        return out

    def _work(self) -> NDArray[np.int64]:
        """The table of this thread's memory: a place for each column and label would take long to make."""
        try:
            return self._of_thread.table
        except AttributeError:
            arrays = dict(
                row=np.zeros(self.n_columns, np.float32),
                votes=np.zeros(self.n_labels, np.float64),
                keys=np.empty(self.n_labels, np.int64),
            )
            self._of_thread.arrays, self._of_thread.table = arrays, self._kernels.WORK_TABLE.table(**arrays)
            return self._of_thread.table

    @property
    def parameter_bytes(self) -> int:
        return sum(array.nbytes for array in (*self.forest, *(self.tail or ())))

    def statistics(self) -> dict[str, Any]:
        first_child, start = self.forest.first_child, self.forest.start
        is_leaf, lengths = first_child == 0, start[1:] - start[:-1]
        return {
            "n_trees_over_rows": len(self.forest.root),
            "n_nodes": len(first_child),
            "n_leaves": int(np.count_nonzero(is_leaf)),
            "n_weights": int(lengths[~is_leaf].sum()),
            "n_leaf_labels": int(lengths[is_leaf].sum()),
        }

    def tensors(self, number: int) -> dict[str, NDArray]:
        tail = {} if self.tail is None else self.tail._asdict()
        named = self.forest._asdict() | {f"tail.{name}": array for name, array in tail.items()}
        return {f"forest.{number}.{name}": array for name, array in named.items()}

    def metadata(self) -> dict[str, Any]:
        return {"n_columns": self.n_columns}

    @classmethod
    def from_saved(cls, saved: Saved) -> ForestExpert:
        n_columns = saved.metadata["n_columns"]
        if type(n_columns) is not int or not 0 <= n_columns <= saved.n_features:
            raise CorruptedModelError(
                f"forest.{saved.number}: n_columns is {show(n_columns)}, "
                f"but must be a number of at most {saved.n_features} columns"
            )
        trees, config = take_trees(saved, n_columns), saved.config
        is_ranked = config.forest_propensity or config.forest_tail > 0.0
        tail = take_tail(saved, n_columns) if is_ranked else None
        return cls(trees, saved.n_labels, n_columns, tail, config.forest_tail)

    @classmethod
    def needs(cls, job: TrainingJob, *, closely: bool) -> ExpertNeeds:
        if not job.config.forest:
            return ExpertNeeds()
        from labeltree.experts.forest_training import needs_of_forest

        return needs_of_forest(job, closely=closely)

    @classmethod
    def train(cls, job: TrainingJob) -> Sequence[Trained]:
        if not job.config.forest:
            return []
        from labeltree.experts.forest_training import train_forest  # and with it all that trains

        return train_forest(job)


def take_trees(saved: Saved, n_columns: int) -> Trees:
    """The tensors of a model file, checked: kernels take them on trust."""
    prefix = f"forest.{saved.number}"

    def take(name: str, dtype: Any, length: int | None = None) -> NDArray:
        return take_tensor(saved.tensors, f"{prefix}.{name}", dtype, (length,))

    root, first_child = take("root", np.int32), take("first_child", np.int32)
    n_nodes, amount = len(first_child), take("amount", np.int8)
    high = take("high", np.uint16)
    if len(high) not in (0, len(amount)):
        raise CorruptedModelError(f"{prefix}.high has {len(high)} numbers instead of {len(amount)} or none")
    trees = Trees(
        root, first_child, take("bias", np.float32, n_nodes), take("scale", np.float32, n_nodes),
        take("start", np.int64, n_nodes + 1), take("low", np.uint16, len(amount)), high, amount,
    )  # fmt: skip
    if not len(root):
        raise CorruptedModelError(f"{prefix}.root is empty")
    if not (np.all(np.isfinite(trees.bias)) and np.all((trees.scale >= 0) & np.isfinite(trees.scale))):
        raise CorruptedModelError(f"{prefix}.bias and .scale are not finite numbers")
    from labeltree.kernels.forest.voting import forest_fits

    if not forest_fits(Trees(*[read_only(array) for array in trees]), n_columns, saved.n_labels):
        raise CorruptedModelError(f"{prefix} is not a forest: nodes or lists point to what is not there")
    return trees


def take_tail(saved: Saved, n_columns: int) -> Tail:
    """The same of what votes are ranked by."""
    prefix, n_labels = f"forest.{saved.number}.tail", saved.n_labels

    def take(name: str, dtype: Any, length: int | None) -> NDArray:
        return take_tensor(saved.tensors, f"{prefix}.{name}", dtype, (length,))

    amount, high = take("amount", np.int8, None), take("high", np.uint16, None)
    tail = Tail(
        take("weight", np.float32, n_labels), take("scale", np.float32, n_labels),
        take("start", np.int64, n_labels + 1), take("low", np.uint16, len(amount)), high, amount,
    )  # fmt: skip
    ids = tail.low.astype(np.int64)
    if len(high) == len(amount):
        ids |= high.astype(np.int64) << HALF_BITS
    if (
        len(high) not in (0, len(amount))
        or not np.all((tail.weight > 0) & (tail.weight <= 1))
        or not np.all((tail.scale >= 0) & (tail.scale <= 1))
        or tail.start[0] != 0
        or tail.start[-1] != len(amount)
        or np.any(np.diff(tail.start) < 0)
        or ids.max(initial=-1) >= n_columns
    ):
        raise CorruptedModelError(f"{prefix} is not what votes can be ranked by: numbers out of bounds")
    return tail
