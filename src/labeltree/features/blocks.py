"""Blocks of features that rows of text have beside their words, each with columns and a weight of its own.

:data:`BLOCKS` lists them in the order of their columns. A block learns which of its features are in enough
rows, and never holds more strings than words have: the rest of the data is ids.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import pointers, read_only
from labeltree.errors import CorruptedModelError
from labeltree.features.counting import Columns, RowCounts, Tokens, valid_strings
from labeltree.features.places import Occurrences, places_of_rows
from labeltree.features.splitting import Batch
from labeltree.features.strings import StringTable
from labeltree.kernels.text.blocks import (
    PAIR_BYTES,
    append_tokens,
    cut_ngrams,
    expand_words,
    gather_pairs,
    gather_unlisted,
    mark_pairs,
)
from labeltree.kernels.text.packing import Pieces
from labeltree.storage.tensors import take_tensor

WORDS_AT_ONCE = 1 << 16
LISTED_WORDS = 1 << 16  # so many of the most frequent words have their n-grams listed, for a few milliseconds
BITS_PER_TOKEN = 8  # of the marks by which pairs that occur once are told: one in eight is taken for another

_NO_COLUMNS: NDArray[np.int32] = np.empty(0, np.int32)
_NO_MARKS: NDArray[np.uint64] = np.empty(0, np.uint64)
_NO_WEIGHTS: NDArray[np.float32] = np.empty(0, np.float32)


class Training(NamedTuple):
    """What blocks learn from."""

    words: StringTable  # all of them
    columns: Columns  # of those that are frequent enough
    chunks: Sequence[Tokens]


class FittedBlock(NamedTuple):
    """A block with what training still needs of it."""

    block: FeatureBlock
    tokens_of: Callable[[Tokens], Tokens]  # its tokens of a chunk of the training data
    n_rows: NDArray[np.int64]  # by feature: how many rows have it


class FeatureBlock(ABC):
    """Features of one kind, numbered from 0 by falling number of rows."""

    weight: ClassVar[str]  # the parameter that holds it; 0 leaves the block out
    table: StringTable

    @classmethod
    @abstractmethod
    def fit(cls, training: Training, config: Config) -> FittedBlock:
        """The block of the features that are in enough rows."""

    @abstractmethod
    def tokens(self, batch: Batch, word_ids: NDArray[np.int32]) -> Tokens:
        """Its features in the rows of a batch; -1 are unknown."""

    @abstractmethod
    def places(self, batch: Batch, word_ids: NDArray[np.int32]) -> Occurrences:
        """Which words of a single row each of its features is in."""

    @abstractmethod
    def name(self, feature: int, words: StringTable) -> str:
        """What a feature stands for, to be read."""

    @abstractmethod
    def tensors(self) -> dict[str, NDArray]:
        """For the model file."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config, words: StringTable) -> FeatureBlock:
        """The block whose :meth:`tensors` these are, checked."""


