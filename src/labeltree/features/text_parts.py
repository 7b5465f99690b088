"""Text in parts: words, tokens and labels of some rows, numbered by themselves, and several parts as one.

Parts can be read anywhere and at the same time. Words and labels are numbered in the order of their first
use, so that parts, joined in their order, are the same as all rows read at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.rows import Block, LabelRows, pointers
from labeltree.features.counting import LabelCollector, Tokens, batch_tokens, numbered
from labeltree.features.splitting import split_block
from labeltree.features.strings import StringTable
from labeltree.storage.space import Space

_NOT_MOVED: NDArray[np.int32] = np.empty(0, np.int32)
_TABLES = "words", "labels"
_FIELDS = dict(zip(Tokens._fields, (np.int32, np.float32, np.int64), strict=True))


class TextPart(NamedTuple):
    """Rows of text as tokens and labels."""

    words: StringTable
    labels: StringTable
    chunks: list[Tokens]  # ids are those of `words`
    Y: LabelRows

    def tensors(self, space: Space) -> dict[str, NDArray[Any]]:
        """To be kept."""
        tensors: dict[str, NDArray[Any]] = {"Y.indptr": self.Y.indptr, "Y.indices": self.Y.indices}
        for name, table in zip(_TABLES, self[:2], strict=True):
            tensors[f"{name}.data"], tensors[f"{name}.offsets"] = table.tensors()
        for field, dtype in _FIELDS.items():
            arrays = [getattr(chunk, field) for chunk in self.chunks]
            tensors[f"tokens.{field}.start"] = pointers([len(array) for array in arrays])
            tensors[f"tokens.{field}"] = space.joined(arrays, dtype)
        return tensors


def part_of_tensors(tensors: Mapping[str, NDArray[Any]]) -> TextPart:
    """What :meth:`TextPart.tensors` was made of."""
    words, labels = (
        StringTable.from_tensors(tensors[f"{name}.data"], tensors[f"{name}.offsets"], name)
        for name in _TABLES
    )
    fields = []
    for field in _FIELDS:
        array, start = tensors[f"tokens.{field}"], tensors[f"tokens.{field}.start"].tolist()
        fields.append([array[a:b] for a, b in pairwise(start)])
    chunks = [Tokens(*own) for own in zip(*fields, strict=True)]
    return TextPart(words, labels, chunks, LabelRows(tensors["Y.indptr"], tensors["Y.indices"], len(labels)))


def read_part(content: Iterable[Block], config: Config, bad_lines: BadLines | None, space: Space) -> TextPart:
    """Blocks, read once."""
    words, labels = StringTable(), StringTable()
    chunks, collected = list[Tokens](), LabelCollector()
    for block in content:
        for batch in split_block(block, config, bad_lines or BadLines()):
            tokens = batch_tokens(batch, words.insert(batch.words, batch.n_words), config)
            chunks.append(Tokens(*(space.kept(array) for array in tokens)))
            collected.add(labels.insert(batch.labels, batch.n_labels), batch.label_end)
    return TextPart(words, labels, chunks, collected.rows(len(labels)))


def join_parts(parts: Iterator[TextPart], space: Space) -> TextPart:
    """All rows, one part after another."""
    words, labels, chunks, first_labels = next(parts)
    others = list(parts)
    if not others:
        return TextPart(words, labels, chunks, first_labels)
    collected = LabelCollector()
    collected.add(first_labels.indices, first_labels.indptr[1:])
    for part in others:
        word = _numbers_in(words, part.words)
        for chunk in part.chunks:
            chunks.append(chunk._replace(ids=space.kept(numbered(chunk, word, _NOT_MOVED).ids)))
        collected.add(_numbers_in(labels, part.labels)[part.Y.indices], part.Y.indptr[1:])
    return TextPart(words, labels, chunks, collected.rows(len(labels)))


def _numbers_in(table: StringTable, other: StringTable) -> NDArray[np.int32]:
    """The numbers of another table's strings, which get new ones if they are new."""
    return table.insert(other.pieces(np.arange(len(other))), len(other))
