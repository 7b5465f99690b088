"""Batches of words -> token ids -> columns -> sparse rows of counts; and labels -> rows of label ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.rows import LabelRows, RowParts, SparseRows
from labeltree.features.splitting import Batch
from labeltree.features.strings import StringTable, is_utf8
from labeltree.kernels.text.counts import add_ngrams, count_ids, count_rows_of, number_tokens, unite_labels
from labeltree.kernels.text.packing import Pieces
from labeltree.kernels.text.rows import RowScratch, Weighing, make_rows
from labeltree.storage.space import IN_MEMORY, Space


class Tokens(NamedTuple):
    """Ids of words and buckets of n-grams, of some rows."""

    ids: NDArray[np.int32]
    weights: NDArray[np.float32]  # of the ids, or empty: each counts 1
    row_end: NDArray[np.int64]  # (n_rows,)


class Columns(NamedTuple):
    """Which words and buckets have a column."""

    words: StringTable  # in the order of their columns
    column_of_word: NDArray[np.int32]  # by word id: its column, or -1
    column_of_bucket: NDArray[np.int32]  # by bucket: its column, or -1; empty without n-grams
    n_columns: int


class TokenCounts:
    """How often each word and each bucket of n-grams occurs."""

    def __init__(self, config: Config) -> None:
        self.words = np.zeros(0, np.int64)
        self.buckets = np.zeros(config.ngram_buckets if config.word_ngrams > 1 else 0, np.int64)

    def add(self, ids: NDArray[np.int32], n_words: int) -> None:
        if n_words > len(self.words):
            longer = np.zeros(2 * n_words, np.int64)
            longer[: len(self.words)] = self.words
            self.words = longer
        count_ids(ids, self.words, self.buckets)


def batch_tokens(batch: Batch, word_ids: NDArray[np.int32], config: Config) -> Tokens:
    """The tokens of a batch, given the ids of its words."""
    if config.word_ngrams == 1:
        return Tokens(word_ids, batch.weights.copy(), batch.word_end)
    ids, row_end = np.empty(len(word_ids) * config.word_ngrams, np.int32), np.empty_like(batch.word_end)
    longest, n_buckets = config.word_ngrams, config.ngram_buckets
    n = add_ngrams(word_ids, batch.words.hashes, batch.word_end, longest, n_buckets, ids, row_end)
    ids.resize(n, refcheck=False)
    return Tokens(ids, batch.weights[:0], row_end)


def number_columns(words: StringTable, counts: TokenCounts, min_count: int) -> Columns:
    """Columns of what occurs often enough: words by falling count, then first seen, then buckets alike.

    So the rows of frequent words lie together in every array that has a row per column.
    """
    word_counts = counts.words[: len(words)]
    order = np.argsort(-word_counts, kind="stable")[: np.count_nonzero(word_counts >= min_count)]
    order = order[valid_strings(words, order)]
    column_of_word = np.full(len(words), -1, np.int32)
    column_of_word[order] = np.arange(len(order), dtype=np.int32)
    seen = np.flatnonzero(counts.buckets >= min_count)
    seen = seen[np.argsort(-counts.buckets[seen], kind="stable")]
    column_of_bucket = np.full(len(counts.buckets), -1, np.int32)
    column_of_bucket[seen] = np.arange(len(order), len(order) + len(seen), dtype=np.int32)
    return Columns(words.select(order), column_of_word, column_of_bucket, len(order) + len(seen))


def valid_strings(words: StringTable, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which strings are UTF-8. Readers see to it, other callers may not; a model file holds nothing else."""
    if is_utf8(*words.tensors()):
        return np.ones(len(order), bool)
    return np.array([is_utf8(*words.tensors(order[k : k + 1])) for k in range(len(order))], bool)


class RowCounts:
    """In how many rows ids are, of which there may be more with every chunk."""

    def __init__(self, n_ids: int) -> None:
        self.rows = np.zeros(n_ids, np.int64)
        self._last_row = np.full(n_ids, -1, np.int64)
        self._n_rows = 0

    def add(self, tokens: Tokens, n_ids: int) -> None:
        if n_ids > len(self.rows):
            more = 2 * n_ids - len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros(more, np.int64)])
            self._last_row = np.concatenate([self._last_row, np.full(more, -1, np.int64)])
        count_rows_of(tokens.ids, tokens.row_end, self._n_rows, self._last_row, self.rows)
        self._n_rows += len(tokens.row_end)


