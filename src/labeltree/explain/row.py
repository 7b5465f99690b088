"""A row whose labels are explained: its entries by name, and where they are in its text."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import read_only
from labeltree.features.features import Features
from labeltree.features.places import Places, RowParts
from labeltree.kernels.explain.words import share_words

MOST_APART = 4  # words that may become neighbours; where more are deleted between them, an estimate errs

WHOLE_TEXT = "(the text as a whole)"


class Word(NamedTuple):
    """A word of the text where it stands, in characters, and its share."""

    text: str
    start: int
    end: int
    share: float


class Term(NamedTuple):
    """A word, wherever it stands in the text, or a feature; and its share."""

    name: str
    share: float


class Feature(NamedTuple):
    """An entry of the row: its name, its value and its share."""

    name: str
    value: float
    share: float


class Row:
    """One prepared row."""

    def __init__(
        self, features: Features, columns: NDArray[np.int32], values: NDArray[np.float32], text: str | None
    ) -> None:
        self._features, self.columns, self.values, self.text = features, read_only(columns), values, text

    def features(self, shares: NDArray[np.float64]) -> list[Feature]:
        """The entries with a share, the largest first, whatever its sign."""
        order = np.argsort(-np.abs(shares), kind="stable")
        return [
            Feature(self._names[place], float(self.values[place]), float(shares[place]))
            for place in order.tolist()
            if shares[place] != 0.0
        ]

    def words(self, shares: NDArray[np.float64]) -> list[Word]:
        """The words of the text in their order, with the shares of all features that are in them."""
        if self.text is None:
            return []
        places = zip(self._places.start.tolist(), self._places.end.tolist(), strict=True)
        of_words = zip(places, self.of_words(shares)[0], strict=True)
        return [Word(self.text[start:end], start, end, share) for (start, end), share in of_words]

    def terms(self, shares: NDArray[np.float64]) -> list[Term]:
        """Words, each once, or features where there is no text; the largest share first."""
        if self.text is None:
            return [Term(feature.name, feature.share) for feature in self.features(shares)]
        total = dict[str, float]()
        of_words, beside = self.of_words(shares)
        for name, share in zip(self._word_names, of_words, strict=True):
            total[name] = total.get(name, 0.0) + share
        if beside:
            total[WHOLE_TEXT] = beside
        terms = [Term(name, share) for name, share in total.items() if share != 0.0]
        return sorted(terms, key=lambda term: -abs(term.share))

    def of_words(self, shares: NDArray[np.float64]) -> tuple[list[float], float]:
        """The shares of the words, and of what belongs to none of them."""
        places = self._places
        of_words = np.empty(len(places.start))
        beside = share_words(self.columns, read_only(shares), *places[2:], of_words)
        return of_words.tolist(), beside

    @property
    def parts(self) -> RowParts | None:
        """What the row is made of, as :meth:`Features.row_parts`; None of a vector."""
        return None if self.text is None else self._features.row_parts(self._places)

    @functools.cached_property
    def _names(self) -> list[str]:
        return [self._features.feature_name(column) for column in self.columns.tolist()]

    @functools.cached_property
    def _places(self) -> Places:
        return self._features.places(self.text or "", MOST_APART)

    @functools.cached_property
    def _word_names(self) -> list[str]:
        return self.lower_words if self._features.config.lowercase else self._words

    @functools.cached_property
    def lower_words(self) -> list[str]:
        """The words of the text in their order."""
        return [word.lower() for word in self._words]

    @functools.cached_property
    def _words(self) -> list[str]:
        text, (starts, ends) = self.text or "", self._places[:2]
        return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
