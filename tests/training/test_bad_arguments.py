"""A table of malformed arrays, labels, weights and parameters: each ends in a named error that says what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import labeltree
from labeltree.config import make_config
from labeltree.data.rows import SparseRows
from labeltree.errors import (
    DataError,
    LabelTreeError,
    ModelFileError,
    ParameterError,
    TrainingError,
    TreeError,
)
from labeltree.model import Model
from labeltree.trees.file import write_tree

TEXTS, Y = ["one two", "three four", "one four"], [["a"], ["b"], ["a", "b"]]
SMALL: dict[str, Any] = dict(nodes="dense", dim=4, epochs=1)


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
    ("arity of 1", ParameterError, "arity must be at least 2, or 0", (TEXTS, Y), {"arity": 1}),
    ("dim of 0", ParameterError, "dim must be at least 1", (TEXTS, Y), {"dim": 0}),
    ("dim too large", ParameterError, "dim must be at most", (TEXTS, Y), {"dim": 10**9}),
    ("dim is a word", ParameterError, "dim must be a whole number", (TEXTS, Y), {"dim": "eight"}),
    ("dim without effect", ParameterError, "it needs nodes=dense or both", (TEXTS, Y), {"nodes": "sparse"}),
    ("dim is a fraction", ParameterError, "dim must be of type int", (TEXTS, Y), {"dim": 2.5}),
    ("dim is True", ParameterError, "dim must be of type int", (TEXTS, Y), {"dim": True}),
    ("lr is NaN", ParameterError, "lr must be finite", (TEXTS, Y), {"lr": float("nan")}),
    ("lr is negative", ParameterError, "lr must be at least 0", (TEXTS, Y), {"lr": -0.1}),
    ("l2 is infinite", ParameterError, "l2 must be finite", (TEXTS, Y), {"l2": float("inf")}),
    ("no epochs", ParameterError, "epochs must be at least 1", (TEXTS, Y), {"epochs": 0}),
    ("negative seed", ParameterError, "seed must be at least 0", (TEXTS, Y), {"seed": -1}),
    ("huge seed", ParameterError, "seed must be at most", (TEXTS, Y), {"seed": 2**64}),
    ("negative trees", ParameterError, "trees must be at least 0", (TEXTS, Y), {"trees": -1}),
    ("unknown tf", ParameterError, "log, count, binary", (TEXTS, Y), {"tf": "square"}),
    ("unknown optimizer", ParameterError, "adagrad, sgd", (TEXTS, Y), {"optimizer": "adam"}),
    ("unknown nodes", ParameterError, "nodes must be one of", (TEXTS, Y), {"nodes": "cubic"}),
    ("unknown link", ParameterError, "link must be one of", (TEXTS, Y), {"link": "probit"}),
    ("unknown tree", ParameterError, "'oak'", (TEXTS, Y), {"tree": "oak"}),
    ("tree is a number", ParameterError, "tree must be of type str", (TEXTS, Y), {"tree": 2}),
    ("unknown preset", ParameterError, "'better'", (TEXTS, Y), {"preset": "better"}),
    ("preset and config", ParameterError, "both", (TEXTS, Y), {"preset": "paper", "config": make_config()}),
    ("config is a dict", ParameterError, "by name, like trees=3", (TEXTS, Y), {"config": {"dim": 4}}),
    ("names are numbers", DataError, "label_names", (TEXTS, np.eye(3)), {"label_names": [1, 2, 3]}),
    ("negative threads", ParameterError, "threads must be at least 0", (TEXTS, Y), {"threads": -1}),
    ("half a thread", ParameterError, "threads must be at least 0", (TEXTS, Y), {"threads": 0.5}),
    ("empty prefix", ParameterError, "label_prefix", (TEXTS, Y), {"label_prefix": ""}),
    ("prefix with a space", ParameterError, "label_prefix", (TEXTS, Y), {"label_prefix": "a b"}),
    ("prefix with half a surrogate pair", ParameterError, "Unicode", (TEXTS, Y), {"label_prefix": "\ud800"}),
    ("format of texts", ParameterError, "format=jsonl has no effect", (TEXTS, Y), {"format": "jsonl"}),
    ("unknown format", ParameterError, "format must be one of", (TEXTS, Y), {"format": "yaml"}),
    ("bad lines of a matrix", ParameterError, "skip_bad_lines=yes", (np.eye(3), Y), {"skip_bad_lines": True}),
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
        {"nodes": "dense", "lr": 1e30, "optimizer": "sgd", "epochs": 9},
    ),
]


def test_the_table_is_long_enough() -> None:
    assert len({case[0] for case in BAD_DATA}) == len(BAD_DATA) >= 70


@pytest.mark.parametrize(
    ("error", "words", "arguments", "parameters"),
    [case[1:] for case in BAD_DATA],
    ids=[c[0] for c in BAD_DATA],
)
def test_bad_data_or_parameter(
    error: type[LabelTreeError], words: str, arguments: tuple[Any, ...], parameters: dict[str, Any]
) -> None:
    with pytest.raises(error) as caught:
        labeltree.train(*arguments, **(SMALL | parameters))
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1000


HUGE = {"2^63": 2**63, "beyond a float": 10**400, "beyond printing": 10**5000, "and negative": -(10**5000)}
# what is huge -> a call with it
HUGE_NUMBERS: dict[str, Callable[[Model, Any], Any]] = {
    "lr": lambda model, n: make_config({"lr": n * 10**400}),
    "dim": lambda model, n: make_config({"dim": n}),
    "seed": lambda model, n: make_config({"seed": n}),
    "a list": lambda model, n: make_config({"seed": [n]}),
    "tree": lambda model, n: make_config({"tree": n}),
    "preset": lambda model, n: make_config(preset=n),
    "config": lambda model, n: labeltree.train(TEXTS, Y, config=n),
    "callback": lambda model, n: labeltree.train(TEXTS, Y, callback=n),
    "format": lambda model, n: model.read("no file", format=n),
    "threads": lambda model, n: model.predict(TEXTS, threads=n),
    "threads of training": lambda model, n: labeltree.train(TEXTS, Y, threads=n),
    "k": lambda model, n: model.predict_arrays(TEXTS, k=n),
    "k of one row": lambda model, n: model.predict_arrays(TEXTS[:1], k=n),
    "k of no label": lambda model, n: model.predict(TEXTS, k=-abs(n)),
    "beam": lambda model, n: model.predict(TEXTS, search="beam", beam=-abs(n)),
    "search": lambda model, n: model.predict(TEXTS, search=n),
    "threshold": lambda model, n: model.predict(TEXTS, threshold=n),
    "labels": lambda model, n: model.probability(TEXTS, n),
    "a label": lambda model, n: model.probability(TEXTS, [n]),
    "labels of rows": lambda model, n: model.probability_rows(TEXTS, n),
    "X": lambda model, n: model.predict(n),
    "a text": lambda model, n: model.predict([n]),
    "a value": lambda model, n: labeltree.train([[1, 0], [n * 10**400, 1], [0, 1]], Y),
    "a weight": lambda model, n: labeltree.train(TEXTS, Y, sample_weight=[1, n * 10**400, 1]),
    "Y": lambda model, n: labeltree.train(TEXTS, n),
    "labels of a row": lambda model, n: labeltree.train(TEXTS, [["a"], n, ["b"]]),
    "a name": lambda model, n: labeltree.train(TEXTS, np.eye(3), label_names=["a", "b", n]),
}


@pytest.fixture(scope="module")
def model() -> Model:
    return labeltree.train(TEXTS, Y)


@pytest.mark.parametrize("number", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("case", HUGE_NUMBERS)
def test_huge_numbers_are_refused_by_name(case: str, number: int, model: Model) -> None:
    """Neither an OverflowError nor what Python says about numbers of more than 4,300 digits."""
    with pytest.raises(LabelTreeError) as caught:
        HUGE_NUMBERS[case](model, number)
    assert len(str(caught.value)) < 400


def test_huge_numbers_that_mean_something(model: Model) -> None:
    everything = model.predict(TEXTS, k=2)
    assert model.predict(TEXTS, k=2**63) == model.predict(TEXTS, k=10**5000) == everything
    assert model.predict(TEXTS, k=2, search="beam", beam=10**5000) == everything
    big = labeltree.train(TEXTS, [[1], [10**400], [2**63]])
    assert big.label_names == ["1", str(10**400), str(2**63)]
    with pytest.raises(DataError, match=r"row 1: .*too many digits; give it a name"):
        labeltree.train(TEXTS, [[1], [10**5000], [2]])


@pytest.mark.parametrize("labels", [None, 3, "a", b"a", np.array("a")])
def test_labels_to_score_are_a_list(labels: Any, model: Model) -> None:
    with pytest.raises(DataError, match=r"labels must be a list of labels, but is .*; wrap a"):
        model.probability(TEXTS, labels)
    with pytest.raises(DataError, match="labels must be LabelRows"):
        model.probability_rows(TEXTS, labels)


def test_names_that_no_file_has(model: Model) -> None:
    for name in ("\ud800", "a\0b"):
        with pytest.raises(TreeError, match="cannot be written"):
            write_tree(name, model.label_trees[0], model.label_names)
        with pytest.raises(ModelFileError):
            model.save(name)
