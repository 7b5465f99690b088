"""What every kind of nodes does: it is fitted, kept in the model file, and searched."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.parallel import Pool
from labeltree.storage.work_dir import WorkDir
from labeltree.tree import LabelTree, Shape

if TYPE_CHECKING:
    from labeltree.kernels.addresses import Layout
    from labeltree.kernels.search.factory import Kernels
    from labeltree.nodes.links import Link

MAX_LEAVES = 64  # labels below one parent, where there are many
Parameters: TypeAlias = Any  # a NamedTuple of arrays, of the kind's own; one is `bias` (n_nodes,)


class Facts(NamedTuple):
    """What defaults may depend on."""

    n_labels: int
    examples_per_label: float  # on average, of those that have any
    n_entries: int  # sparse features of all training rows


class FitProgress(NamedTuple):
    """Where a fit is."""

    fraction: float
    examples_per_second: float
    epoch: int = 0  # from 1; 0 where there are none, as each node is trained by itself
    epochs: int = 0
    loss: float = float("nan")  # mean per example of this epoch


class Parts(NamedTuple):
    """The parts of a fit, by number, that are kept in a work dir."""

    folder: WorkDir
    name: str  # of the fit
    # Sees to it that parts of a name are there, heaviest first, and tells when one is; None: here is all.
    elsewhere: Callable[[str, Sequence[int], Callable[[int], None]], None] | None = None

    def has_sound(self, number: int) -> bool:
        """Whether a part is there; one that was damaged is made again."""
        return self.folder.read_sound(self.part(number)) is not None

    def write(
        self, number: int, tensors: Mapping[str, NDArray[Any]], what: Mapping[str, Any] | None = None
    ) -> None:
        self.folder.write(self.part(number), tensors, what or {})

    def read(self, number: int) -> dict[str, NDArray[Any]]:
        return self.folder.read(self.part(number), verify=False)[0]

    def part(self, number: int) -> str:
        """Its name in the folder."""
        return f"{self.name}-{number:04}"


class FitInput(NamedTuple):
    """What the nodes of one tree are fitted to."""

    rows: TrainingRows
    tree: LabelTree
    config: Config  # resolved
    seed: int
    pool: Pool
    report: Callable[[FitProgress], None] = lambda done: None
    held_out: NDArray[np.int64] = np.empty(0, np.int64)  # rows that join last, or in a second fit
    parts: Parts | None = None  # where the work is kept, if the kind has parts


class Fit(NamedTuple):
    """Fitted nodes; and, where rows were held out, what was fitted without them."""

    parameters: Parameters
    without_held_out: Parameters = None


class SavedNodes(NamedTuple):
    """Where the nodes of a tree are in a model file, and what they must fit."""

    tensors: Mapping[str, NDArray[Any]]
    prefix: str  # of the tensors' names
    tree: LabelTree
    n_features: int
    link: str


class Needs(NamedTuple):
    """What one tree's nodes take."""

    kept_bytes: int
    training_bytes: int  # besides, while they are trained
    cpu_seconds: float  # NaN where nothing is known


class Search(NamedTuple):
    """Nodes as the kernels search them."""

    kernels: Callable[[Any], Kernels]  # of a link of kernels/links.py
    layout: Layout
    table: NDArray[np.int64]  # the addresses of the arrays, which must live as long as it
    fields: dict[str, Any]  # these, and the numbers beside them


def tree_fields(tree: LabelTree, n_features: int) -> dict[str, Any]:
    """What the tables of all kinds have."""
    return tree.arrays() | {"max_children": max(1, int(tree.n_children.max())), "n_features": n_features}


class NodeKind(ABC):
    """One kind of nodes."""

    name: str
    scores_alike: bool  # whether a search and the score of a single label give the same bits
    keeps_map: bool = False  # whether `calibrated` can be called
    # Parameters of each way to train it, small: who runs them all, with every link that it takes, has called
    # all its kernels.
    methods: tuple[dict[str, Any], ...] = ({},)

    def takes(self, link: Link) -> bool:
        """Whether it can be trained with a link."""
        return True

    @abstractmethod
    def resolve(self, config: Config, facts: Facts) -> Config:
        """The config with the values that suit the data, where it leaves them to the data by a 0."""

    @abstractmethod
    def fit(self, given: FitInput) -> Fit:
        """Train all nodes of a tree."""

    has_parts: bool = False  # whether a fit has parts that can be done anywhere

    def parts(self, given: FitInput) -> tuple[int, Callable[[int], None]]:
        """How many parts a fit has, and what does one and keeps it; it may be called by many threads."""
        raise NotImplementedError(f"the training of nodes {self.name!r} has no parts")

    def calibrated(self, parameters: Parameters, map: NDArray[np.float32]) -> Parameters:
        """With the map of :mod:`labeltree.experts.calibration`, which a fit with held-out rows leads to."""
        raise NotImplementedError(f"nodes {self.name!r} keep no map")

    def assumes_odds(self, config: Config) -> bool:
        """Whether log-odds are not what is fitted, but assumed for scores; and a map is kept."""
        return False

    def with_group_odds(self, parameters: Parameters, tree: LabelTree, summand: float) -> Parameters:
        """With so much added to the log-odds of inner nodes, where :meth:`assumes_odds`."""
        raise NotImplementedError(f"the log-odds of nodes {self.name!r} stay as they are")

    def is_calibrated(self, parameters: Parameters) -> bool:
        """Whether they have such a map."""
        return False

    @abstractmethod
    def needs(self, rows: TrainingRows, shape: Shape, config: Config, tree: LabelTree | None) -> Needs:
        """An estimate for a tree of this shape; a closer one where the tree is there."""

    @abstractmethod
    def take(self, saved: SavedNodes) -> Parameters:
        """The parameters that a model file has, checked: kernels take them on trust."""

    @abstractmethod
    def blank(
        self, tree: LabelTree, n_features: int, bias: NDArray[np.float32], config: Config
    ) -> Parameters:
        """Parameters that were not trained: a node's score is its bias, whatever the row."""

    @abstractmethod
    def search(self, tree: LabelTree, parameters: Parameters, n_features: int) -> Search:
        """What searches these nodes."""

    def label_probability(self, parameters: Parameters, log_probability: float) -> float:
        """Of a label whose path has this log-probability, in 64 bits: as a search, which rounds, tells it."""
        return math.exp(log_probability)

    def map_of_labels(self, parameters: Parameters) -> NDArray[np.float64]:
        """(3,) a, b and c of the log-odds a log p - b log(1 - p) + c that a path of probability p gives."""
        return np.array((1.0, 1.0, 0.0))

    # For explanations. A node's score is its bias and w·x, whatever a kind keeps of w.

    @abstractmethod
    def weights(
        self, search: Search, first: NDArray[np.int32], count: NDArray[np.int32], columns: NDArray[np.int32]
    ) -> NDArray[np.floating[Any]]:
        """(sum of count, len(columns)) the weights of ranges of siblings, one after another."""

    @abstractmethod
    def combined_weights(
        self, search: Search, first: int, coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(n_features,) the sum of the weights of siblings, from ``first`` on, times these coefficients."""

    @abstractmethod
    def likeness(self, search: Search, first: int, n: int, node: int) -> NDArray[np.float64]:
        """(n,) the cosines of the weights of n siblings with those of a node; 0 where one has none."""
