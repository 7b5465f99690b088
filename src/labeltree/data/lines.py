"""Text with a row per line: from a buffer to its lines, from lines to a :class:`Block`, and bad lines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.bad_lines import BadLines, line_message
from labeltree.data.formats import UTF8_MARK, TextFormat
from labeltree.data.opening import Source
from labeltree.data.rows import Block
from labeltree.kernels.scan import lines as scan

# What a code of the scanning kernels means, and how to put it right.
Reasons = Mapping[int, tuple[str, str]]
REASONS: Reasons = {scan.INVALID_UTF8: ("invalid UTF-8", "save the file as UTF-8")}


class Lines(NamedTuple):
    """The lines of one buffer."""

    buffer: NDArray[np.uint8]
    start: NDArray[np.int64]  # (n_lines,)
    end: NDArray[np.int64]  # (n_lines,)
    status: NDArray[np.uint8]  # (n_lines,) 0, or what is wrong with the line
    place: NDArray[np.int64]  # (n_lines,) where

    def part(self, first: int, last: int) -> Lines:
        """Lines ``first:last``."""
        wanted = slice(first, last)
        return Lines(
            self.buffer, self.start[wanted], self.end[wanted], self.status[wanted], self.place[wanted]
        )

    def content(self, row: int) -> bytes:
        return self.buffer[self.start[row] : self.end[row]].tobytes()


class Spans(NamedTuple):
    """Where the texts and labels of lines are; bad lines have no labels, and their text is not looked at."""

    buffer: NDArray[np.uint8]  # the bytes that the spans point into: that of the lines, or another
    text_start: NDArray[np.int64]  # (n_lines,)
    text_end: NDArray[np.int64]  # (n_lines,)
    label_start: NDArray[np.int64]  # (n_labels,)
    label_end: NDArray[np.int64]  # (n_labels,)
    label_indptr: NDArray[np.int64]  # (n_lines + 1,)


class Problem(NamedTuple):
    """What is wrong with a line."""

    reason: str
    place: int  # in the line, from 0
    fix: str


Explain = Callable[[Lines, int], Problem]  # of a line whose status is an error


class LineFormat(TextFormat):
    """A format whose rows are lines; an empty one is an empty row, unless :meth:`scan` says it is none."""

    labels_in_text = False  # whether labels are words of the text, so that spans have none
    reasons: Reasons = REASONS

    @abstractmethod
    def scan(self, lines: Lines) -> Spans:
        """Read the lines whose status is good so far; sets that of bad ones, and of those that are no row."""

    def explain(self, lines: Lines, row: int) -> Problem:
        """What is wrong with a line."""
        return explain_status(self.reasons, lines, row)

    def blocks(self, source: Source, bad_lines: BadLines, block_bytes: int) -> Iterator[Block]:
        with source:
            for lines, first_line in line_blocks(source, block_bytes):
                yield self._block(source.name, lines, first_line, bad_lines)

    def _block(self, source: str, lines: Lines, first_line: int, bad_lines: BadLines) -> Block:
        spans = self.scan(lines)
        line = np.arange(first_line, first_line + len(lines.start))
        if lines.status.any():
            report_lines(source, lines, first_line, self.explain, bad_lines)
            keep = lines.status == scan.GOOD
            line = line[keep]
            spans = spans._replace(
                text_start=spans.text_start[keep],
                text_end=spans.text_end[keep],
                # lines left out have no labels, so the others' ranges are still consecutive
                label_indptr=np.append(spans.label_indptr[:-1][keep], spans.label_indptr[-1]),
            )
        return Block(source, *spans, line=line, labels_in_text=self.labels_in_text)


def line_blocks(source: Source, block_bytes: int) -> Iterator[tuple[Lines, int]]:
    """The lines of a file, some megabytes at a time, and the number of their first one.

    Those that are not UTF-8 are marked.
    """
    first_line = 1
    first = len(UTF8_MARK) if source.first_bytes.startswith(UTF8_MARK) else 0
    for buffer in source.blocks(block_bytes):
        lines = _find_lines(buffer, first)
        yield lines, first_line
        first_line += len(lines.start)
        first = 0


def _find_lines(buffer: NDArray[np.uint8], first: int) -> Lines:
    """The lines of ``buffer[first:]``."""
    capacity = scan.count_byte(buffer, scan.NEWLINE) + 1
    start, end, place = (np.empty(capacity, np.int64) for _ in range(3))
    status = np.empty(capacity, np.uint8)
    n_lines = scan.scan_lines(buffer, first, start, end, status, place)
    return Lines(buffer, start, end, status, place).part(0, n_lines)


def explain_status(reasons: Reasons, lines: Lines, row: int) -> Problem:
    """What the kernel that set a line's status and place found."""
    reason, fix = reasons[int(lines.status[row])]
    return Problem(reason, int(lines.place[row] - lines.start[row]), fix)


def report_lines(source: str, lines: Lines, first_line: int, explain: Explain, bad_lines: BadLines) -> None:
    """Report every line whose status is an error."""
    for row in np.flatnonzero(lines.status > scan.BLANK).tolist():
        if not bad_lines.wants_message:
            bad_lines.report()
            continue
        reason, place, fix = explain(lines, row)
        value = lines.content(row)[place:]
        bad_lines.report(line_message(source, first_line + row, reason, place + 1, value, fix))
