"""What an expert is: three questions that it answers about rows, and what a model file keeps of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import Arrays
from labeltree.experts.explaining.contribution import Contribution, PathWeights
from labeltree.experts.job import ExpertNeeds
from labeltree.query import Query, query_all

if TYPE_CHECKING:
    from labeltree.config import Config
    from labeltree.experts.job import TrainingJob
    from labeltree.features.text import ShortText
    from labeltree.tree import LabelTree

Labels = tuple[NDArray[np.int64], NDArray[np.int32]]  # indptr, label ids
# Label ids, probabilities, both (n_rows, k); and (n_rows,) whether they are proven to be the best ones.
Found = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]
Similar = tuple[NDArray[np.int32], NDArray[np.float32]]  # numbers of training rows, similarities; (n_rows, n)
# Labels of each row (n_rows,); their ids, sorted within rows, and probabilities.
Above = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


def empty_found(n_rows: int, k: int) -> Found:
    """To be filled."""
    return np.empty((n_rows, k), np.int32), np.empty((n_rows, k), np.float32), np.empty(n_rows, np.bool_)


class Saved(NamedTuple):
    """What a model file says of an expert, and of the model that it is a part of."""

    tensors: Mapping[str, NDArray]  # those of the whole file
    number: int  # a part of its tensors' names
    metadata: Mapping[str, Any]  # its own
    config: Config  # with what was chosen for it
    n_features: int
    n_labels: int


class Expert(ABC):
    """Says how probable labels are for rows. Its methods may be called from many threads at once."""

    kind: ClassVar[str]  # its name in the table
    n_labels: int
    scores_alike: bool  # whether a search and `score` give a label the same bits
    lists_all: ClassVar[bool] = False  # few labels are not 0 for a row, and `nonzero` lists them
    is_calibrated: bool = False  # whether its probabilities, by themselves, can be taken at their word
    # Of the evidence of its group where nothing is known; None: what others leave.
    usual_share: float | None = None
    must_pay: ClassVar[bool] = (
        False  # whether it has none where held-out rows, if there are any, do not gain by it
    )
    searched_with: Hashable = None  # where it is equal, label trees are searched by one kernel; None: by none
    trees: Sequence[LabelTree] = ()  # that people may want to see and to write to a file
    chosen: Mapping[str, Any] = {}  # by the data for it: values of parameters that the config leaves at 0

    @property
    def plural(self) -> str:
        """What several are called."""
        return f"{self.kind}s"

    @property
    def title(self) -> str:
        """What tells it from experts that the data chose other values for."""
        return self.kind

    @abstractmethod
    def topk(
        self, arrays: Arrays, query: Query, out_ids: NDArray[np.int32], out_probabilities: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Fill the k best labels of each row, best first; ties go to the lower label id.

        Labels of probability 0 come last. A beam may find fewer than k labels; -1 and 0 are in the places
        that are left, and in those of labels below the threshold. Returns (n_rows,) whether the labels are
        proven to be the best ones: always, unless the query lets a search end earlier (a beam, a budget).
        """

    @abstractmethod
    def above(self, arrays: Arrays, query: Query) -> Above:
        """The labels of each row that are at least as probable as the threshold."""

    @abstractmethod
    def score(self, arrays: Arrays, labels: Labels, query: Query) -> NDArray[np.float32]:
        """The probability of each given label of each row; 0 for the label -1."""

    def restricted(self, allowed: NDArray[np.bool_]) -> Expert:
        """The same expert, as if there were no other labels than the allowed ones: those it never gives.

        ``score`` may say anything of the others. Unless an expert knows better, all allowed labels are
        scored.
        """
        from labeltree.experts.restricted import Restricted

        return Restricted(self, allowed)

    def nonzero(self, arrays: Arrays) -> Above:
        """All labels of each row whose probability is not 0, where the expert lists them."""
        raise NotImplementedError(f"experts of kind {self.kind!r} are searched")

    @property
    def variants(self) -> Sequence[Expert]:
        """Experts that its training gives as well, itself among them, of which held-out rows choose; none
        where there is nothing to choose."""
        return ()

    def score_variants(self, arrays: Arrays, labels: Labels) -> NDArray[np.float32]:
        """(n_variants, n) as :meth:`score` for each of the variants, at once."""
        raise NotImplementedError(f"experts of kind {self.kind!r} have no variants")

    def similar_rows(self, arrays: Arrays, n: int) -> Similar | None:
        """The n training rows that are the most similar to each row, and how similar; -1 and 0 if fewer.

        None where the expert does not know.
        """
        return None

    def topk_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], n: int, norm: int, query: Query
    ) -> Found | None:
        """Quickly as :meth:`topk` for the first n entries of a row, after their normalisation (in place).

        None if there is something wrong with them, or no quick way.
        """
        return None

    def topk_text(self, buffer: ShortText, text: bytes, query: Query) -> Found | None:
        """Quickly as :meth:`topk` for a short text; None if there is something wrong with it, or no way."""
        return None

    def explain(self, arrays: Arrays, labels: Sequence[int]) -> list[Contribution]:
        """What it says of the labels for a single row, and how much of that is due to each entry.

        Where an expert does not know, nothing in particular is due to any.
        """
        ids, nothing = np.array(labels, np.int32), (np.zeros(2, np.int64), arrays[1][:0], arrays[2][:0])
        asked, query = (np.array([0, len(ids)]), ids), query_all()
        both = zip(self.score(arrays, asked, query), self.score(nothing, asked, query), strict=True)
        n_entries = int(arrays[0][1] - arrays[0][0])
        return [
            Contribution(float(own), float(empty), np.zeros(n_entries), float(own) - float(empty))
            for own, empty in both
        ]

    def path_weights(self, label: int, columns: NDArray[np.int32]) -> PathWeights | None:
        """What nodes weigh these columns by, where the product of their logistics is all that it says."""
        return None

    def pulls(self, label: int, place: int | None = None) -> NDArray[np.float64] | None:
        """(n_features,) how the log of its probability rises with each feature, from the empty row.

        Over its path, or at the node at this place of it. None where an expert has nothing of the kind.
        """
        return None

    def nearest_labels(self, label: int) -> list[tuple[int, float]]:
        """Labels that it keeps near a label, and how alike they are, at most 1; the most alike first."""
        return []

    @property
    @abstractmethod
    def parameter_bytes(self) -> int:
        """Its size in memory."""

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """Numbers that ``inspect`` shows, by name."""

    @abstractmethod
    def tensors(self, number: int) -> dict[str, NDArray]:
        """Its arrays for the model file; names begin with a word of its own and the number."""

    def metadata(self) -> dict[str, Any]:
        """What :meth:`from_saved` must know besides, as JSON has it; not ``kind``, ``number``, ``config``."""
        return {}

    @classmethod
    @abstractmethod
    def from_saved(cls, saved: Saved) -> Expert:
        """The expert whose :meth:`tensors` and :meth:`metadata` these are, checked."""

    @classmethod
    def needs(cls, job: TrainingJob, *, closely: bool) -> ExpertNeeds:
        """What :meth:`train` and its result will take: a guess, or closely, after doing a part of it."""
        return ExpertNeeds()

    @classmethod
    @abstractmethod
    def train(cls, job: TrainingJob) -> Sequence[Trained]:
        """Experts of this kind for the data; none where the config does not ask for any."""


class Trained(NamedTuple):
    """An expert; and its like, trained without the held-out rows, which can be judged by them.

    An expert that takes long to train may begin with a part of it, to be judged by. ``more`` is told whether
    held-out rows gain by that, and gives more of it, in the end the whole; or nothing.
    """

    expert: Expert
    without_held_out: Expert | None = None
    more: Callable[[bool], Trained | None] | None = None
