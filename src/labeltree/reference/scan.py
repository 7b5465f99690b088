"""Reading lines in plain Python: what the scanning kernels must agree with. Bad lines raise ValueError."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple


class TextRow(NamedTuple):
    line: int
    text: bytes
    labels: list[bytes]


class FeatureRow(NamedTuple):
    labels: list[int]
    features: dict[int, float]


def scan_lines(data: bytes) -> list[bytes]:
    """Lines without their ends; NUL is a space; the last line needs no newline."""
    lines = data.replace(b"\0", b" ").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def scan_words(line: bytes) -> tuple[bytes, list[bytes]]:
    """A fastText line: its labels are words of the text, so they are found with the words."""
    return line, []


def scan_subjects(line: bytes) -> tuple[bytes, list[bytes]]:
    """An Annif line, ``text<TAB><uri> <uri>``."""
    if not line:
        return b"", []
    text, tab, subjects = line.partition(b"\t")
    if not tab:
        raise ValueError("no tab")
    labels = subjects.split()
    if not all(re.fullmatch(rb"<[^<>]+>", label) for label in labels):
        raise ValueError("not a subject")
    return text, [label[1:-1] for label in labels]


SCANNERS: dict[str, Callable[[bytes], tuple[bytes, list[bytes]]]] = {
    "fasttext": scan_words,
    "annif": scan_subjects,
}


def read_text(data: bytes, fmt: str) -> tuple[list[TextRow], list[int]]:
    """The rows of a text file, and the numbers of its bad lines."""
    rows, bad = [], []
    for number, line in enumerate(scan_lines(data), start=1):
        try:
            line.decode()
            rows.append(TextRow(number, *SCANNERS[fmt](line)))
        except ValueError:
            bad.append(number)
    return rows, bad


def scan_sparse_rows(line: bytes, n_columns: int, n_labels: int, n_known_labels: int) -> FeatureRow:
    """A row of an XMLC file, ``1,7 3:0.5 9:1``; labels the model does not know are -1."""
    first, *rest = re.split(rb"\s", line, maxsplit=1)
    if b":" in first:
        first, rest = b"", [line]
    labels = [_parse_id(label, n_labels) for label in first.split(b",")] if first else []
    known = sorted({label for label in labels if label < n_known_labels})
    unknown = [-1 for label in labels if label >= n_known_labels]
    features: dict[int, float] = {}
    for token in b" ".join(rest).split():
        number, _, value = token.partition(b":")
        feature = _parse_id(number, n_columns)
        if feature in features or not re.fullmatch(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", value):
            raise ValueError("twice, or not a number")
        features[feature] = float(value)
    return FeatureRow(unknown + known, dict(sorted(features.items())))


def _parse_id(token: bytes, limit: int) -> int:
    if not re.fullmatch(rb"\d+", token) or int(token) >= limit:
        raise ValueError("not an id in range")
    return int(token)