def numbered(
    tokens: Tokens, column_of_word: NDArray[np.int32], column_of_bucket: NDArray[np.int32]
) -> Tokens:
    """With columns as ids; without ``column_of_word`` ids of words are columns already."""
    if len(column_of_word) == 0 and len(column_of_bucket) == 0:
        return tokens
    columns = np.empty_like(tokens.ids)
    number_tokens(tokens.ids, column_of_word, column_of_bucket, columns)
    return tokens._replace(ids=columns)


def row_scratch(n_tokens: int) -> RowScratch:
    """For rows of at most so many tokens."""
    n_slots = 1 << max(1, 2 * n_tokens - 1).bit_length()
    return RowScratch(
        np.zeros(n_slots, np.int64),
        np.empty(n_tokens, np.int32),
        np.empty(n_tokens, np.float64),
        np.empty(n_tokens, np.float32),
        np.empty(n_tokens, np.int64),
    )


def weighed_rows(chunks: Iterable[Tokens], weighing: Weighing, space: Space = IN_MEMORY) -> SparseRows:
    """Rows of tokens that are columns, weighed."""
    parts = RowParts(space)
    scratch, indices, values = row_scratch(0), np.empty(0, np.int32), np.empty(0, np.float32)
    for ids, weights, row_end in chunks:
        longest = int(np.diff(row_end, prepend=0).max(initial=0))
        if longest > len(scratch.keys):
            scratch = row_scratch(longest)
        if len(ids) > len(indices):
            indices, values = np.empty(len(ids), np.int32), np.empty(len(ids), np.float32)
        indptr = np.zeros(len(row_end) + 1, np.int64)
        n = make_rows(ids, weights, row_end, weighing, scratch, indptr, indices, values)
        parts.add(np.diff(indptr), indices[:n].copy(), values[:n].copy())
    return parts.rows(len(weighing.idf))


def taken(chunks: list[Tokens]) -> Iterator[Tokens]:
    """Each of the chunks, which are let go on the way: they are as large as the rows made of them."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


MOST_IDF = 45.0  # 1 + ln(2**63): of no number of rows is it larger


def document_frequency(rows: SparseRows) -> NDArray[np.int64]:
    """(n_columns,) how many rows have each column."""
    frequency = np.zeros(rows.n_columns, np.int64)
    count_ids(rows.indices, frequency, np.zeros(0, np.int64))  # np.bincount would copy the indices as int64
    return frequency


def inverse_document_frequency(frequency: NDArray[np.int64], n_rows: int) -> NDArray[np.float32]:
    """1 + ln((1 + N) / (1 + df)) of each column: positive even for a word that is everywhere."""
    return (1.0 + np.log((1 + n_rows) / (1 + frequency))).astype(np.float32)


class LabelCollector:
    """Collects the label ids of rows, batch after batch."""

    def __init__(self) -> None:
        self._ids: list[NDArray[np.int32]] = []
        self._counts: list[NDArray[np.int64]] = []

    def add(self, ids: NDArray[np.int32], row_end: NDArray[np.int64]) -> None:
        """Ids of consecutive rows. Negative ids are unknown labels, different ones if they differ."""
        united, united_end = np.empty(len(ids), np.int32), np.empty(len(row_end), np.int64)
        keys = np.empty(len(ids), np.int64)
        n = unite_labels(ids, row_end, keys, united_end, united)
        self._ids.append(united[:n])
        self._counts.append(np.diff(united_end, prepend=0))

    def rows(self, n_labels: int) -> LabelRows:
        counts = np.concatenate([np.zeros(1, np.int64), *self._counts])
        return LabelRows(np.cumsum(counts), np.concatenate([np.empty(0, np.int32), *self._ids]), n_labels)


def find_labels(labels: StringTable, strangers: StringTable, batch: Batch) -> NDArray[np.int32]:
    """The ids of a batch's labels; unknown ones get negative ids of their own, kept in ``strangers``."""
    ids = labels.find(batch.labels, batch.n_labels)
    unknown = np.flatnonzero(ids < 0)
    if len(unknown):
        packed, first, length, hashes = batch.labels
        pieces = Pieces(packed, first[unknown], length[unknown], hashes[unknown])
        ids[unknown] = -1 - strangers.insert(pieces, len(unknown))
    return ids