class NgramBlock(FeatureBlock):
    """Runs of characters of words; a space before and after a word belongs to it."""

    weight = "char_weight"

    def __init__(self, table: StringTable, length: int, words: StringTable) -> None:
        """``words`` are those with a column."""
        self.table = table
        self.length = length
        self._words = words

    @classmethod
    def fit(cls, training: Training, config: Config) -> FittedBlock:
        table, parts, part_end = _ngrams_of_words(training.words, config.char_ngrams)
        n_parts = np.diff(part_end, prepend=0)

        def expanded(chunk: Tokens) -> Tokens:
            ids = np.empty(int(n_parts[chunk.ids[chunk.ids >= 0]].sum()), np.int32)
            row_end = np.empty_like(chunk.row_end)
            none, no_end = read_only(_NO_COLUMNS), np.zeros(1, np.int64)
            expand_words(chunk.ids, chunk.row_end, parts, part_end, none, no_end, ids, row_end)
            return Tokens(ids, _NO_WEIGHTS, row_end)

        counts = RowCounts(len(table))
        for chunk in training.chunks:
            counts.add(expanded(chunk), len(table))
        order = _frequent(counts.rows[: len(table)], config.min_rows)
        order = order[valid_strings(table, order)]
        column = np.full(len(table), -1, np.int32)
        column[order] = np.arange(len(order), dtype=np.int32)
        parts[:] = column[parts]
        block = cls(table.select(order), config.char_ngrams, training.columns.words)
        return FittedBlock(block, expanded, counts.rows[order])

    def tokens(self, batch: Batch, word_ids: NDArray[np.int32]) -> Tokens:
        packed, first, length, hashes = batch.words
        parts, part_end = self.listed
        others = Pieces(packed, np.empty(batch.n_words, np.int64), np.empty(batch.n_words, np.int64), hashes)
        n_others = gather_unlisted(word_ids, first, length, len(part_end), others.first, others.length)
        pieces, other_end = _cut(others, n_others, self.length)
        found = self.table.find(pieces, int(other_end[-1]))
        ids = np.empty(int(length[: batch.n_words].sum()) + batch.n_words, np.int32)  # no word has more
        row_end = np.empty_like(batch.word_end)
        n = expand_words(word_ids, batch.word_end, parts, part_end, found, other_end, ids, row_end)
        return Tokens(ids[:n], _NO_WEIGHTS, row_end)

    def places(self, batch: Batch, word_ids: NDArray[np.int32]) -> Occurrences:
        """As if each word were a row."""
        found = self.tokens(batch._replace(word_end=np.arange(1, batch.n_words + 1)), word_ids)
        return places_of_rows(found.ids, found.row_end)

    @functools.cached_property
    def listed(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Known n-grams of the most frequent words, and where each word's end: these need not be cut."""
        words = self._words.pieces(np.arange(min(len(self._words), LISTED_WORDS)))
        pieces, end = _cut(words, len(words.length), self.length)
        found = self.table.find(pieces, int(end[-1]))
        return found[found >= 0], pointers(found >= 0)[end[1:]]

    def name(self, feature: int, words: StringTable) -> str:
        """``ing`` where it ends a word is ``*ing``."""
        text = self.table[feature]
        return "*" * (text[:1] != " ") + text.strip(" ") + "*" * (text[-1:] != " ")

    def tensors(self) -> dict[str, NDArray]:
        data, offsets = self.table.tensors()
        return {"features.ngrams": data, "features.ngram_offsets": offsets}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config, words: StringTable) -> FeatureBlock:
        data = take_tensor(tensors, "features.ngrams", np.uint8)
        offsets = take_tensor(tensors, "features.ngram_offsets", np.int64)
        return cls(StringTable.from_tensors(data, offsets, "features.ngrams"), config.char_ngrams, words)


class PairBlock(FeatureBlock):
    """Two neighbouring words that both have a column. Its strings are the two columns."""

    weight = "pair_weight"

    def __init__(self, table: StringTable) -> None:
        self.table = table

    @classmethod
    def fit(cls, training: Training, config: Config) -> FittedBlock:
        column_of_word = read_only(training.columns.column_of_word)
        twice = _pairs_seen_twice(training) if config.min_rows > 1 else _NO_MARKS
        table, counts = StringTable(), RowCounts(0)
        for chunk in training.chunks:
            pieces, row_end = _pairs(chunk.ids, chunk.row_end, column_of_word, twice)
            ids = table.insert(pieces, len(pieces.packed))
            counts.add(Tokens(ids, _NO_WEIGHTS, row_end), len(table))
        order = _frequent(counts.rows[: len(table)], config.min_rows)
        block = cls(table.select(order))
        return FittedBlock(
            block, lambda chunk: block._find(chunk.ids, chunk.row_end, column_of_word), counts.rows[order]
        )

    def tokens(self, batch: Batch, word_ids: NDArray[np.int32]) -> Tokens:
        return self._find(word_ids, batch.word_end, read_only(_NO_COLUMNS))

    def places(self, batch: Batch, word_ids: NDArray[np.int32]) -> Occurrences:
        first = np.flatnonzero((word_ids[:-1] >= 0) & (word_ids[1:] >= 0))
        return Occurrences(self.tokens(batch, word_ids).ids, first, np.full(len(first), 2))

    def _find(
        self, ids: NDArray[np.int32], row_end: NDArray[np.int64], column_of_word: NDArray[np.int32]
    ) -> Tokens:
        pieces, pair_end = _pairs(ids, row_end, column_of_word, _NO_MARKS)
        return Tokens(self.table.find(pieces, len(pieces.packed)), _NO_WEIGHTS, pair_end)

    def name(self, feature: int, words: StringTable) -> str:
        data, _ = self.table.tensors(np.array([feature]))
        return " ".join(words[int(column)] for column in data.view("<i4"))

    def tensors(self) -> dict[str, NDArray]:
        return {"features.pairs": self.table.tensors()[0].view("<i4")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config, words: StringTable) -> FeatureBlock:
        columns = take_tensor(tensors, "features.pairs", np.int32)
        if len(columns) % 2 or not np.all((columns >= 0) & (columns < len(words))):
            raise CorruptedModelError(f"features.pairs is not two of {len(words)} words for each pair")
        offsets = np.arange(0, 4 * len(columns) + 1, PAIR_BYTES, dtype=np.int64)
        data = np.ascontiguousarray(columns, "<i4").view(np.uint8)
        return cls(StringTable.from_tensors(data, offsets, "features.pairs", is_text=False))


