"""Text features: words, word n-grams and blocks beside them, chosen and weighted by the training data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import find_format, plain_format
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.memory import text_blocks, texts_to_block
from labeltree.data.opening import Source
from labeltree.data.rows import Block, LabelRows, SparseRows, keep_entries, pointers, read_only
from labeltree.errors import CorruptedModelError, DataError, show
from labeltree.features.blocks import (
    FeatureBlock,
    Training,
    joined,
    wanted_blocks,
)
from labeltree.features.counting import (
    MOST_IDF,
    Columns,
    LabelCollector,
    TokenCounts,
    Tokens,
    batch_tokens,
    count_tokens,
    document_frequency,
    find_labels,
    inverse_document_frequency,
    number_columns,
    taken,
)
from labeltree.features.features import Features, Fitted, is_list
from labeltree.features.short_text import SHORT_TEXT, ShortText
from labeltree.features.splitting import split_block
from labeltree.features.strings import StringTable
from labeltree.features.vectors import NORM_CODES
from labeltree.kernels.text.counts import NORM_NONE, TF_BINARY, TF_COUNT, TF_LOG, drop_zeros, weigh_rows
from labeltree.storage.tensors import take_tensor

TF_CODES = {"count": TF_COUNT, "log": TF_LOG, "binary": TF_BINARY}

_NO_COLUMNS: NDArray[np.int32] = np.empty(0, np.int32)


class TextFeatures(Features):
    """Maps text to sparse rows.

    Columns: the words by falling frequency, then the buckets of n-grams, then those of each block.
    """

    input = "text"
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
        # (1 + n_blocks,) where the columns of the words and of each block end, what they weigh, and how many
        # entries of a row are kept; 0: all
        ends = np.cumsum([-len(block.table) for block in reversed(self.blocks)], dtype=np.int64)[::-1]
        self.block_end = read_only(np.append(ends, 0) + self.n_columns)
        weights = [1.0, *(getattr(config, block.weight) for block in self.blocks)]
        self.block_weight = read_only(np.array(weights, np.float32))
        self.block_most = read_only(np.array([0, *(config.strongest for _ in self.blocks)], np.int64))
        self._tf = TF_COUNT if config.weighted_words else TF_CODES[config.tf]
        self._norm = NORM_CODES[config.row_norm]
        self._of_thread = threading.local()

    @classmethod
    def content(cls, X: Any) -> Iterator[Block]:
        return text_blocks(X)

    @classmethod
    def fit(cls, content: Iterable[Block], config: Config, bad_lines: BadLines | None = None) -> Fitted:
        """Learn words, weights and labels from blocks, reading them once."""
        words, labels = StringTable(), StringTable()
        counts, chunks, collected = TokenCounts(config), list[Tokens](), LabelCollector()
        for block in content:
            for batch in split_block(block, config, bad_lines or BadLines()):
                tokens = batch_tokens(batch, words.insert(batch.words, batch.n_words), config)
                counts.add(tokens.ids, len(words))
                chunks.append(tokens)
                collected.add(labels.insert(batch.labels, batch.n_labels), batch.label_end)
        columns = number_columns(words, counts, config.min_count)
        training = Training(words, columns, chunks)
        fits = [kind.fit(training, config) for kind in wanted_blocks(config)]
        del words, counts, training
        blocks = [block for block, _ in fits]
        rows = _training_rows(chunks, columns, blocks, [tokens_of for _, tokens_of in fits])
        idf = _idf(config, document_frequency(rows), rows.n_rows)
        features = cls(config, columns.words, columns.column_of_bucket, idf, blocks)
        rows = features._weighed(rows)
        return Fitted(features, labels, rows, collected.rows(len(labels)))

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
        return self._weighed(part, change / np.repeat(self.block_weight, lengths), TF_COUNT)

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

    def read(
        self, source: Source, labels: StringTable, fmt: str, bad_lines: BadLines
    ) -> Iterator[tuple[SparseRows, LabelRows]]:
        found = find_format(fmt, source)
        if found.input != self.input:
            plain = plain_format(self.input).name
            hint = f"; if it is text that only begins like one, set the format: --format {plain}"
            raise DataError(
                f"{source.name}: a file of format {found.name}, but the model was trained on text"
                f"{hint * (fmt == 'auto')}"
            )
        for block in found.content(source, bad_lines):
            yield self.transform([block], labels, bad_lines)

    def transform(
        self, blocks: Iterable[Block], labels: StringTable, bad_lines: BadLines | None = None
    ) -> tuple[SparseRows, LabelRows]:
        """Rows of features and of labels. Unknown words are left out, an unknown label is -1."""
        chunks, collected = list[Tokens](), LabelCollector()
        strangers = StringTable()  # tells unknown labels apart: one that is twice in a row counts once
        for block in blocks:
            for batch in split_block(block, self.config, bad_lines or BadLines()):
                word_ids = self.words.find(batch.words, batch.n_words)
                parts = [block.tokens(batch, word_ids) for block in self.blocks]
                tokens = batch_tokens(batch, word_ids, self.config)
                chunks.append(joined(tokens, list(zip(self.block_end.tolist(), parts, strict=False))))
                collected.add(find_labels(labels, strangers, batch), batch.label_end)
        rows = count_tokens(chunks, read_only(_NO_COLUMNS), self.column_of_bucket, self.n_columns)
        return self._weighed(rows), collected.rows(len(labels))

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
        blocks = [kind.from_tensors(tensors, config, len(words)) for kind in wanted_blocks(config)]
        n_columns += sum(len(block.table) for block in blocks)
        if len(idf) != n_columns or not np.all((idf > 0) & (idf <= MOST_IDF)):
            raise CorruptedModelError(f"features.idf is not {n_columns} positive numbers up to {MOST_IDF:g}")
        return cls(config, words, column_of_bucket, idf, blocks)

    def _weighed(
        self, rows: SparseRows, idf: NDArray[np.float32] | None = None, tf: int | None = None
    ) -> SparseRows:
        """With this IDF and TF, or the features' own; in the same arrays."""
        indptr, indices, values, n_columns = rows
        weigh_rows(
            read_only(indptr),
            read_only(indices),
            values,
            self.idf if idf is None else read_only(idf),
            self._tf if tf is None else tf,
            self._norm,
            self.block_end,
            self.block_weight,
            self.block_most,
        )
        if self.block_most[-1]:
            n = drop_zeros(indptr, indices, values)
            # Gives the rest back without a copy.
            indices.resize(n, refcheck=False)
            values.resize(n, refcheck=False)
        return SparseRows(indptr, indices, values, n_columns)

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


