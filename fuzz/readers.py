"""Targets for the readers of data, trees and configs, and for compressed files."""

from __future__ import annotations

import contextlib
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz.target import Target, file_of
from labeltree.config import Config, make_config
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import FORMATS, TextFormat
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.data.xmlc import read_xmlc
from labeltree.errors import DataError, LabelTreeError, ParameterError, TreeError
from labeltree.features.text import TextFeatures
from labeltree.training.data import read_training_data
from labeltree.trees.file import read_tree, write_tree

Read = tuple[SparseRows, LabelRows, int]  # features, labels, lines that were left out
_LABELS = ("a", "b", "c d")  # of tree files


def check_rows(rows: SparseRows, labels: LabelRows) -> None:
    """Rows that kernels may be given."""
    for indptr, indices, width in (
        (rows.indptr, rows.indices, rows.n_columns),
        (labels.indptr, labels.indices, labels.n_labels),
    ):
        assert indptr[0] == 0
        assert indptr[-1] == len(indices)
        assert np.all(np.diff(indptr) >= 0)
        assert np.all((indices >= 0) & (indices < width))
        inside = np.ones(len(indices), bool)
        inside[indptr[:-1][np.diff(indptr) > 0]] = False  # the first of each row
        assert np.all(np.diff(indices, prepend=0)[inside] > 0)
    assert np.all(np.isfinite(rows.values))
    assert rows.n_rows == labels.n_rows


def check_reading(content: bytes, read: Callable[[Path, BadLines, int], Read]) -> bool:
    """However the file is cut the rows are the same, and without leave to skip lines a bad one is refused."""
    with file_of(content) as path:
        try:
            rows, labels, n_skipped = read(path, BadLines(skip=True), 1 << 22)
        except DataError:
            return False  # the file as a whole cannot be used
        check_rows(rows, labels)
        in_parts = read(path, BadLines(skip=True), 16)
        assert in_parts[2] == n_skipped
        for whole, part in zip((*rows, *labels), (*in_parts[0], *in_parts[1]), strict=True):
            assert np.array_equal(whole, part)
        if n_skipped:
            with contextlib.suppress(DataError):
                read(path, BadLines(), 1 << 22)
                raise AssertionError("a bad line was read")
    return n_skipped == 0


def text_reader(fmt: str, config: Config) -> Callable[[bytes], bool]:
    found = FORMATS[fmt]
    assert isinstance(found, TextFormat)

    def read(path: Path, bad_lines: BadLines, block_bytes: int) -> Read:
        blocks = found.blocks(Source(path), bad_lines, block_bytes)
        _, _, rows, labels = TextFeatures.fit(blocks, config, bad_lines)
        return rows, labels, bad_lines.skipped

    return lambda content: check_reading(content, read)


def check_xmlc(content: bytes) -> bool:
    def read(path: Path, bad_lines: BadLines, block_bytes: int) -> Read:
        rows, labels = read_xmlc(path, bad_lines=bad_lines, block_bytes=block_bytes)
        return rows, labels, bad_lines.skipped

    return check_reading(content, read)


def check_auto(content: bytes) -> bool:
    """As training reads a file whose format nobody gave."""
    with file_of(content) as path:
        try:
            data = read_training_data(path, None, make_config(), skip_bad_lines=True)
        except DataError:
            return False
        check_rows(data.X, data.Y)
        assert len(data.labels) == data.Y.n_labels
    return data.bad_lines.skipped == 0


def check_tree(content: bytes) -> bool:
    with file_of(content) as path:
        try:
            tree = read_tree(path, _LABELS)
        except TreeError:
            return False
        assert tree.n_labels == len(_LABELS)
        write_tree(path, tree, _LABELS)
        assert read_tree(path, _LABELS) == tree
    return True


def check_config(content: bytes) -> bool:
    with file_of(content) as path:
        try:
            config = make_config(file=path)
        except ParameterError:
            return False
        assert Config(**config.to_dict()).validate() == config
    return True


def compressed(unpack_first: Callable[[bytes], bytes], suffix: str) -> Callable[[bytes], bool]:
    """What is read to its end begins with what Python's own reader finds, which may stop early (xz)."""

    def check(content: bytes) -> bool:
        with file_of(content, suffix) as path:
            try:
                with Source(path) as source:
                    found = b"".join(block.tobytes() for block in source.blocks(1 << 12))
            except LabelTreeError:
                return False
        assert found.startswith(unpack_first(content))
        return True

    return check