BLOCKS: tuple[type[FeatureBlock], ...] = (NgramBlock, PairBlock)


def wanted_blocks(config: Config) -> list[type[FeatureBlock]]:
    """Words that carry weights have no others: those of n-grams and pairs would be unknown."""
    return [] if config.weighted_words else [kind for kind in BLOCKS if getattr(config, kind.weight) > 0]


def joined(tokens: Tokens, parts: Sequence[tuple[int, Tokens]]) -> Tokens:
    """The tokens of some rows with those of blocks, each with its first column."""
    for first_column, part in parts:
        ids, row_end = np.empty(len(tokens.ids) + len(part.ids), np.int32), np.empty_like(part.row_end)
        n = append_tokens(tokens.ids, tokens.row_end, part.ids, part.row_end, first_column, ids, row_end)
        tokens = Tokens(ids[:n], tokens.weights, row_end)
    return tokens


def _frequent(rows: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Ids that are in enough rows, by falling number of them, then first seen."""
    order = np.argsort(-rows, kind="stable")
    return order[: np.count_nonzero(rows >= least)]


def _ngrams_of_words(
    words: StringTable, length: int
) -> tuple[StringTable, NDArray[np.int32], NDArray[np.int64]]:
    """A table of all n-grams, those of each word one after another, and where each word's end."""
    table, parts, ends = StringTable(), list[NDArray[np.int32]](), list[NDArray[np.int64]]()
    for pieces, n in _slices(words):
        ngrams, end = _cut(pieces, n, length)
        parts.append(table.insert(ngrams, int(end[-1])))
        ends.append(np.diff(end))
    joined_parts = np.concatenate([np.empty(0, np.int32), *parts])
    return table, joined_parts, pointers(np.concatenate([np.empty(0, np.int64), *ends]))[1:]


def _slices(words: StringTable) -> Iterator[tuple[Pieces, int]]:
    """All strings of a table as pieces, some at a time."""
    for start in range(0, len(words), WORDS_AT_ONCE):
        pieces = words.pieces(np.arange(start, min(start + WORDS_AT_ONCE, len(words))))
        yield pieces, len(pieces.length)


def _cut(words: Pieces, n_words: int, length: int) -> tuple[Pieces, NDArray[np.int64]]:
    """The n-grams of words, and where those of each word begin and, last, where they end."""
    pieces = ngram_scratch(int(words.length[:n_words].sum()), n_words, length)
    end = np.zeros(n_words + 1, np.int64)
    cut_ngrams(words, n_words, length, pieces, end[1:])
    return pieces, end


def ngram_scratch(n_bytes: int, n_words: int, length: int) -> Pieces:
    """Memory for the n-grams of words of so many bytes in total."""
    # A word has fewer n-grams than bytes and spaces, and no byte is in more than ``length`` of them. Memory
    # that is not written is never taken from the machine.
    most = n_bytes + n_words
    packed = np.empty(length * (n_bytes + 2 * n_words) // 8 + most + 1, np.uint64)
    return Pieces(packed, np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.uint64))


def _pairs(
    ids: NDArray[np.int32],
    row_end: NDArray[np.int64],
    column_of_word: NDArray[np.int32],
    twice: NDArray[np.uint64],
) -> tuple[Pieces, NDArray[np.int64]]:
    keys, hashes = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    pair_end = np.empty_like(row_end)
    n = gather_pairs(ids, row_end, column_of_word, read_only(twice), keys, hashes, pair_end)
    pieces = Pieces(keys[:n], np.arange(n), np.full(n, PAIR_BYTES, np.int64), hashes[:n])
    return pieces, pair_end


def _pairs_seen_twice(training: Training) -> NDArray[np.uint64]:
    """Marks of pairs that occur more than once, and of some others."""
    n_tokens = sum(len(chunk.ids) for chunk in training.chunks)
    once = np.zeros(1 << max(1, n_tokens * BITS_PER_TOKEN // 64).bit_length(), np.uint64)
    twice = np.zeros_like(once)
    column_of_word = read_only(training.columns.column_of_word)
    for chunk in training.chunks:
        pieces, _ = _pairs(chunk.ids, chunk.row_end, column_of_word, _NO_MARKS)
        mark_pairs(pieces.packed, once, twice)
    return twice
