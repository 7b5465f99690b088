"""Where in a text its words are, and in which of them each feature is: what explanations highlight."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.features.characters import kinds_for_words
from labeltree.kernels.text.words import NOT_IN_WORDS, UNSPACED

if TYPE_CHECKING:
    from labeltree.kernels.explain.deleting import Columns

# As kernels separate them: by white space, or, in ASCII, by all but letters and digits.
_TOKEN, _WORD = re.compile(r"[^ \t\n\v\f\r\0]+"), re.compile(r"[0-9A-Za-z]+")


class Occurrences(NamedTuple):
    """Features one after another, maybe several times: each in so many words from one on."""

    column: NDArray[np.int32]  # -1: none
    first_word: NDArray[np.int64]
    n_words: NDArray[np.int64]

    def shifted(self, first_column: int) -> Occurrences:
        """With the columns of a block among all."""
        column = np.where(self.column >= 0, self.column + np.int32(first_column), np.int32(-1))
        return self._replace(column=column)


class Places(NamedTuple):
    """The words of a text, by where they start and end, in characters; and its features."""

    start: NDArray[np.int64]  # (n_words,)
    end: NDArray[np.int64]
    column: NDArray[np.int32]  # (n_occurrences,)
    first_word: NDArray[np.int64]
    n_words: NDArray[np.int64]  # less than 0: of a pair that is none until those between its ends are deleted

    @property
    def are_apart(self) -> bool:
        """Whether there is something between any two words, so that others stay as they are without one."""
        return bool((self.start[1:] > self.end[:-1]).all())


class RowParts(NamedTuple):
    """What the row of a text is made of, so that it can be made anew without some of its words."""

    columns: NDArray[np.int32]  # that it may have, rising
    weighing: Columns
    number: NDArray[np.int64]  # (n_occurrences,) of the column of each place among these
    first_word: NDArray[np.int64]  # as in Places, and ...
    n_words: NDArray[np.int64]  # ... of pairs also those that are none yet


def joined_places(parts: Sequence[Occurrences]) -> Occurrences:
    """All of them that have a column."""
    columns, first, n = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    known = columns >= 0
    return Occurrences(columns[known], first[known], n[known])


def places_of_words(columns: NDArray[np.int32]) -> Occurrences:
    """A column for each word."""
    return Occurrences(columns, np.arange(len(columns)), np.ones(len(columns), np.int64))


def places_of_rows(columns: NDArray[np.int32], row_end: NDArray[np.int64]) -> Occurrences:
    """Some columns for each word, which end there."""
    first = np.repeat(np.arange(len(row_end)), np.diff(row_end, prepend=0))
    return Occurrences(columns, first, np.ones(len(first), np.int64))


def places_of_runs(columns: NDArray[np.int32], n_words: int, longest: int) -> Occurrences:
    """A column for each run of 2 to ``longest`` words, those that begin with the same word together."""
    n_runs = np.minimum(longest - 1, n_words - 1 - np.arange(n_words))
    first = np.repeat(np.arange(n_words), n_runs)
    before = np.cumsum(n_runs) - n_runs
    return Occurrences(columns, first, np.arange(len(first)) - before[first] + 2)


def word_spans(text: str, config: Config) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each word of a text starts and ends, in characters. Twin of ``kernels/text/words.py``."""
    is_cut_at_spaces = config.weighted_words or config.tokens != "words"
    if is_cut_at_spaces or text.isascii():
        found = (_TOKEN if is_cut_at_spaces else _WORD).finditer(text)
        spans = [match.span() for match in found]
        if config.weighted_words:
            spans = [(start, text.rindex(":", start, end)) for start, end in spans]
        both = np.array(spans, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    kinds = kinds_for_words()[codes]
    is_first = np.diff(kinds, prepend=NOT_IN_WORDS) != 0
    start = np.flatnonzero(is_first)
    end = np.append(start[1:], len(kinds))[: len(start)]
    kind = kinds[start]
    keep = kind != NOT_IN_WORDS
    return _with_pairs(start[keep], end[keep], kind[keep] == UNSPACED)


def _with_pairs(
    start: NDArray[np.int64], end: NDArray[np.int64], is_unspaced: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of scripts without spaces as every two neighbours, or one by itself."""
    n = np.where(is_unspaced, np.maximum(end - start - 1, 1), 1)
    run = np.repeat(np.arange(len(start)), n)
    within = np.arange(len(run)) - np.repeat(np.cumsum(n) - n, n)
    first = start[run] + within
    return first, np.where(is_unspaced[run], np.minimum(first + 2, end[run]), end[run])
