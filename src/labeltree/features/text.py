"""Text features: words, word n-grams and blocks beside them, chosen and weighted by the training data."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import find_format, plain_format
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.memory import text_blocks, texts_to_block
from labeltree.data.opening import Source
from labeltree.data.rows import Block, LabelRows, SparseRows, keep_entries, pointers, read_only, take_rows
from labeltree.errors import CorruptedModelError, DataError, show
from labeltree.features.blocks import (
    FeatureBlock,
    FittedBlock,
    Training,
    joined,
    wanted_blocks,
)
from labeltree.features.counting import (
    MOST_IDF,
    Columns,
    LabelCollector,
    RowCounts,
    TokenCounts,
    Tokens,
    batch_tokens,
    document_frequency,
    find_labels,
    inverse_document_frequency,
    number_columns,
    numbered,
    taken,
    weighed_rows,
)
from labeltree.features.features import Features, Fitted, is_list
from labeltree.features.places import (
    Places,
    RowParts,
    joined_places,
    places_of_runs,
    places_of_words,
    word_spans,
)
from labeltree.features.short_text import SHORT_TEXT, ShortText
from labeltree.features.splitting import Batch, split_block, texts_of
from labeltree.features.strings import StringTable
from labeltree.features.text_parts import TextPart, join_parts, part_of_tensors, read_part
from labeltree.features.vectors import NORM_CODES
from labeltree.kernels.explain.deleting import Columns as ColumnsOfText
from labeltree.kernels.explain.deleting import distinct_columns
from labeltree.kernels.search.rows import ready_text
from labeltree.kernels.text.counts import FIRST_BUCKET
from labeltree.kernels.text.places import list_places
from labeltree.kernels.text.rows import NORM_NONE, TF_BINARY, TF_COUNT, TF_LOG, Weighing, weigh_rows
from labeltree.storage.space import IN_MEMORY, Space
from labeltree.storage.tensors import take_tensor

TF_CODES = {"count": TF_COUNT, "log": TF_LOG, "binary": TF_BINARY}

_NO_COLUMNS: NDArray[np.int32] = np.empty(0, np.int32)


class TextFeatures(Features):
    """Maps text to sparse rows.

    Columns: the words by falling frequency, then the buckets of n-grams, then those of each block.
    """

    input = "text"
    takes_texts = True
    has_parts = True
    norm_of_rows = NORM_NONE  # a prepared row stays as it is

    def __init__(
        self,
        config: Config,
        words: StringTable,
        column_of_bucket: NDArray[np.int32],
        idf: NDArray[np.float32],
        blocks: Sequence[FeatureBlock] = (),
    ) -> None:
        self.config = config
        self.words = words
        self.blocks = tuple(blocks)
        # (n_buckets,) a bucket's column, or -1; empty without n-grams
        self.column_of_bucket = read_only(column_of_bucket)
        self.idf = read_only(idf)  # (n_columns,)
        self.n_columns = len(idf)
        # (1 + n_blocks,) of the words and of each block
        ends = np.cumsum([-len(block.table) for block in reversed(self.blocks)], dtype=np.int64)[::-1]
        self.block_end = read_only(np.append(ends, 0) + self.n_columns)
        weights = [1.0, *(getattr(config, block.weight) for block in self.blocks)]
        self.block_weight = read_only(np.array(weights, np.float32))
        self.weighing = Weighing(
            self.idf,
            TF_COUNT if config.weighted_words else TF_CODES[config.tf],
            NORM_CODES[config.row_norm],
            self.block_end,
            self.block_weight,
            read_only(np.array([0, *(config.strongest for _ in self.blocks)], np.int64)),
        )
        self._of_thread = threading.local()

    @property
    def n_compared(self) -> int:
        """Blocks beside the words would make rows no more similar, but lists much longer."""
        return int(self.block_end[0])

    @classmethod
    def content(cls, X: Any) -> Iterator[Block]:
        return text_blocks(X)

    @classmethod
    def fit(
        cls,
        content: Iterable[Block],
        config: Config,
        bad_lines: BadLines | None = None,
        space: Space = IN_MEMORY,
    ) -> Fitted:
        """Learn words, weights and labels from blocks, reading them once."""
        return cls.fit_part(read_part(content, config, bad_lines, space), config, space)

    @classmethod
    def read_part(
        cls, content: Iterable[Block], config: Config, bad_lines: BadLines, space: Space
    ) -> dict[str, NDArray[Any]]:
        return read_part(content, config, bad_lines, space).tensors(space)

    @classmethod
    def fit_parts(cls, parts: Iterator[Mapping[str, NDArray[Any]]], config: Config, space: Space) -> Fitted:
        return cls.fit_part(join_parts(map(part_of_tensors, parts), space), config, space)

    @classmethod
    def fit_part(cls, part: TextPart, config: Config, space: Space = IN_MEMORY) -> Fitted:
        """So from what was read; the tokens are let go."""
        words, labels, chunks, Y = part
        counts = TokenCounts(config)
        for chunk in chunks:
            counts.add(chunk.ids, len(words))
        columns = number_columns(words, counts, config.min_count)
        training = Training(words, columns, chunks)
        fits = [kind.fit(training, config) for kind in wanted_blocks(config)]
        del words, counts, training, part
        n_rows = sum(len(chunk.row_end) for chunk in chunks)
        frequency = np.concatenate([_rows_of_columns(chunks, columns), *(fit.n_rows for fit in fits)])
        idf = _idf(config, frequency, n_rows)
        features = cls(config, columns.words, columns.column_of_bucket, idf, [fit.block for fit in fits])
        rows = weighed_rows(_training_tokens(chunks, columns, fits), features.weighing, space)
        return Fitted(features, labels, rows, Y)

    def given_rows(self, X: Any) -> SparseRows:
        if type(X) is SparseRows or is_sparse(X):
            return sparse_rows(X, self.n_columns)
        if not is_list(X):
            raise DataError(f"X must be a list of texts, but is {show(X)}; wrap a single text in a list")
        return self.transform_texts(X if type(X) is list else list(X))

    def prepared(self, rows: SparseRows) -> SparseRows:
        return rows

    def as_unseen(self, rows: SparseRows, held_out: NDArray[np.int64]) -> SparseRows:
        """Without the columns that too few other rows have, and with the others' IDF.

        A word is known if ``min_count`` other rows have it, however often it is in them. Where rows keep the
        strongest of a block, what they have lost does not come back.
        """
        part = super().as_unseen(rows, held_out)
        frequency = self._frequency(rows) - document_frequency(part)
        lengths = np.diff(self.block_end, prepend=0)
        least = np.repeat([self.config.min_count, *(self.config.min_rows for _ in self.blocks)], lengths)
        part = keep_entries(part, (frequency >= least)[part.indices])
        # The weights of blocks are in the rows already. Norms are made anew, so what rows were divided by
        # before does not matter.
        change = _idf(self.config, frequency, rows.n_rows - part.n_rows) / self.idf
        change = read_only(change / np.repeat(self.block_weight, lengths))
        _, _, norm, ends, weights, _ = self.weighing
        weigh_rows(read_only(part.indptr), read_only(part.indices), part.values, change, norm, ends, weights)
        return part

    def _frequency(self, rows: SparseRows) -> NDArray[np.int64]:
        """How many training rows have each column; of blocks the rows may keep a part, but the IDF knows."""
        frequency = document_frequency(rows)
        first = int(self.block_end[0])
        if self.config.strongest and self.config.idf:
            idf = self.idf[first:].astype(np.float64)
            frequency[first:] = np.rint((1 + rows.n_rows) * np.exp(1.0 - idf) - 1)
        return frequency

    def feature_name(self, column: int) -> str:
        """A word, ``*ing`` of n-grams of characters, two words; buckets have no better name than a number."""
        if column < len(self.words):
            return self.words[column]
        block = int(np.searchsorted(self.block_end, column, "right"))
        if block == 0:
            return f"bucket {int(np.flatnonzero(self.column_of_bucket == column)[0])}"
        return self.blocks[block - 1].name(column - int(self.block_end[block - 1]), self.words)

    def single(self, X: Any) -> SparseRows:
        if not isinstance(X, str):
            return self.given_rows(X)
        row = self._short_row(X)
        return self.given_rows([X]) if row is None else row

    def _short_row(self, text: str) -> SparseRows | None:
        """The row of a short text by one kernel; None where :meth:`given_rows` must make it."""
        short = self.short_text(text)
        n = -1 if short is None else ready_text(short[0].table, short[1])
        if short is None or n < 0:
            return None
        indices, values = short[0].indices[:n].copy(), short[0].values[:n].copy()
        return SparseRows(np.array([0, n]), indices, values, self.n_columns)

    def text_of(self, X: Any) -> str | None:
        if is_list(X) and type(X) is not SparseRows and not is_sparse(X) and len(X) == 1:
            X = X[0]
        return X if isinstance(X, str) else None

    def places(self, text: str, farthest: int = 1) -> Places:
        start, end = word_spans(text, self.config)
        short = self.short_text(text) if self.config.word_ngrams == 1 else None
        if short is not None:
            most = len(short[1]) + len(start) * (
                2 + farthest
            )  # words have fewer n-grams than bytes and spaces
            column, places = np.empty(most, np.int32), np.empty((2, most), np.int64)
            n = list_places(short[0].table, short[1], len(start), farthest, column, places[0], places[1])
            if n >= 0:
                return Places(start, end, column[:n], places[0, :n], places[1, :n])
        return self.listed_places(text, start, end)

    def listed_places(self, text: str, start: NDArray[np.int64], end: NDArray[np.int64]) -> Places:
        """Those of the words, of runs of words, and of what blocks have; words are cut as rows are made."""
        batch, word_ids = self._cut(text, len(start))
        parts = [places_of_words(word_ids)]
        if self.config.word_ngrams > 1:
            tokens = batch_tokens(batch, word_ids, self.config).ids[batch.n_words :]
            columns = self.column_of_bucket[FIRST_BUCKET - tokens]
            parts.append(places_of_runs(columns, batch.n_words, self.config.word_ngrams))
        for first_column, block in zip(self.block_end.tolist(), self.blocks, strict=False):
            parts.append(block.places(batch, word_ids).shifted(first_column))
        return Places(start, end, *joined_places(parts))

    def row_parts(self, places: Places) -> RowParts | None:
        """None too where words touch, as in scripts without spaces: without one, others are cut otherwise."""
        if self.config.word_ngrams > 1 or self.config.weighted_words or not places.are_apart:
            return None
        _, _, column, first_word, n_words = places
        number, columns = np.empty(len(column), np.int64), np.empty(len(column), np.int32)
        columns = columns[: distinct_columns(column, columns, number)]
        idf, tf, norm, ends, weights, most = self.weighing
        weighing = ColumnsOfText(idf[columns], tf, norm, columns.searchsorted(ends), weights, most)
        return RowParts(columns, weighing, number, first_word, n_words)

    def _cut(self, text: str, n_words: int) -> tuple[Batch, NDArray[np.int32]]:
        """The words of a text and their ids."""
        short = self.short_text(text)
        if short is not None and ready_text(short[0].table, short[1]) >= 0:
            return short[0].words(n_words), short[0].word_ids(n_words)
        batch = next(split_block(texts_to_block([text]), self.config, BadLines()))
        return batch, self.words.find(batch.words, batch.n_words)

    def read_single(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[Any]:
        for block, rows, _ in self.read_blocks(source, labels, fmt, bad_lines):
            texts = texts_of(block, self.config)
            if len(texts) == rows.n_rows:
                yield from texts
            else:  # some rows were bad, for reasons that the texts do not tell
                single = (take_rows(rows[:3], np.array([row])) for row in range(rows.n_rows))
                yield from (SparseRows(*row, rows.n_columns) for row in single)

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        for _, rows, Y in self.read_blocks(source, labels, fmt, bad_lines):
            yield rows, Y

    def read_blocks(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[Block, SparseRows, LabelRows]]:
        """As :meth:`read`, with the text that rows are made of."""
        found = find_format(fmt, source)
        if found.input != self.input:
            plain = plain_format(self.input).name
            hint = f"; if it is text that only begins like one, set the format: --format {plain}"
            raise DataError(
                f"{source.name}: a file of format {found.name}, but the model was trained on text"
                f"{hint * (fmt == 'auto')}"
            )
        for block in found.content(source, bad_lines):
            yield block, *self.transform([block], labels, bad_lines)

    def transform(
        self, blocks: Iterable[Block], labels: StringTable, bad_lines: BadLines | None = None
    ) -> tuple[SparseRows, LabelRows]:
        """Rows of features and of labels. Unknown words are left out, an unknown label is -1."""
        collected = LabelCollector()
        strangers = StringTable()  # tells unknown labels apart: one that is twice in a row counts once

        def tokens() -> Iterator[Tokens]:
            for block in blocks:
                for batch in split_block(block, self.config, bad_lines or BadLines()):
                    collected.add(find_labels(labels, strangers, batch), batch.label_end)
                    yield self._tokens(batch)

        rows = weighed_rows(tokens(), self.weighing)
        return rows, collected.rows(len(labels))

    def _tokens(self, batch: Batch) -> Tokens:
        """The columns of the rows of a batch."""
        word_ids = self.words.find(batch.words, batch.n_words)
        parts = [block.tokens(batch, word_ids) for block in self.blocks]
        tokens = batch_tokens(batch, word_ids, self.config)
        tokens = numbered(tokens, read_only(_NO_COLUMNS), self.column_of_bucket)
        return joined(tokens, list(zip(self.block_end.tolist(), parts, strict=False)))

    def transform_texts(self, texts: Sequence[str]) -> SparseRows:
        """Rows of features. Words that look like labels are words here."""
        return self.transform([texts_to_block(texts)], StringTable(1))[0]

    def tensors(self) -> dict[str, NDArray]:
        data, offsets = self.words.tensors()
        tensors: dict[str, NDArray] = {
            "features.words": data,
            "features.word_offsets": offsets,
            "features.bucket_row": self.column_of_bucket,
            "features.idf": self.idf,
        }
        for block in self.blocks:
            tensors |= block.tensors()
        return tensors

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray], config: Config) -> TextFeatures:
        data = take_tensor(tensors, "features.words", np.uint8)
        offsets = take_tensor(tensors, "features.word_offsets", np.int64)
        column_of_bucket = take_tensor(tensors, "features.bucket_row", np.int32)
        idf = take_tensor(tensors, "features.idf", np.float32)
        words = StringTable.from_tensors(data, offsets, "features.words")
        n_buckets = config.ngram_buckets if config.word_ngrams > 1 else 0
        if len(column_of_bucket) != n_buckets:
            raise CorruptedModelError(
                f"features.bucket_row has {len(column_of_bucket)} entries, "
                f"but the config asks for {n_buckets}"
            )
        of_buckets = np.sort(column_of_bucket[column_of_bucket != -1])
        n_columns = len(words) + len(of_buckets)
        if not np.array_equal(of_buckets, np.arange(len(words), n_columns)):
            raise CorruptedModelError("features.bucket_row does not number the columns after the words")
        blocks = [kind.from_tensors(tensors, config, words) for kind in wanted_blocks(config)]
        n_columns += sum(len(block.table) for block in blocks)
        if len(idf) != n_columns or not np.all((idf > 0) & (idf <= MOST_IDF)):
            raise CorruptedModelError(f"features.idf is not {n_columns} positive numbers up to {MOST_IDF:g}")
        return cls(config, words, column_of_bucket, idf, blocks)

    def short_text(self, text: str) -> tuple[ShortText, bytes] | None:
        """None too where a text is too long or not a good one, or the words have hashes of their own."""
        tables = (self.words, *(block.table for block in self.blocks))
        if len(text) > SHORT_TEXT or not all(table.has_public_hashes for table in tables):
            return None
        try:
            buffer: ShortText = self._of_thread.short
        except AttributeError:
            buffer = self._of_thread.short = ShortText(self)
        try:
            return buffer, text.encode()
        except UnicodeEncodeError:
            return None


def _rows_of_columns(chunks: Sequence[Tokens], columns: Columns) -> NDArray[np.int64]:
    """(n_columns,) how many rows have each word or bucket."""
    counts = RowCounts(columns.n_columns)
    for chunk in chunks:
        tokens = numbered(chunk, read_only(columns.column_of_word), read_only(columns.column_of_bucket))
        counts.add(tokens, columns.n_columns)
    return counts.rows


def _training_tokens(chunks: list[Tokens], columns: Columns, fits: Sequence[FittedBlock]) -> Iterator[Tokens]:
    """The columns of all rows. Empties ``chunks`` on the way."""
    firsts = (columns.n_columns + pointers([len(fit.block.table) for fit in fits])).tolist()
    for chunk in taken(chunks):
        parts = [fit.tokens_of(chunk) for fit in fits]
        tokens = numbered(chunk, read_only(columns.column_of_word), read_only(columns.column_of_bucket))
        yield joined(tokens, list(zip(firsts, parts, strict=False)))


def _idf(config: Config, frequency: NDArray[np.int64], n_rows: int) -> NDArray[np.float32]:
    """Of each column. Weights that come with the words are final: they are often TF-IDF already."""
    if not config.idf or config.weighted_words:
        return np.ones(len(frequency), np.float32)
    return inverse_document_frequency(frequency, n_rows)
