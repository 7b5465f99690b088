"""A table of malformed files: data, trees and configs. Each ends in a named error that says where and what.

Arguments have a table of their own in ``test_bad_arguments.py``, model files in ``test_bad_model_files.py``.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labeltree
from labeltree import cli
from labeltree.config import make_config
from labeltree.errors import DataError, LabelTreeError, ParameterError, TreeError
from labeltree.training.driver import estimate

GOOD_LINES = b"__label__a one two\n__label__b three four\n" * 4
SMALL: dict[str, Any] = dict(max_iterations=2)
GZIPPED, PACKED = gzip.compress(GOOD_LINES), lzma.compress(GOOD_LINES)

# name of the file, its content, what the message says beside the file's name
BAD_FILES: list[tuple[str, bytes, str]] = [
    ("empty.txt", b"", "no rows"),
    ("blank.txt", b"\n\n  \n", "no row has a label"),
    ("unlabelled.txt", b"just some words\nand more\n", "'__label__'"),
    ("latin1.txt", GOOD_LINES + b"__label__a caf\xe9\n", "line 9: invalid UTF-8"),
    ("utf16.txt", "__label__a word\n".encode("utf-16"), "is a UTF-16 file; save it as UTF-8"),
    ("nameless.txt", b"__label__a one\n__label__ two\n", "line 2"),
    ("overlong.txt", b"__label__a \xc0\xaf\n", "line 1: invalid UTF-8"),
    ("surrogate.txt", b"__label__a \xed\xa0\x80\n", "line 1: invalid UTF-8"),
    ("zeros.gz", b"\0" * 100, "not gzip"),
    ("plain.gz", GOOD_LINES, "not gzip"),
    ("plain.xz", GOOD_LINES, "not xz"),
    ("cut.gz", GZIPPED[:-12], "damaged or truncated"),
    ("flipped.gz", GZIPPED[:-6] + b"\0\0" + GZIPPED[-4:], "damaged or truncated"),
    ("tail.gz", GZIPPED + b"not gzip any more", "damaged or truncated"),
    ("cut.xz", PACKED[:-20], "damaged or truncated"),
    ("flipped.xz", PACKED[:40] + b"\xff\xff" + PACKED[42:], "damaged or truncated"),
    ("no_header.xmlc", b"0 0:1\n1 1:1\n", "line 1: expected the header"),
    ("few_rows.xmlc", b"3 2 2\n0 0:1\n1 1:1\n", "promises 3 rows, but the file has 2"),
    ("many_rows.xmlc", b"1 2 2\n0 0:1\n1 1:1\n", "promises 1 rows, but the file has 2"),
    ("huge.xmlc", b"1 99999999999 2\n0 0:1\n", "line 1: the header has '99999999999'"),
    ("digits.xmlc", b"1 " + b"9" * 5000 + b" 2\n0 0:1\n", "line 1: the header has '9999"),
    ("zeros.xmlc", b"1 2 2\n0 " + b"0" * 5000 + b"1:1 1:2\n", "line 2: a feature appears twice at byte 5007"),
    ("nothing.xmlc", b"0 0 0\n", "no rows"),
    ("no_labels.xmlc", b"1 2 2\n 0:1\n", "no row has a label"),
    ("feature.xmlc", b"2 2 2\n0 0:1\n1 2:1\n", "line 3: feature out of range"),
    ("label.xmlc", b"2 2 2\n0 0:1\n2 1:1\n", "line 3: label out of range"),
    ("minus.xmlc", b"1 2 2\n0 -1:1\n", "line 2: expected feature:value"),
    ("minus_label.xmlc", b"1 2 2\n-1 0:1\n", "line 2: expected label ids"),
    ("value.xmlc", b"1 2 2\n0 0:one\n", "line 2: the value of a feature is not a number"),
    ("nan.xmlc", b"1 2 2\n0 0:nan\n", "line 2: the value"),
    ("inf.xmlc", b"1 2 2\n0 0:1e39\n", "line 2: the value of a feature is too large"),
    ("colon.xmlc", b"1 2 2\n0 0=1\n", "line 2: expected feature:value"),
    ("twice.xmlc", b"1 2 2\n0 1:1 1:2\n", "line 2: a feature appears twice"),
    ("commas.xmlc", b"1 2 2\n0,,1 0:1\n", "line 2: expected label ids"),
    ("word_label.xmlc", b"1 2 2\ncat 0:1\n", "line 2: expected label ids"),
    ("binary.xmlc", b"1 2 2\n0 0:1\xff\n", "line 2: invalid UTF-8"),
    ("array.jsonl", b'["text"]\n', "line 1: expected a JSON object"),
    ("open.jsonl", b'{"text": "x", "labels": ["a"]}\n{"text": "x\n', "line 2"),
    ("no_text.jsonl", b'{"labels": ["a"]}\n', 'line 1: the JSON object has no key "text"'),
    ("number.jsonl", b'{"text": 3, "labels": ["a"]}\n', 'line 1: the value of "text" is not a string'),
    ("string.jsonl", b'{"text": "x", "labels": "a"}\n', 'line 1: the value of "labels" is not an array'),
    ("null.jsonl", b'{"text": "x", "labels": [null]}\n', "line 1: a label is neither"),
    ("empty_label.jsonl", b'{"text": "x", "labels": [""]}\n', "line 1: a label is empty"),
    ("two.jsonl", b'{"text": "x", "labels": ["a"]} {}\n', "line 1: not JSON ("),
    ("tab.jsonl", b'{"text": "x\ty", "labels": ["a"]}\n', "line 1: not JSON ("),
    ("escape.jsonl", b'{"text": "\\x41", "labels": ["a"]}\n', "line 1: not JSON ("),
    ("half.jsonl", b'{"text": "\\ud800", "labels": ["a"]}\n', "line 1: not JSON ("),
    ("deep.jsonl", b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b', "text": "x"}\n', "line 1: not JSON ("),
    ("quotes.jsonl", b"{'text': 'x'}\n", "line 1"),
    ("no_labels.jsonl", b'{"text": "x"}\n', "no row has a label"),
    ("no_tab.tsv", b"some text <http://e/1>\n", "line 1: expected a tab"),
    ("no_bracket.tsv", b"one\t<http://e/1>\ntwo\thttp://e/2\n", "line 2: expected a subject"),
    ("open_bracket.tsv", b"one\t<http://e/1>\ntwo\t<http://e/2\n", "line 2: expected a subject"),
    ("empty_bracket.tsv", b"one\t<http://e/1>\ntwo\t<>\n", "line 2: expected a subject"),
]


WEIGHTED = dict(weighted_words=True)
# fastText lines whose words have weights
BAD_WEIGHTS = [b"one:x", b"one:nan", b"one:inf", b"one:1e99", b"one:", b"one:1:2:"]

# content of a tree file for the labels a and b
BAD_TREES: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "has no lines"),
    ("only a comment", b"# r\n", "has no lines"),
    ("one field", b"r\n", ":1: a line is"),
    ("unknown label", b"r x a\nr y c\n", ":2: the data has no label 'c'"),
    ("missing label", b"- x a\n", "'b'"),
    ("label twice", b"r x a\nr y b\nr z a\n", ":3: the label 'a'"),
    ("two parents", b"r x a\nr y b\ny x a\n", ":3: node 'x' has a parent already"),
    ("two roots", b"r x a\ns y b\n", ":2: node 's' has no parent"),
    ("cycle of all", b"r x\nx r\n", "cycle"),
    ("cycle beside the root", b"r x a\nr y b\nu v\nv u\n", "cycle"),
    ("own parent", b"x x a\n", "cycle"),
    ("unary", b"r q\nq x a\nq y b\n", "single child"),
    ("label inside", b"r x a\nr y b\ny z b\n", ":2: node 'y' has the label 'b', but also children"),
    ("leaf without label", b"r x a\nr y\nr z b\n", ":2: node 'y' has neither"),
    ("binary", bytes(range(256)), ":"),
]

BAD_CONFIGS: list[tuple[str, bytes, str]] = [
    ("not TOML", b"dim = = 3\n", "not valid TOML"),
    ("not UTF-8", b"dim = 3 # \xff\n", "not valid TOML"),
    ("unknown key", b"dimension = 3\n", "'dimension'"),
    ("wrong type", b'dim = "many"\n', "dim must be a whole number, but is 'many'"),
    ("a section", b"[training]\nlr = 0.1\n", "'training'"),
    ("out of range", b"batch-size = 0\n", "batch_size must be at least 1, but is 0"),
    ("infinite", b"lr = inf\n", "lr must be finite"),
    ("beyond a float", b"lr = 1" + b"0" * 400, "lr must be finite"),
    ("too many digits", b"lr = 1" + b"0" * 5000, "not valid TOML"),
    ("too deep", b"lr = " + b"[" * 5000 + b"]" * 5000, "not valid TOML"),
    ("a list", b"dim = [3]\n", "dim must be of type int"),
    ("a date", b"seed = 2024-01-01\n", "seed must be of type int"),
]


def refuse(
    error: type[LabelTreeError], words: str, call: Callable[..., Any], *args: Any, **options: Any
) -> None:
    with pytest.raises(error) as caught:
        call(*args, **options)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "good.txt"
    path.write_bytes(GOOD_LINES)
    return path


def test_the_table_is_long_enough() -> None:
    n_cases = sum(map(len, (BAD_FILES, BAD_WEIGHTS, BAD_TREES, BAD_CONFIGS)))
    print(f"{n_cases} malformed files of data, trees and parameters")
    assert n_cases >= 80
    for table in (BAD_FILES, BAD_TREES, BAD_CONFIGS):
        assert len({case[0] for case in table}) == len(table)


@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES, ids=[case[0] for case in BAD_FILES])
def test_bad_file(
    name: str, content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for function in (labeltree.train, estimate):
        refuse(DataError, words, function, path, **SMALL)
        refuse(DataError, name, function, path, **SMALL)
    assert cli.main(["train", str(path), "-o", str(tmp_path / "out"), "-q"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert words in captured.err
    assert name in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("word", BAD_WEIGHTS)
def test_bad_weight_of_a_word(word: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weighted.txt"
    path.write_bytes(b"__label__a one:1 two:2\n__label__b " + word + b"\n")
    refuse(DataError, "line 2", labeltree.train, path, **SMALL, **WEIGHTED)
    model = labeltree.train(path, skip_bad_lines=True, **SMALL, **WEIGHTED)
    assert model.skipped_lines == 1
    assert model.label_names == ["a"]


@pytest.mark.parametrize(("content", "words"), [c[1:] for c in BAD_TREES], ids=[c[0] for c in BAD_TREES])
def test_bad_tree_file(content: bytes, words: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data.with_name("bad.tree")
    path.write_bytes(content)
    refuse(TreeError, words, labeltree.train, data, tree=str(path), **SMALL)
    refuse(TreeError, "bad.tree", labeltree.train, data, tree=str(path), **SMALL)
    assert cli.main(["train", str(data), "-o", str(data) + ".out", "--tree", str(path), "-q"]) == 1
    assert words in capsys.readouterr().err
    assert sorted(os.listdir(data.parent)) == ["bad.tree", "good.txt"]


@pytest.mark.parametrize(("content", "words"), [c[1:] for c in BAD_CONFIGS], ids=[c[0] for c in BAD_CONFIGS])
def test_bad_config_file(content: bytes, words: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data.with_name("bad.toml")
    path.write_bytes(content)
    refuse(ParameterError, words, make_config, file=path)
    assert cli.main(["train", str(data), "-o", str(data) + ".out", "--config", str(path), "-q"]) == 2
    assert words in capsys.readouterr().err
    assert sorted(os.listdir(data.parent)) == ["bad.toml", "good.txt"]


def test_bad_paths_and_formats(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "missing.txt", tmp_path / "empty", "", "a\0b"):
        refuse(DataError, str(path), labeltree.train, path, **SMALL)
    refuse(DataError, "Y", labeltree.train, data, [["a"]], **SMALL)
    refuse(ParameterError, "'yaml'", labeltree.train, data, format="yaml", **SMALL)
    refuse(ParameterError, "bad.toml", make_config, file=tmp_path / "bad.toml")
    refuse(ParameterError, str(tmp_path), make_config, file=tmp_path)
    for format in ("xmlc", "jsonl", "annif"):
        refuse(DataError, "line 1", labeltree.train, data, format=format, **SMALL)


def test_models_refuse_files_of_another_kind(data: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "rows.xmlc"
    vectors.write_text("2 2 2\n0 0:1\n1 1:1\n")
    text_model, vector_model = labeltree.train(data, **SMALL), labeltree.train(vectors, **SMALL)
    refuse(DataError, "rows.xmlc", text_model.read, vectors)
    refuse(DataError, "--format fasttext", text_model.read, vectors)
    refuse(DataError, "trained on text", text_model.read, vectors, format="xmlc")
    assert text_model.read(vectors, format="fasttext")[0].n_rows == 3
    refuse(DataError, "good.txt", vector_model.read, data)
    refuse(DataError, "give XMLC rows like 1 1:1 2:1, or", vector_model.read, data)
    refuse(DataError, "must be XMLC rows like 1 1:1 2:1, but", vector_model.read, data, format="annif")
    refuse(DataError, "good.txt", vector_model.read, data, format="fasttext")
    refuse(ParameterError, "'yaml'", text_model.read, data, format="yaml")
    refuse(DataError, "missing", text_model.read, tmp_path / "missing")


def test_bad_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(GOOD_LINES + b"__label__a \xff\n" + GOOD_LINES + b"__label__b \xfe\n")
    model = labeltree.train(path, skip_bad_lines=True, **SMALL)
    assert (model.skipped_lines, model.n_examples) == (2, 16)
    rows, labels, skipped = model.read(path, skip_bad_lines=True)
    assert (rows.n_rows, labels.n_rows, skipped) == (16, 16, 2)
    assert model.label_counts.tolist() == [8, 8]
