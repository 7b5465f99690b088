"""A table of malformed data, arguments and trees: each ends in a named error that says where and what.

Model files have a table of their own in ``test_bad_model_files.py``.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import labeltree
from labeltree import cli
from labeltree.config import make_config
from labeltree.data.rows import SparseRows
from labeltree.errors import DataError, LabelTreeError, ParameterError, TrainingError, TreeError
from labeltree.training import estimate

GOOD_LINES = b"__label__a one two\n__label__b three four\n" * 4
TEXTS, Y = ["one two", "three four", "one four"], [["a"], ["b"], ["a", "b"]]
SMALL: dict[str, Any] = dict(dim=4, epochs=1)
GZIPPED, PACKED = gzip.compress(GOOD_LINES), lzma.compress(GOOD_LINES)

# name of the file, its content, what the message says beside the file's name
BAD_FILES: list[tuple[str, bytes, str]] = [
    ("empty.txt", b"", "no rows"),
    ("blank.txt", b"\n\n  \n", "no row has a label"),
    ("unlabelled.txt", b"just some words\nand more\n", "'__label__'"),
    ("latin1.txt", GOOD_LINES + b"__label__a caf\xe9\n", "line 9: invalid UTF-8"),
    ("utf16.txt", "__label__a word\n".encode("utf-16"), "line 1: invalid UTF-8"),
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
    ("huge.xmlc", b"1 99999999999 2\n0 0:1\n", "line 1: the header has 99999999999"),
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
    ("two.jsonl", b'{"text": "x", "labels": ["a"]} {}\n', "line 1: text after the end"),
    ("tab.jsonl", b'{"text": "x\ty", "labels": ["a"]}\n', "line 1: a control character"),
    ("escape.jsonl", b'{"text": "\\x41", "labels": ["a"]}\n', "line 1: an unknown escape"),
    ("half.jsonl", b'{"text": "\\ud800", "labels": ["a"]}\n', "line 1: half of a surrogate pair"),
    ("deep.jsonl", b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b', "text": "x"}\n', "line 1: JSON nested"),
    ("quotes.jsonl", b"{'text': 'x'}\n", "line 1"),
    ("no_labels.jsonl", b'{"text": "x"}\n', "no row has a label"),
    ("no_tab.tsv", b"some text <http://e/1>\n", "line 1: expected a tab"),
    ("no_bracket.tsv", b"one\t<http://e/1>\ntwo\thttp://e/2\n", "line 2: expected a subject"),
    ("open_bracket.tsv", b"one\t<http://e/1>\ntwo\t<http://e/2\n", "line 2: expected a subject"),
    ("empty_bracket.tsv", b"one\t<http://e/1>\ntwo\t<>\n", "line 2: expected a subject"),
]


def matrix(*values: Any) -> Any:
    return np.array(values)


def csr_with(**changes: Any) -> SparseRows:
    """Three rows of one feature each, one thing wrong."""
    arrays = dict(indptr=np.arange(4), indices=np.arange(3, dtype=np.int32), values=np.ones(3, np.float32))
    return SparseRows(**(arrays | changes), n_columns=3)


# what is wrong, the error, what its message says, positional arguments of train, parameters
BAD_DATA: list[tuple[str, type[LabelTreeError], str, tuple[Any, ...], dict[str, Any]]] = [
    ("no Y", DataError, "Y is missing", (TEXTS,), {}),
    ("X is None", DataError, "None", (None, Y), {}),
    ("X is a number", DataError, "3", (3, Y), {}),
    ("X is bytes", DataError, "list of texts", (b"one two", Y), {}),
    ("X is empty", DataError, "no rows", ([], []), {}),
    ("X has None", DataError, "row 1", (["one", None, "two"], Y), {}),
    ("X has bytes", DataError, "row 2", (["one", "two", b"three"], Y), {}),
    ("X has half a surrogate pair", DataError, "row 1", (["one", "\ud800", "two"], Y), {}),
    ("X is a vector", DataError, "2 dimensions", (np.arange(3.0), Y), {}),
    ("X has 3 axes", DataError, "2 dimensions", (np.ones((3, 2, 2)), Y), {}),
    ("X has rows of two lengths", DataError, "2-D", ([[1.0], [1.0, 2.0], [3.0]], Y), {}),
    ("X has NaN", DataError, "row 1, column 0", (matrix([1], [np.nan], [1]), Y), {}),
    ("X has infinity", DataError, "row 2, column 0", (matrix([1], [1], [-np.inf]), Y), {}),
    ("X has a sparse NaN", DataError, "row 1", (sp.csr_matrix(matrix([1], [np.nan], [1])), Y), {}),
    ("X exceeds 32-bit floats", DataError, "1e+39", (matrix([1.0], [1e39], [1.0]), Y), {}),
    ("X has strings", DataError, "numbers", (matrix(["a"], ["b"], ["c"]), Y), {}),
    ("X has objects", DataError, "numbers", (np.array([["a"], [1], [{}]], object), Y), {}),
    ("X is complex", DataError, "complex", (np.ones((3, 1), complex), Y), {}),
    ("a column too large", DataError, "row 2", (csr_with(indices=np.array([0, 1, 3], np.int32)), Y), {}),
    ("a negative column", DataError, "row 0", (csr_with(indices=np.array([-1, 1, 2], np.int32)), Y), {}),
    ("falling indptr", DataError, "indptr", (csr_with(indptr=np.array([0, 2, 1, 3])), Y), {}),
    ("indptr beyond the end", DataError, "indptr", (csr_with(indptr=np.array([0, 1, 2, 9])), Y), {}),
    ("Y too short", DataError, "X has 3 rows, but Y has 2", (TEXTS, Y[:2]), {}),
    ("Y too long", DataError, "X has 3 rows, but Y has 4", (TEXTS, [*Y, ["a"]]), {}),
    ("Y is a string", DataError, "'abc'", (TEXTS, "abc"), {}),
    ("Y is a number", DataError, "7", (TEXTS, 7), {}),
    ("Y has a string for a list", DataError, "row 1: 'b'", (TEXTS, [["a"], "b", ["c"]]), {}),
    ("Y has None for a list", DataError, "row 1: None", (TEXTS, [["a"], None, ["c"]]), {}),
    ("Y has a dict", DataError, "row 0", (TEXTS, [{"a": 1}, ["b"], ["c"]]), {}),
    ("Y has a float label", DataError, "row 2", (TEXTS, [["a"], ["b"], [0.5]]), {}),
    ("Y has a None label", DataError, "row 2", (TEXTS, [["a"], ["b"], [None]]), {}),
    ("Y has an empty label", DataError, "row 0", (TEXTS, [[""], ["b"], ["c"]]), {}),
    ("Y has half a surrogate pair", DataError, "Unicode", (TEXTS, [["\udc00"], ["b"], ["c"]]), {}),
    ("Y has no label at all", DataError, "no row has a label", (TEXTS, [[], [], []]), {}),
    ("Y is a matrix of zeros", DataError, "no row has a label", (TEXTS, np.zeros((3, 4))), {}),
    ("Y is a matrix with a 2", DataError, "row 1, column 0", (TEXTS, matrix([1, 0], [2, 0], [0, 1])), {}),
    ("Y is a matrix with NaN", DataError, "row 1", (TEXTS, matrix([1, 0], [np.nan, 0], [0, 1])), {}),
    ("weights too few", DataError, "(2,)", (TEXTS, Y), {"sample_weight": [1, 2]}),
    ("weights in two axes", DataError, "(3, 1)", (TEXTS, Y), {"sample_weight": np.ones((3, 1))}),
    ("a negative weight", DataError, "row 1", (TEXTS, Y), {"sample_weight": [1, -2, 1]}),
    ("a weight of NaN", DataError, "row 2", (TEXTS, Y), {"sample_weight": [1, 1, np.nan]}),
    ("an infinite weight", DataError, "row 0", (TEXTS, Y), {"sample_weight": [np.inf, 1, 1]}),
    ("all weights 0", DataError, "every row", (TEXTS, Y), {"sample_weight": [0, 0, 0]}),
    ("weights are words", DataError, "numbers", (TEXTS, Y), {"sample_weight": ["a", "b", "c"]}),
    ("unknown parameter", ParameterError, "'depth'", (TEXTS, Y), {"depth": 3}),
    ("arity of 1", ParameterError, "arity must be at least 2, but is 1", (TEXTS, Y), {"arity": 1}),
    ("dim of 0", ParameterError, "dim must be at least 1", (TEXTS, Y), {"dim": 0}),
    ("dim too large", ParameterError, "dim must be at most", (TEXTS, Y), {"dim": 10**9}),
    ("dim is a string", ParameterError, "dim must be of type int", (TEXTS, Y), {"dim": "8"}),
    ("dim is a fraction", ParameterError, "dim must be of type int", (TEXTS, Y), {"dim": 2.5}),
    ("dim is True", ParameterError, "dim must be of type int", (TEXTS, Y), {"dim": True}),
    ("lr is NaN", ParameterError, "lr must be finite", (TEXTS, Y), {"lr": float("nan")}),
    ("lr is negative", ParameterError, "lr must be at least 0", (TEXTS, Y), {"lr": -0.1}),
    ("l2 is infinite", ParameterError, "l2 must be finite", (TEXTS, Y), {"l2": float("inf")}),
    ("no epochs", ParameterError, "epochs must be at least 1", (TEXTS, Y), {"epochs": 0}),
    ("negative seed", ParameterError, "seed must be at least 0", (TEXTS, Y), {"seed": -1}),
    ("huge seed", ParameterError, "seed must be at most", (TEXTS, Y), {"seed": 2**64}),
    ("no trees", ParameterError, "trees must be at least 1", (TEXTS, Y), {"trees": 0}),
    ("unknown tf", ParameterError, "log, count, binary", (TEXTS, Y), {"tf": "square"}),
    ("unknown optimizer", ParameterError, "adagrad, sgd", (TEXTS, Y), {"optimizer": "adam"}),
    ("unknown nodes", ParameterError, "nodes must be one of", (TEXTS, Y), {"nodes": "cubic"}),
    ("unknown link", ParameterError, "link must be one of", (TEXTS, Y), {"link": "probit"}),
    ("unknown tree", ParameterError, "'oak'", (TEXTS, Y), {"tree": "oak"}),
    ("tree is a number", ParameterError, "tree must be of type str", (TEXTS, Y), {"tree": 2}),
    ("unknown preset", ParameterError, "'best'", (TEXTS, Y), {"preset": "best"}),
    ("preset and config", ParameterError, "both", (TEXTS, Y), {"preset": "paper", "config": make_config()}),
    ("negative threads", ParameterError, "threads must be at least 0", (TEXTS, Y), {"threads": -1}),
    ("half a thread", ParameterError, "threads must be at least 0", (TEXTS, Y), {"threads": 0.5}),
    ("empty prefix", ParameterError, "label_prefix", (TEXTS, Y), {"label_prefix": ""}),
    ("prefix with a space", ParameterError, "label_prefix", (TEXTS, Y), {"label_prefix": "a b"}),
    ("callback is no function", ParameterError, "callback", (TEXTS, Y), {"callback": 3}),
    (
        "weighted n-grams",
        ParameterError,
        "word_ngrams",
        (TEXTS, Y),
        {"weighted_words": True, "word_ngrams": 2},
    ),
    (
        "a step too large",
        TrainingError,
        "lr=1e+30",
        (TEXTS, Y),
        {"lr": 1e30, "optimizer": "sgd", "epochs": 9},
    ),
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
    ("wrong type", b'dim = "many"\n', "dim must be of type int, but is 'many'"),
    ("a section", b"[training]\nlr = 0.1\n", "'training'"),
    ("out of range", b"batch-size = 0\n", "batch_size must be at least 1, but is 0"),
    ("infinite", b"lr = inf\n", "lr must be finite"),
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
    n_cases = sum(map(len, (BAD_FILES, BAD_DATA, BAD_WEIGHTS, BAD_TREES, BAD_CONFIGS)))
    print(f"{n_cases} malformed inputs besides model files")
    assert n_cases >= 150
    for table in (BAD_FILES, BAD_DATA, BAD_TREES, BAD_CONFIGS):
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
    assert cli.main(["train", str(path), "-o", str(tmp_path / "out"), "--dim", "4", "-q"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert words in captured.err
    assert name in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("error", "words", "arguments", "parameters"),
    [case[1:] for case in BAD_DATA],
    ids=[c[0] for c in BAD_DATA],
)
def test_bad_data_or_parameter(
    error: type[LabelTreeError], words: str, arguments: tuple[Any, ...], parameters: dict[str, Any]
) -> None:
    refuse(error, words, labeltree.train, *arguments, **(SMALL | parameters))


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
    assert cli.main(["train", str(data), "-o", str(data) + ".out", "--config", str(path), "-q"]) == 1
    assert words in capsys.readouterr().err
    assert sorted(os.listdir(data.parent)) == ["bad.toml", "good.txt"]


def test_bad_paths_and_formats(data: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path, "", "a\0b"):
        refuse(DataError, str(path), labeltree.train, path, **SMALL)
    refuse(DataError, "Y", labeltree.train, data, Y, **SMALL)
    refuse(ParameterError, "'csv'", labeltree.train, data, format="csv", **SMALL)
    refuse(ParameterError, "bad.toml", make_config, file=tmp_path / "bad.toml")
    refuse(ParameterError, str(tmp_path), make_config, file=tmp_path)
    for format in ("xmlc", "jsonl", "annif"):
        refuse(DataError, "line 1", labeltree.train, data, format=format, **SMALL)


def test_models_refuse_files_of_another_kind(data: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "rows.xmlc"
    vectors.write_text("2 2 2\n0 0:1\n1 1:1\n")
    text_model, vector_model = labeltree.train(data, **SMALL), labeltree.train(vectors, **SMALL)
    refuse(DataError, "rows.xmlc", text_model.read, vectors)
    refuse(DataError, "good.txt", vector_model.read, data)
    refuse(DataError, "good.txt", vector_model.read, data, format="fasttext")
    refuse(ParameterError, "'csv'", text_model.read, data, format="csv")
    refuse(DataError, "missing", text_model.read, tmp_path / "missing")


def test_bad_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(GOOD_LINES + b"__label__a \xff\n" + GOOD_LINES + b"__label__b \xfe\n")
    model = labeltree.train(path, skip_bad_lines=True, **SMALL)
    assert (model.skipped_lines, model.n_examples) == (2, 16)
    rows, labels, skipped = model.read(path, skip_bad_lines=True)
    assert (rows.n_rows, labels.n_rows, skipped) == (16, 16, 2)
    assert model.label_counts.tolist() == [8, 8]