_TEXT = b"__label__a __label__b one two\n\n  three\tone\n__label__c d\xc3\xa9 \xe2\x82\xac\n"
_WEIGHTED = b"__label__a one:0.5 two:1e-3 a:b:2\n__label__b three:1 \nx:.5e1\n"
_XMLC = b"3 4 3\n0,2 0:1 3:0.5\n 1:-1e-2 2:.5\n1 2:0003\n"
_JSONL = (
    b'{"text": "one \\"two\\" \\u00e9 \\ud83d\\ude00", "labels": ["a", 7, -1.5e3], "x": [{}, null, true]}\n'
    b'\n{"labels":[],"text":"\\n\\/"}\n'
)
_ANNIF = b"some text\t<http://e/1> <http://e/2>\nmore\t<urn:x>\n\n"
_TREE = b"# tree\nr 1\nr 2 a\n1 3 b\n1 4 c d\n"
_CONFIG = (
    b'nodes = "dense"\ndim = 8\nlr = 0.5\nidf = false\nlabel-prefix = "#"\nmax_leaves = 0x10\nseed = 1_000\n'
)
_CONTENT = b"one\ntwo three\n" * 3

READERS: dict[str, Target] = {
    "fasttext": Target(
        text_reader("fasttext", make_config({"word_ngrams": 2, "ngram_buckets": 7})),
        lambda: [_TEXT, b"\xef\xbb\xbf" + _TEXT, b"__label__a\r\n\0 x", b"\xff\n__label__\n"],
        (b"__label__", b"\xef\xbb\xbf", b"\r\n", b"\xc2\xa0", b"\xe3\x80\x80", b"\xf0\x9f\x98\x80", b"\0"),
    ),
    "weighted": Target(
        text_reader("fasttext", make_config({"weighted_words": True})),
        lambda: [_WEIGHTED, b"__label__a one:1e39\n", b"one:nan\nb:\n", b"c:-1\nd:+.5e1\n"],
        (b"__label__", b":", b"e-", b"E+", b"inf", b"nan", b"1e38", b":0."),
    ),
    "xmlc": Target(
        check_xmlc,
        lambda: [_XMLC, b"0 0 0\n", b"1 1 1\n0 0:1 0:2\n", b"1 2 2\n5 0:1e99\n"],
        (b":", b",", b"e-", b"E+", b"2147483647", b"4294967296", b"\n ", b"-", b"."),
    ),
    "jsonl": Target(
        text_reader("jsonl", make_config()),
        lambda: [_JSONL, b'{"text": 1}\n[]\n{"text": "a", "labels": [""]}\n', b'{"a":[[[]]],"text":""}'],
        (
            b'"text"',
            b'"labels"',
            b"\\u",
            b"\\ud83d",
            b"\\ude00",
            b"null",
            b"true",
            b"[[",
            b"]}",
            b'":',
            b"1e9",
        ),
    ),
    "annif": Target(
        text_reader("annif", make_config()),
        lambda: [_ANNIF, b"no tab\n\t<a>\nx\t<>\nx\t<a\n"],
        (b"\t<", b"> <", b">\n", b"<http://e/1>"),
    ),
    "auto": Target(
        check_auto,
        lambda: [_TEXT, _XMLC, _JSONL, _ANNIF, gzip.compress(_TEXT, mtime=0), b"PK\3\4", b"BZh91AY&SY"],
        (b"__label__", b'{"text": "', b"\t<", b"1 2 3\n", b"\x1f\x8b", b"\xfd7zXZ\0"),
    ),
    "tree": Target(
        check_tree, lambda: [_TREE, b"- 0 a\n", b"0 1 a\n0 2 b\n0 3 c d\n"], (b"- ", b" a\n", b" c d\n", b"#")
    ),
    "config": Target(
        check_config,
        lambda: [_CONFIG, b"[a]\nb = 1\n", b"lr = 1979-05-27\nC = inf\n", b"lr = [[1, {a = 2}]]\n"],
        tuple(name.encode() + b" = " for name in make_config().to_dict()),
    ),
    "gzip": Target(
        compressed(gzip.decompress, ".gz"),
        lambda: [gzip.compress(_CONTENT, mtime=0) * 2, gzip.compress(b"", mtime=0) + b"\0" * 8],
        (b"\x1f\x8b\x08", b"\0\0\0\0"),
    ),
    "xz": Target(
        compressed(lambda content: lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(content), ".xz"),
        lambda: [lzma.compress(_CONTENT) * 2, lzma.compress(b"") + b"\0" * 8 + lzma.compress(_CONTENT)],
        (b"\xfd7zXZ\0", b"YZ", b"\0\0\0\0"),
    ),
}
