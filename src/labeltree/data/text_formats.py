"""From a buffer of lines to a :class:`Block`, one function per text format, and the words for bad lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.bad_lines import BadLines, line_message
from labeltree.data.rows import Block
from labeltree.kernels.scan import json as scan_json
from labeltree.kernels.scan import lines as scan

_UTF8_FIX = "save the file as UTF-8"
_ANNIF_FIX = "write text<TAB><uri> <uri>"
_JSON_FIX = 'write {"text": "...", "labels": ["...", "..."]} on one line'

# What each code of the scanning kernels means, and how to put it right.
REASONS: dict[int, tuple[str, str]] = {
    scan.INVALID_UTF8: ("invalid UTF-8", _UTF8_FIX),
    scan.NO_TAB: ("expected a tab between text and subjects", _ANNIF_FIX),
    scan.NOT_A_SUBJECT: ("expected a subject in angle brackets", _ANNIF_FIX),
    scan_json.NOT_AN_OBJECT: ("expected a JSON object", _JSON_FIX),
    scan_json.UNFINISHED: ("the JSON object or a string in it has no end", _JSON_FIX),
    scan_json.CONTROL_CHARACTER: (
        "a control character inside a JSON string",
        "write it as an escape like \\t",
    ),
    scan_json.BAD_ESCAPE: ("an unknown escape in a JSON string", "write a backslash as \\\\"),
    scan_json.LONE_SURROGATE: ("half of a surrogate pair", "write the character itself or both its halves"),
    scan_json.EXPECTED_KEY: ("expected a JSON key in double quotes", _JSON_FIX),
    scan_json.EXPECTED_COLON: ("expected a colon after a JSON key", _JSON_FIX),
    scan_json.EXPECTED_VALUE: ("expected a JSON value", _JSON_FIX),
    scan_json.EXPECTED_COMMA: ("expected a comma or a closing bracket", _JSON_FIX),
    scan_json.TOO_DEEP: (f"JSON nested deeper than {scan_json.MAX_DEPTH}", "remove that key"),
    scan_json.TRAILING: ("text after the end of the JSON object", "write one object per line"),
    scan_json.NO_TEXT: ('the JSON object has no key "text"', _JSON_FIX),
    scan_json.TEXT_NOT_STRING: ('the value of "text" is not a string', _JSON_FIX),
    scan_json.LABELS_NOT_ARRAY: ('the value of "labels" is not an array', _JSON_FIX),
    scan_json.LABEL_NOT_STRING: ("a label is neither a string nor a number", _JSON_FIX),
    scan_json.EMPTY_LABEL: ("a label is empty", "leave it out"),
}


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


def find_lines(buffer: NDArray[np.uint8], first: int) -> Lines:
    """The lines of ``buffer[first:]``, those that are not UTF-8 marked."""
    capacity = scan.count_byte(buffer, scan.NEWLINE) + 1
    start, end, place = (np.empty(capacity, np.int64) for _ in range(3))
    status = np.empty(capacity, np.uint8)
    n_lines = scan.scan_lines(buffer, first, start, end, status, place)
    return Lines(buffer, start, end, status, place).part(0, n_lines)


def report_lines(
    source: str, lines: Lines, first_line: int, reasons: dict[int, tuple[str, str]], bad_lines: BadLines
) -> None:
    """Report every line whose status is an error."""
    for row in np.flatnonzero(lines.status > scan.BLANK):
        if not bad_lines.wants_message:
            bad_lines.report()
            continue
        reason, fix = reasons[int(lines.status[row])]
        start, place = int(lines.start[row]), int(lines.place[row])
        value = lines.buffer[place : lines.end[row]].tobytes()
        message = line_message(source, first_line + int(row), reason, place - start + 1, value, fix)
        bad_lines.report(message)


def make_block(source: str, fmt: str, lines: Lines, first_line: int, bad_lines: BadLines) -> Block:
    """The good lines as a block."""
    n_lines = len(lines.start)
    text_start, text_end = lines.start, lines.end
    label_indptr = np.zeros(n_lines + 1, np.int64)
    label_start = label_end = np.empty(0, np.int64)
    if fmt == "annif":
        label_start, label_end = _label_spans(scan.count_byte(lines.buffer, scan.LESS))
        text_end = np.empty(n_lines, np.int64)
        n_labels = scan.scan_subjects(*lines, text_end, label_start, label_end, label_indptr)
    elif fmt == "jsonl":
        # a label is followed by a comma or is the last of its line
        label_start, label_end = _label_spans(scan.count_byte(lines.buffer, scan_json.COMMA) + n_lines)
        text_start, text_end = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
        n_labels = scan_json.scan_objects(*lines, text_start, text_end, label_start, label_end, label_indptr)
    else:
        n_labels = 0
    line = np.arange(first_line, first_line + n_lines)
    if lines.status.any():
        report_lines(source, lines, first_line, REASONS, bad_lines)
        keep = lines.status == scan.GOOD
        text_start, text_end, line = text_start[keep], text_end[keep], line[keep]
        # lines left out have no labels, so the others' ranges are still consecutive
        label_indptr = np.append(label_indptr[:-1][keep], label_indptr[-1])
    return Block(
        source=source,
        buffer=lines.buffer,
        text_start=text_start,
        text_end=text_end,
        label_start=label_start[:n_labels].copy(),
        label_end=label_end[:n_labels].copy(),
        label_indptr=label_indptr,
        line=line,
        labels_in_text=fmt == "fasttext",
    )


def _label_spans(capacity: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.empty(capacity, np.int64), np.empty(capacity, np.int64)
