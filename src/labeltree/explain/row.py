"""A row whose labels are explained: its entries by name, and where they are in its text."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.features.features import Features
from labeltree.features.places import Places

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


class _Spread(NamedTuple):
    """How shares of entries become those of words."""

    entry: NDArray[np.int64]
    word: NDArray[np.int64]
    part: NDArray[np.float64]  # of the entry's share
    is_placed: NDArray[np.bool_]  # (n_entries,) whether an entry is anywhere in the text


class Row:
    """One prepared row."""

    def __init__(
        self, features: Features, columns: NDArray[np.int32], values: NDArray[np.float32], text: str | None
    ) -> None:
        self._features, self.columns, self.values, self.text = features, columns, values, text

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
        of_words = zip(places, self._of_words(shares).tolist(), strict=True)
        return [Word(self.text[start:end], start, end, share) for (start, end), share in of_words]

    def terms(self, shares: NDArray[np.float64]) -> list[Term]:
        """Words, each once, or features where there is no text; the largest share first."""
        if self.text is None:
            return [Term(feature.name, feature.share) for feature in self.features(shares)]
        total = dict[str, float]()
        for name, share in zip(self._word_names, self._of_words(shares).tolist(), strict=True):
            total[name] = total.get(name, 0.0) + share
        beside = float(shares[~self._spread.is_placed].sum())
        if beside:
            total[WHOLE_TEXT] = beside
        terms = [Term(name, share) for name, share in total.items() if share != 0.0]
        return sorted(terms, key=lambda term: -abs(term.share))

    def _of_words(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = self._spread
        n_words = len(self._places.start)
        return np.bincount(spread.word, shares[spread.entry] * spread.part, n_words).astype(np.float64)

    @functools.cached_property
    def _names(self) -> list[str]:
        return [self._features.feature_name(column) for column in self.columns.tolist()]

    @functools.cached_property
    def _places(self) -> Places:
        return self._features.places(self.text or "")

    @functools.cached_property
    def _word_names(self) -> list[str]:
        text, places = self.text or "", self._places
        words = [
            text[start:end] for start, end in zip(places.start.tolist(), places.end.tolist(), strict=True)
        ]
        return [word.lower() for word in words] if self._features.config.lowercase else words

    @functools.cached_property
    def _spread(self) -> _Spread:
        """A feature is shared out evenly among the places where it is, and there among its words."""
        _, _, column, first_word, n_words = self._places
        entry = np.minimum(np.searchsorted(self.columns, column), max(0, len(self.columns) - 1))
        is_kept = self.columns[entry] == column if len(self.columns) else np.zeros(len(column), np.bool_)
        entry, first_word, n_words = entry[is_kept], first_word[is_kept], n_words[is_kept]
        n_places = np.bincount(entry, minlength=len(self.columns))
        part = 1.0 / (n_places[entry] * n_words)
        within = np.arange(int(n_words.sum())) - np.repeat(np.cumsum(n_words) - n_words, n_words)
        word = np.repeat(first_word, n_words) + within
        return _Spread(np.repeat(entry, n_words), word, np.repeat(part, n_words), n_places > 0)
