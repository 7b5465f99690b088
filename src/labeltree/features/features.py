"""What features are: what callers and files give becomes sparse rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, take_rows
from labeltree.features.places import Places, RowParts
from labeltree.features.strings import StringTable
from labeltree.storage.space import IN_MEMORY, Space

if TYPE_CHECKING:
    from labeltree.features.short_text import ShortText


class Fitted(NamedTuple):
    """What is learned from training data, and its rows in it."""

    features: Features
    labels: StringTable
    rows: SparseRows  # prepared
    Y: LabelRows


class Features(ABC):
    """Maps what callers and files give to sparse rows of ``n_columns``."""

    input: ClassVar[str]  # what they take: their name in the table, the model file and `inspect`
    takes_texts: ClassVar[bool] = False  # whether a row is a text, and nothing else
    takes_pairs: ClassVar[bool] = False  # or has a vector beside it, for which no line or request has a place
    config: Config
    n_columns: int
    column_weight: NDArray[np.float32] = np.empty(0, np.float32)  # what `prepared` multiplies by, if any ...
    norm_of_rows: int  # ... and the code of how it scales a row

    @property
    def n_compared(self) -> int:
        """The first so many columns say how similar rows are."""
        return self.n_columns

    @property
    def n_sparse(self) -> int:
        """The first so many columns, of which a row has few."""
        return self.n_columns

    @classmethod
    def recognises(cls, X: Any) -> bool:
        """Whether what someone has in memory can only be meant for these."""
        return False

    def facts(self) -> dict[str, str]:
        """What the effect of parameters depends on, besides other parameters."""
        return {"input": self.input, "beside": "nothing"}

    @classmethod
    def facts_of(cls, X: Any) -> dict[str, str]:
        """So of what someone has in memory."""
        return {"input": cls.input, "beside": "nothing"}

    @classmethod
    @abstractmethod
    def content(cls, X: Any) -> Any:
        """What is in memory, as a format of this input hands over a file; it has no labels."""

    @classmethod
    @abstractmethod
    def fit(
        cls, content: Any, config: Config, bad_lines: BadLines | None = None, space: Space = IN_MEMORY
    ) -> Fitted:
        """Learn features and labels from the content of a file, or of :meth:`content`."""

    has_parts: ClassVar[bool] = False  # whether files can be read by themselves, by these two:

    @classmethod
    def read_part(
        cls, content: Any, config: Config, bad_lines: BadLines, space: Space
    ) -> dict[str, NDArray[Any]]:
        """What :meth:`fit_parts` needs of the content of a file."""
        raise NotImplementedError(f"features of {cls.input} are fitted to all files at once")

    @classmethod
    def fit_parts(cls, parts: Iterator[Mapping[str, NDArray[Any]]], config: Config, space: Space) -> Fitted:
        """As :meth:`fit` to all files, one after another."""
        raise NotImplementedError(f"features of {cls.input} are fitted to all files at once")

    @abstractmethod
    def given_rows(self, X: Any) -> SparseRows:
        """X, checked, as rows that :meth:`prepared` takes; such rows are what X may be too."""

    @abstractmethod
    def prepared(self, rows: SparseRows) -> SparseRows:
        """Given rows, ready for the experts."""

    def as_unseen(self, rows: SparseRows, held_out: NDArray[np.int64]) -> SparseRows:
        """The held-out ones of the training rows, as they would be had they not been read with the others."""
        return SparseRows(*take_rows(rows[:3], held_out), rows.n_columns)

    @abstractmethod
    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        """Given rows of a file and their labels (-1: not in the table), some at a time as they arrive."""

    def single(self, X: Any) -> SparseRows:
        """The given rows of a single text or row, which may be given by itself; there may be others."""
        return self.given_rows(X)

    def text_of(self, X: Any) -> str | None:
        """What a single text or row reads, if it is a text."""
        return None

    def places(self, text: str, farthest: int = 1) -> Places:
        """Where in a text its features are; and, up to ``farthest`` apart, words that become neighbours where
        those between them are deleted."""
        raise NotImplementedError(f"features {self.input!r} have no text")

    def row_parts(self, places: Places) -> RowParts | None:
        """What the row of a text with these places is made of; None where only reading what deleted words
        leave of the text can tell."""
        return None

    def read_single(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[Any]:
        """The rows of a file one by one, each as :meth:`single` takes it."""
        for rows, _ in self.read(source, labels, fmt, bad_lines):
            for row in range(rows.n_rows):
                yield SparseRows(*take_rows(rows[:3], np.array([row])), rows.n_columns)

    def feature_name(self, column: int) -> str:
        """What a column stands for, to be read: its number, where that is all there is."""
        return str(column)

    def short_text(self, text: str) -> tuple[ShortText, bytes] | None:
        """What a kernel needs to make the row of a text: where all arrays are, and its bytes.

        None where :meth:`given_rows` must do it.
        """
        return None

    @abstractmethod
    def tensors(self) -> dict[str, NDArray]:
        """Everything but the config, by name, for the model file."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> Features:
        """The features whose :meth:`tensors` these are, checked."""


def is_list(values: Any) -> bool:
    """Whether these are values one after another, and not a single string or number."""
    is_single = isinstance(values, (str, bytes)) or getattr(values, "ndim", 1) == 0
    return isinstance(values, Iterable) and not is_single
