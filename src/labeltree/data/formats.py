"""The file formats by name, and how one is recognised. Importing this is free."""

from __future__ import annotations

import re

from labeltree.errors import ParameterError, show
from labeltree.parameter import said

FORMATS = ("fasttext", "xmlc", "jsonl", "annif")
FORMAT_CHOICES = ("auto", *FORMATS)

_EXTENSIONS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tsv": "annif",
    ".xmlc": "xmlc",
    ".svm": "xmlc",
    ".libsvm": "xmlc",
}
_COMPRESSED = (".gz", ".xz")

_JSON_START = re.compile(rb'\s*\{\s*["}]')
_ANNIF_END = re.compile(rb"(?:\s*<[^<>\s]+>)+\s*")
_XMLC_HEADER = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")
_XMLC_ROW = re.compile(rb"(?:\d+(?:,\d+)*)?(?:\s+\d+:[-+.\deE]+)+\s*")

UTF8_MARK = b"\xef\xbb\xbf"


def is_xmlc_header(line: bytes) -> bool:
    """Whether a line is ``N D L``; no row of an XMLC file looks like that."""
    return _XMLC_HEADER.fullmatch(line) is not None


def detect_format(first_bytes: bytes, path: str) -> str:
    """The format of a file by its first line that is not blank; where that tells nothing, by its name.

    Whatever has no other sign is fastText lines: plain text is fastText without labels.
    """
    lines = first_bytes.removeprefix(UTF8_MARK).splitlines()
    line = next((line for line in lines if line.strip()), b"")
    if _JSON_START.match(line):
        return "jsonl"
    if is_xmlc_header(line) or _XMLC_ROW.fullmatch(line):
        return "xmlc"
    _, tab, subjects = line.partition(b"\t")
    if tab and _ANNIF_END.fullmatch(subjects):
        return "annif"
    if line.startswith(b"__label__"):
        return "fasttext"
    name = path.lower()
    for extension in _COMPRESSED:
        name = name.removesuffix(extension)
    return next((fmt for extension, fmt in _EXTENSIONS.items() if name.endswith(extension)), "fasttext")


def where_labels_are(fmt: str, label_prefix: str) -> str:
    """How a file of this format gives labels, for those who find that it has none."""
    return {
        "fasttext": f"labels are words that start with {label_prefix!r} (label_prefix, --label-prefix)",
        "xmlc": "labels are the numbers before the first space of a row",
        "jsonl": 'labels are the list of the key "labels"',
        "annif": "labels are the subjects in angle brackets after the tab",
    }[fmt]


def check_format(fmt: str) -> str:
    """``fmt``, or an error that lists the known formats."""
    if fmt not in FORMAT_CHOICES:
        raise ParameterError(f"format must be one of {', '.join(FORMAT_CHOICES)}, but is {show(fmt)}")
    return fmt


def check_in_memory(fmt: str, skip_bad_lines: bool) -> None:
    """Refuse what says how a file is to be read, where there is none."""
    for name, value, default in (
        ("format", check_format(fmt), "auto"),
        ("skip_bad_lines", skip_bad_lines, False),
    ):
        if value != default:
            raise ParameterError(
                f"{name}={said(value)} has no effect where X is in memory: it needs the path of a file as X; "
                "or leave it out"
            )