def _training_rows(
    chunks: list[Tokens],
    columns: Columns,
    blocks: Sequence[FeatureBlock],
    tokens_of: Sequence[Callable[[Tokens], Tokens]],
) -> SparseRows:
    """Rows of counts. Empties ``chunks`` on the way."""
    column_of_word, of_bucket = read_only(columns.column_of_word), read_only(columns.column_of_bucket)
    firsts = (columns.n_columns + pointers([len(block.table) for block in blocks])).tolist()
    if not blocks:
        return count_tokens(taken(chunks), column_of_word, of_bucket, firsts[-1])

    def with_blocks(chunk: Tokens) -> Tokens:
        parts = [find(chunk) for find in tokens_of]
        known = chunk.ids >= 0
        chunk.ids[known] = column_of_word[chunk.ids[known]]
        return joined(chunk, list(zip(firsts, parts, strict=False)))

    return count_tokens(map(with_blocks, taken(chunks)), read_only(_NO_COLUMNS), of_bucket, firsts[-1])


def _idf(config: Config, frequency: NDArray[np.int64], n_rows: int) -> NDArray[np.float32]:
    """Of each column. Weights that come with the words are final: they are often TF-IDF already."""
    if not config.idf or config.weighted_words:
        return np.ones(len(frequency), np.float32)
    return inverse_document_frequency(frequency, n_rows)
