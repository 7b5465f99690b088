"""Text features: words and word n-grams, chosen and weighted by the training data."""

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
from labeltree.data.rows import Block, LabelRows, SparseRows, keep_entries, read_only
from labeltree.errors import CorruptedModelError, DataError, show
from labeltree.features.counting import (
    MOST_IDF,
    LabelCollector,
    TokenCounts,
    Tokens,
    batch_tokens,
    count_tokens,
    document_frequency,
    find_labels,
    inverse_document_frequency,
    number_columns,
)
from labeltree.features.features import Features, Fitted, is_list
from labeltree.features.splitting import make_scratch, split_block, text_options
from labeltree.features.strings import StringTable
from labeltree.features.vectors import NORM_CODES
from labeltree.kernels.text.counts import NORM_NONE, TF_BINARY, TF_COUNT, TF_LOG, weigh_rows
from labeltree.kernels.text.short import SHORT_TABLE
from labeltree.storage.tensors import take_tensor

TF_CODES = {"count": TF_COUNT, "log": TF_LOG, "binary": TF_BINARY}
SHORT_TEXT = 1 << 14  # characters; a single text up to this length takes the fast path

_NO_COLUMNS: NDArray[np.int32] = np.empty(0, np.int32)


class TextFeatures(Features):
    """Maps text to sparse rows. Columns: the words by falling frequency, then the buckets of n-grams."""

    input = "text"
    norm_of_rows = NORM_NONE  # a prepared row stays as it is

    def __init__(
        self,
        config: Config,
        words: StringTable,
        column_of_bucket: NDArray[np.int32],
        idf: NDArray[np.float32],
    ) -> None:
        self.config = config
        self.words = words
        # (n_buckets,) a bucket's column, or -1; empty without n-grams
        self.column_of_bucket = read_only(column_of_bucket)
        self.idf = read_only(idf)  # (n_columns,)
        self.n_columns = len(idf)
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
        del words, counts
        rows = count_tokens(
            chunks, read_only(columns.column_of_word), read_only(columns.column_of_bucket), columns.n_columns
        )
        idf = _idf(config, document_frequency(rows), rows.n_rows)
        features = cls(config, columns.words, columns.column_of_bucket, idf)
        features._weigh(rows)
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
        """Without the columns that fewer than ``min_count`` other rows have, and with the others' IDF."""
        part = super().as_unseen(rows, held_out)
        frequency = document_frequency(rows) - document_frequency(part)
        part = keep_entries(part, frequency[part.indices] >= self.config.min_count)
        change = _idf(self.config, frequency, rows.n_rows - part.n_rows) / self.idf
        # Norms are made anew, so what the rows were divided by before does not matter.
        weigh_rows(
            read_only(part.indptr),
            read_only(part.indices),
            part.values,
            read_only(change),
            TF_COUNT,
            self._norm,
        )
        return part

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
                chunks.append(batch_tokens(batch, word_ids, self.config))
                collected.add(find_labels(labels, strangers, batch), batch.label_end)
        rows = count_tokens(chunks, read_only(_NO_COLUMNS), self.column_of_bucket, self.n_columns)
        self._weigh(rows)
        return rows, collected.rows(len(labels))

    def transform_texts(self, texts: Sequence[str]) -> SparseRows:
        """Rows of features. Words that look like labels are words here."""
        return self.transform([texts_to_block(texts)], StringTable(1))[0]

    def tensors(self) -> dict[str, NDArray]:
        data, offsets = self.words.tensors()
        return {
            "features.words": data,
            "features.word_offsets": offsets,
            "features.bucket_row": self.column_of_bucket,
            "features.idf": self.idf,
        }

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
        if len(idf) != n_columns or not np.all((idf > 0) & (idf <= MOST_IDF)):
            raise CorruptedModelError(f"features.idf is not {n_columns} positive numbers up to {MOST_IDF:g}")
        return cls(config, words, column_of_bucket, idf)

    def _weigh(self, rows: SparseRows) -> None:
        weigh_rows(
            read_only(rows.indptr), read_only(rows.indices), rows.values, self.idf, self._tf, self._norm
        )

    def short_text(self, text: str) -> tuple[ShortText, bytes] | None:
        """None too where a text is too long or not a good one, or the words have hashes of their own."""
        if len(text) > SHORT_TEXT or not self.words.has_public_hashes:
            return None
        try:
            buffer: ShortText = self._of_thread.short
        except AttributeError:
            buffer = self._of_thread.short = ShortText(self)
        try:
            return buffer, text.encode()
        except UnicodeEncodeError:
            return None


def _idf(config: Config, frequency: NDArray[np.int64], n_rows: int) -> NDArray[np.float32]:
    """Of each column. Weights that come with the words are final: they are often TF-IDF already."""
    if not config.idf or config.weighted_words:
        return np.ones(len(frequency), np.float32)
    return inverse_document_frequency(frequency, n_rows)


class ShortText:
    """The table of ``kernels/text/short.py``: where the features' arrays are, and one thread's own ones."""

    def __init__(self, features: TextFeatures) -> None:
        config = features.config
        options = text_options(config, labels_in_text=False)
        n_bytes = 4 * SHORT_TEXT  # there are fewer words; memory that is not written is never taken
        _, words, weights, labels = make_scratch(n_bytes, config.weighted_words)
        n_tokens = n_bytes * config.word_ngrams
        self.indices = np.empty(n_tokens, np.int32)  # the row that comes out ...
        self.values = np.empty(n_tokens, np.float32)  # ... in the first entries of both
        self._fields = dict(
            slots=features.words.arrays.slots,
            records=features.words.arrays.records,
            column_of_bucket=features.column_of_bucket,
            idf=features.idf,
            lower_case=options.lower_case,
            kinds=options.kinds,
            prefix=options.prefix,
            weighted=config.weighted_words,
            longest=config.word_ngrams,
            n_buckets=config.ngram_buckets,
            tf=features._tf,
            norm=features._norm,
            words=words,
            labels=labels,
            weights=weights,
            ids=np.empty(n_bytes, np.int32),
            tokens=np.empty(n_tokens, np.int32),
            keys=np.empty(n_tokens, np.int64),
            no_columns=_NO_COLUMNS,
            indices=self.indices,
            values=self.values,
        )
        self.table = SHORT_TABLE.table(**self._fields)
