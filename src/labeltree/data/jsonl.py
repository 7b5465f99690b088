"""JSON lines, ``{"text": "...", "labels": ["...", ...]}``, parsed by orjson."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from labeltree.data.bad_lines import BadLines
from labeltree.data.lines import LineFormat, Lines, Problem, Spans
from labeltree.data.memory import join_texts
from labeltree.data.opening import Source
from labeltree.data.rows import Block, pointers
from labeltree.kernels.scan import lines as scan

BAD_RECORD = 20  # a line's status: what is wrong with it is found again where a message is wanted

_BLOCK_BYTES = (
    1 << 18
)  # at most: the strings of a block are all alive at once, so that few fit into the cache

_FIX = 'write {"text": "...", "labels": ["...", "..."]} on one line'
_START = re.compile(rb'\s*\{\s*["}]')
_WHITE_SPACE = b" \t\r"
# Of an object that is known to be JSON: its strings and brackets, and what is between a key and its value.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{}]')
_COLON = re.compile(rb"\s*:\s*")
_STRINGS, _STRINGS_AND_NUMBERS = frozenset({str}), frozenset({str, int, float})
_NO_LABELS: Sequence[Any] = ()
# Reads a list of labels with its numbers as they are written: 7 and 7.0 are two labels, and a number of 30
# digits is none of its neighbours.
_AS_WRITTEN = json.JSONDecoder(parse_int=str, parse_float=str)


class _BadRecord(ValueError):
    """JSON, but not such a record."""

    def __init__(self, reason: str, key: str = "", fix: str = _FIX) -> None:
        super().__init__(reason)
        self.reason, self.key, self.fix = reason, key, fix  # the key whose value is wrong, or none


class _Jsonl(LineFormat):
    name = "jsonl"
    extensions = (".jsonl", ".ndjson")
    example = '{"text": "one two", "labels": ["a"]}\n{"text": "two three", "labels": ["b"]}\n'

    def begins(self, line: bytes) -> bool:
        return _START.match(line) is not None

    def where_labels_are(self, label_prefix: str) -> str:
        return 'labels are the list of the key "labels"'

    def blocks(self, source: Source, bad_lines: BadLines, block_bytes: int) -> Iterator[Block]:
        return super().blocks(source, bad_lines, min(block_bytes, _BLOCK_BYTES))

    def scan(self, lines: Lines) -> Spans:
        data, ends, status = lines.buffer.tobytes(), lines.end.tolist(), lines.status.tolist()
        texts: list[str] = []
        labels: list[Any] = []
        n_labels: list[int] = []
        for row, start in enumerate(lines.start.tolist()):
            text, found = "", _NO_LABELS
            if status[row] == scan.GOOD:
                line = data[start : ends[row]]
                try:
                    text, found = _read_record(line)
                except ValueError:
                    lines.status[row] = BAD_RECORD if line.strip(_WHITE_SPACE) else scan.BLANK
            texts.append(text)
            labels += found
            n_labels.append(len(found))
        if "" in labels or not _STRINGS.issuperset(map(type, labels)):
            labels = _check_labels(lines, labels, n_labels)
        start, end, buffer = join_texts(texts + labels)
        n = len(texts)
        return Spans(buffer, start[:n], end[:n], start[n:], end[n:], pointers(n_labels))

    def explain(self, lines: Lines, row: int) -> Problem:
        if lines.status[row] != BAD_RECORD:
            return super().explain(lines, row)
        line = lines.content(row)
        try:
            _, labels = _read_record(line)
            _label_strings(line, labels)
        except orjson.JSONDecodeError as error:
            place = len(error.doc[: error.pos].encode())  # it counts characters
            return Problem(f"not JSON ({error.msg})", place, _FIX)
        except _BadRecord as error:
            return Problem(error.reason, _place_of_value(line, error.key), error.fix)
        raise AssertionError(f"a good line was refused: {line!r}")


def _read_record(line: bytes) -> tuple[str, Sequence[Any]]:
    """The text of a line, and what it has as labels. Of a key that is there twice the last one counts."""
    record = orjson.loads(line)
    if type(record) is not dict:
        raise _BadRecord("expected a JSON object")
    text, labels = record.get("text"), record.get("labels")
    if type(text) is not str:
        if "text" not in record:
            raise _BadRecord('the JSON object has no key "text"')
        raise _BadRecord('the value of "text" is not a string', "text")
    if labels is None:
        return text, _NO_LABELS
    if type(labels) is not list:
        raise _BadRecord('the value of "labels" is not an array', "labels")
    return text, labels


def _check_labels(lines: Lines, labels: list[Any], n_labels: list[int]) -> list[str]:
    """The labels of all lines as strings; a line with others becomes a bad one without labels."""
    checked: list[str] = []
    first = 0
    for row, n in enumerate(n_labels):
        last = first + n
        try:
            found = _label_strings(lines.content(row), labels[first:last])
        except _BadRecord:
            lines.status[row] = BAD_RECORD
            found = []
        checked += found
        n_labels[row] = len(found)
        first = last
    return checked


def _label_strings(line: bytes, labels: Sequence[Any]) -> list[str]:
    """The labels of a line, numbers as they are written."""
    kinds = set(map(type, labels))
    if not kinds <= _STRINGS_AND_NUMBERS:
        raise _BadRecord("a label is neither a string nor a number", "labels")
    if "" in labels:
        raise _BadRecord("a label is empty", "labels", "leave it out")
    if kinds <= _STRINGS:
        return list(labels)
    array = line[_place_of_value(line, "labels") :].decode()
    return _AS_WRITTEN.raw_decode(array)[0]


def _place_of_value(line: bytes, key: str) -> int:
    """Where the value of a key begins in an object that is JSON, of the last such key; else where that does.

    Without recursion, as lines may be hostile.
    """
    place, depth = len(line) - len(line.lstrip(_WHITE_SPACE)), 0
    for token in _TOKEN.finditer(line):
        if token[0] in b"[{":
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
        elif depth == 1 and (colon := _COLON.match(line, token.end())) and orjson.loads(token[0]) == key:
            place = colon.end()
    return place


JSONL = _Jsonl()
