"""What a kernel needs to make the row of a single short text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.features.blocks import NgramBlock, PairBlock, ngram_scratch
from labeltree.features.counting import row_scratch
from labeltree.features.splitting import Batch, make_scratch, text_options
from labeltree.kernels.text.short import SHORT_TABLE

if TYPE_CHECKING:
    from labeltree.features.text import TextFeatures

SHORT_TEXT = 1 << 14  # characters; a single text up to this length takes the fast path

_NO_COLUMNS: NDArray[np.int32] = np.empty(0, np.int32)
_NO_ENDS: NDArray[np.int64] = np.empty(0, np.int64)
_NO_SLOTS: NDArray[np.uint64] = np.empty(0, np.uint64)


class ShortText:
    """The table of ``kernels/text/short.py``: where the features' arrays are, and one thread's own ones."""

    def __init__(self, features: TextFeatures) -> None:
        config = features.config
        options = text_options(config, labels_in_text=False)
        n_bytes = 4 * SHORT_TEXT  # there are fewer words; memory that is not written is never taken
        _, words, weights, labels = make_scratch(n_bytes, config.weighted_words)
        kinds = {type(block): block for block in features.blocks}
        ngrams, pairs = kinds.get(NgramBlock), kinds.get(PairBlock)
        listed_parts, listed_end = (
            ngrams.listed if isinstance(ngrams, NgramBlock) else (_NO_COLUMNS, _NO_ENDS)
        )
        parts = ngram_scratch(n_bytes, n_bytes, config.char_ngrams)
        n_tokens = n_bytes * config.word_ngrams + len(parts.first) * bool(ngrams) + n_bytes * bool(pairs)
        self.indices = np.empty(n_tokens, np.int32)  # the row that comes out ...
        self.values = np.empty(n_tokens, np.float32)  # ... in the first entries of both
        self._fields: dict[str, Any] = dict(
            slots=features.words.arrays.slots,
            records=features.words.arrays.records,
            column_of_bucket=features.column_of_bucket,
            lower_case=options.lower_case,
            kinds=options.kinds,
            prefix=options.prefix,
            weighted=config.weighted_words,
            longest=config.word_ngrams,
            n_buckets=config.ngram_buckets,
            ngram_slots=ngrams.table.arrays.slots if ngrams else _NO_SLOTS,
            ngram_records=ngrams.table.arrays.records if ngrams else _NO_SLOTS,
            ngram_length=config.char_ngrams if ngrams else 0,
            listed_parts=listed_parts,
            listed_end=listed_end,
            pair_slots=pairs.table.arrays.slots if pairs else _NO_SLOTS,
            pair_records=pairs.table.arrays.records if pairs else _NO_SLOTS,
            weighing=features.weighing,
            words=words,
            labels=labels,
            weights=weights,
            ids=np.empty(n_bytes, np.int32),
            tokens=np.empty(n_tokens, np.int32),
            others=words._replace(first=np.empty(n_bytes, np.int64), length=np.empty(n_bytes, np.int64)),
            parts=parts,
            part_end=np.empty(n_bytes + 1, np.int64),
            found=np.empty(len(parts.first), np.int32),
            of_words=np.empty(len(parts.first), np.int32),
            scratch=row_scratch(n_tokens),
            no_columns=_NO_COLUMNS,
            indices=self.indices,
            values=self.values,
        )
        self.table = SHORT_TABLE.table(**self._fields)

    def words(self, n_words: int) -> Batch:
        """The words of the last text, of which there are so many, as a batch of one row."""
        end = np.array([n_words])
        pieces, labels = self._fields["words"], self._fields["labels"]
        return Batch(pieces, n_words, self._fields["weights"], end, labels, 0, np.zeros(1, np.int64))

    def word_ids(self, n_words: int) -> NDArray[np.int32]:
        """The ids of these words, -1 for unknown ones; the next text overwrites them."""
        return self._fields["ids"][:n_words]
