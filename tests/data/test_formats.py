"""Which format a file has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from labeltree.data.formats import FORMATS, detect_format

CASES = [
    ("fasttext", b"__label__a some words\n", "x.txt"),
    ("fasttext", b"just some words\n", "x.txt"),
    ("fasttext", b"", "-"),
    ("fasttext", b"\n\n", "-"),
    ("fasttext", b"__label__a word:0.37 other:1\n", "-"),
    ("fasttext", b"__label__a\ttab\n", "x.tsv"),
    ("fasttext", b"meet at 5:30 or 6:30\n", "-"),
    ("fasttext", b"5:30 6:30\n", "-"),
    ("fasttext", b"{curly} brackets\n", "-"),
    ("fasttext", b"a\tb\n", "-"),
    ("xmlc", b"4880 1836 159\n3,23 0:1\n", "x.txt"),
    ("xmlc", b"4880 1836 159\r\n", "-"),
    ("xmlc", b"1,7 3:0.5 9:1\n", "-"),
    ("xmlc", b" 3:0.5 9:1e-3\n", "-"),
    ("xmlc", b"", "x.svm.gz"),
    ("jsonl", b'{"text": "a"}\n', "x.txt"),
    ("jsonl", b'\n  { "labels": ["a"], "text": "a"}\n', "-"),
    ("jsonl", b'\xef\xbb\xbf{"text": "a"}\n', "-"),
    ("jsonl", b"broken", "X.JSONL.xz"),
    ("annif", b"text\t<http://x/1> <http://x/2>\n", "x.txt"),
    ("annif", b"no tab\n", "x.tsv"),
]


@pytest.mark.parametrize(("expected", "first_bytes", "path"), CASES)
def test_detect_format(expected: str, first_bytes: bytes, path: str) -> None:
    assert detect_format(first_bytes, path).name == expected
    assert expected in FORMATS


def test_importing_formats_is_free() -> None:
    code = "import sys, labeltree.data.formats, labeltree.data.bad_lines; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "numba", "scipy"} & set(process.stdout.split())


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_format_says_where_its_labels_are(fmt: str) -> None:
    assert FORMATS[fmt].where_labels_are("__label__").startswith("labels are ")
    assert ("'#'" in FORMATS[fmt].where_labels_are("#")) == (fmt == "fasttext")
