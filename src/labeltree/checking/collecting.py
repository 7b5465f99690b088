"""What a check keeps of a data file: some numbers for each row, whatever the size of its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.checking.characters import N_SIGNS, odd_rows
from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import Format, Reading, TextFormat, VectorFormat, find_format
from labeltree.data.opening import Source
from labeltree.data.rows import Block, LabelRows, SparseRows, pointers
from labeltree.features.counting import LabelCollector
from labeltree.features.splitting import Batch, split_block
from labeltree.features.strings import StringTable

Hashes = NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


class Collected(NamedTuple):
    """The rows of a file. Two rows with the same hash have the same words in the same order, or vectors."""

    name: str
    hashes: Hashes  # (n_rows,) of the words, or of the vector
    n_parts: NDArray[np.int64]  # (n_rows,) words, or values
    line: NDArray[np.int64]  # (n_rows,) from 1; of vectors the number of the row
    labels: LabelRows
    label_names: StringTable | None  # None: labels are numbers
    has_sign: NDArray[np.bool_]  # (n_rows, N_SIGNS) of characters.SIGNS
    bad_lines: BadLines

    @property
    def n_rows(self) -> int:
        return len(self.hashes)

    def name_of(self, label: int) -> str:
        return str(label) if self.label_names is None else self.label_names[label]

    def label_hashes(self) -> Hashes:
        """(n_labels,) the same for the same name in any file."""
        if self.label_names is None:
            return _mixed(np.arange(1, self.labels.n_labels + 1, dtype=np.uint64))
        return _mixed(self.label_names.pieces(np.arange(len(self.label_names))).hashes)

    def set_hashes(self) -> Hashes:
        """(n_rows,) of the sets of labels."""
        return _sums(self.label_hashes()[self.labels.indices], self.labels.indptr)


def collect(path: str | Path, reading: Reading, label_prefix: str) -> Collected:
    """Read a file once. Lines that cannot be read are counted."""
    bad_lines = BadLines(skip=True)
    with Source(path, columns=reading.check().columns, wants_labels=True) as source:
        found = find_format(reading.format, source)
        return _COLLECTORS[found.input](found, source, bad_lines, Config(label_prefix=label_prefix))


def _collect_texts(found: Format, source: Source, bad_lines: BadLines, config: Config) -> Collected:
    names, collector = StringTable(), LabelCollector()
    hashes, n_parts, lines = list[Hashes](), list[NDArray[Any]](), list[NDArray[Any]]()
    signs = list[NDArray[np.bool_]]()
    for block in found.content(source, bad_lines):
        has_sign = odd_rows(block.buffer, block.text_start, block.text_end)
        for batch, rows in _rows_of_batches(block, config, bad_lines):
            word_ends = np.concatenate([[0], batch.word_end])
            hashes.append(_ordered_hashes(batch.words.hashes[: batch.n_words], word_ends))
            n_parts.append(np.diff(word_ends))
            lines.append(block.line[rows])
            signs.append(has_sign[rows])
            collector.add(names.insert(batch.labels, batch.n_labels), batch.label_end)
    return Collected(
        source.name,
        np.concatenate([np.empty(0, np.uint64), *hashes]),
        np.concatenate([np.empty(0, np.int64), *n_parts]),
        np.concatenate([np.empty(0, np.int64), *lines]),
        collector.rows(len(names)),
        names,
        np.concatenate([np.empty((0, N_SIGNS), np.bool_), *signs]),
        bad_lines,
    )


def _rows_of_batches(block: Block, config: Config, bad_lines: BadLines) -> Iterator[tuple[Batch, slice]]:
    """Batches with the rows of the block that they are: bad ones between them are left out, and counted."""
    row, n_skipped = 0, bad_lines.skipped
    for batch in split_block(block, config, bad_lines):
        row += bad_lines.skipped - n_skipped
        n_skipped = bad_lines.skipped
        yield batch, slice(row, row + len(batch.word_end))
        row += len(batch.word_end)


def _collect_vectors(found: Format, source: Source, bad_lines: BadLines, config: Config) -> Collected:
    rows: SparseRows
    rows, labels = found.content(source, bad_lines)
    bits = rows.values.view(np.uint32).astype(np.uint64) << _SHIFT
    hashes = _ordered_hashes(bits | rows.indices.astype(np.uint64), rows.indptr)
    numbers = np.arange(1, rows.n_rows + 1)
    no_signs = np.zeros((rows.n_rows, N_SIGNS), np.bool_)
    return Collected(
        source.name, hashes, np.diff(rows.indptr), numbers, labels, None, no_signs, bad_lines
    )  # fmt: skip


# By what the rows of a format are.
_COLLECTORS: dict[str, Callable[[Format, Source, BadLines, Config], Collected]] = {
    TextFormat.input: _collect_texts,
    VectorFormat.input: _collect_vectors,
}


def _ordered_hashes(parts: Hashes, indptr: NDArray[np.int64]) -> Hashes:
    """Of rows of hashes: a sum in which each place has its own factor."""
    lengths = np.diff(indptr)
    places = (np.arange(len(parts)) - np.repeat(indptr[:-1], lengths)).astype(np.uint64)
    return _sums(_mixed(parts + _mixed(places)), pointers(lengths))


def _sums(values: Hashes, indptr: NDArray[np.int64]) -> Hashes:
    """Of each row, modulo 2^64."""
    before = np.zeros(len(values) + 1, np.uint64)
    np.add.accumulate(values, out=before[1:])
    return before[indptr[1:]] - before[indptr[:-1]]


def _mixed(values: Hashes) -> Hashes:
    """Spread, so that sums of different values are different."""
    mixed = (values ^ (values >> _SHIFT)) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    return mixed ^ (mixed >> _SHIFT)
