"""What every way to build a tree does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.nodes.kind import Parts
from labeltree.parallel import Pool
from labeltree.tree import LabelTree, Shape
from labeltree.trees import BUILDERS


def _tell_nobody(fraction: float) -> None:
    pass


class TreeInput(NamedTuple):
    """What a tree may be built from; most builders need little of it."""

    rows: TrainingRows
    label_names: Sequence[str]
    config: Config  # resolved (NodeKind.resolve): its arity is known
    pool: Pool
    report: Callable[[float], None] = _tell_nobody  # the part that is done, for builders that take long
    parts: Parts | None = None  # where what it is prepared from may be made


class TreeBuilder(ABC):
    """A way to put labels into a tree."""

    def prepare(self, given: TreeInput) -> Any:
        """What the trees of an ensemble share, whatever their arity; most share nothing."""
        return None

    @abstractmethod
    def build(self, given: TreeInput, seed: int, prepared: Any) -> LabelTree:
        """The tree; ``prepared`` is what :meth:`prepare` made."""

    def warm_large(self, given: TreeInput) -> None:
        """Call, on small data, the kernels that :meth:`build` calls on large data only; most have none."""
        return None

    def working_bytes(self, rows: TrainingRows, config: Config) -> int:
        """An estimate of the memory that it needs besides the rows."""
        return 0

    @abstractmethod
    def guess_shape(self, config: Config, n_labels: int) -> Shape:
        """How large the tree will be, before it is built."""


def builder_of(tree: str) -> TreeBuilder:
    """What builds the tree that a config names: one of the table, or the reader of a tree file."""
    if tree in BUILDERS:
        return BUILDERS[tree]
    from labeltree.trees.file import TreeFile

    return TreeFile()


def build_tree(given: TreeInput, seed: int) -> LabelTree:
    """One tree as the config says."""
    builder = builder_of(given.config.tree)
    return builder.build(given, seed, builder.prepare(given))
