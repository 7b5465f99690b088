"""Rows without anything that the model knows: they are told apart, and may be asked to get no labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.small_data import N_FEATURES, empty_rows, make_toy, take_rows, write_fasttext

import labeltree
from labeltree import cli
from labeltree.data.rows import SparseRows
from labeltree.errors import ParameterError
from labeltree.model import Model

TOY = make_toy(150)
KINDS = [("text", 1), ("text", 3), ("vectors", 1), ("vectors", 3)]
TREE: dict[str, Any] = dict(arity=2, max_leaves=3)


@pytest.fixture(scope="module", params=KINDS, ids=str)
def asked(request: pytest.FixtureRequest) -> tuple[Model, Any]:
    """A model, and rows of which the first, third and last are unknown to it."""
    kind, n_trees = request.param
    model = labeltree.train(TOY.rows(kind), TOY.Y, trees=n_trees, **TREE)
    if kind == "text":
        return model, ["", TOY.texts[0], "nothing \t known", TOY.texts[1], "  "]
    known = take_rows(TOY.X, [0, 1])
    zeros = [0.0, *known.values[: known.indptr[1]], *known.values[known.indptr[1] :], 0.0]
    indices = [3, *known.indices, 5]
    first, second = known.indptr[1:] + 1
    indptr = np.array([0, 1, first, first, second, second + 1])
    return model, SparseRows(indptr, np.array(indices, np.int32), np.array(zeros, np.float32), N_FEATURES)


KNOWN = np.array([False, True, False, True, False])


@pytest.mark.parametrize("how", [{}, {"search": "beam", "beam": 2}, {"threshold": 0.01}, {"normalize": True}])
def test_they_get_nothing_where_that_is_asked(asked: tuple[Model, Any], how: dict[str, Any]) -> None:
    model, X = asked
    assert model.knows(X).tolist() == KNOWN.tolist()
    usual = model.predict(X, k=4, **how)
    answers = model.predict(X, k=4, if_unknown="nothing", **how)
    assert answers == [row if known else [] for row, known in zip(usual, KNOWN, strict=True)]
    assert all(usual)
    assert usual == model.predict(X, k=4, if_unknown="labels", **how)
    one_by_one = [model.predict(take_rows(X, [i]), k=4, if_unknown="nothing", **how)[0] for i in range(5)]
    assert one_by_one == answers
    ids, probabilities = model.predict_arrays(X, k=4, if_unknown="nothing", **how)
    expected_ids, expected = model.predict_arrays(X, k=4, **how)
    np.testing.assert_array_equal(ids, np.where(KNOWN[:, None], expected_ids, -1))
    np.testing.assert_array_equal(probabilities, np.where(KNOWN[:, None], expected, 0.0))


def test_they_have_no_label_above_a_threshold(asked: tuple[Model, Any]) -> None:
    model, X = asked
    usual = model.predict(X, k=0, threshold=0.001)
    answers = model.predict(X, k=0, threshold=0.001, if_unknown="nothing")
    assert answers == [row if known else [] for row, known in zip(usual, KNOWN, strict=True)]
    rows = model.predict_rows(X, 0.001, if_unknown="nothing")
    assert np.diff(rows.indptr).tolist() == [len(row) for row in answers]
    assert len(rows.indices) == len(rows.values) == rows.indptr[-1]


@pytest.mark.parametrize("value", ["none", None, True, 1, ["nothing"]])
def test_what_they_get_is_one_of_two(asked: tuple[Model, Any], value: Any) -> None:
    model, X = asked
    for call in (model.predict, model.predict_arrays, lambda X, **how: model.predict_rows(X, 0.5, **how)):
        with pytest.raises(ParameterError, match="if_unknown must be one of labels, nothing, but is "):
            call(X, if_unknown=value)


def test_other_kinds_of_rows() -> None:
    model = labeltree.train(TOY.X, TOY.indicator, **TREE)
    dense = np.zeros((2, N_FEATURES))
    dense[1, 0] = 1.0
    for X in (dense, sp.csr_matrix(dense), sp.csc_array(dense)):
        assert model.knows(X).tolist() == [False, True]
        assert [len(row) for row in model.predict(X, k=2, if_unknown="nothing")] == [0, 2]
    assert model.knows(empty_rows("vectors", 0)).tolist() == []


def test_a_weight_of_0_says_nothing() -> None:
    """Also where it is the first of a row: a single text has a quick way of its own."""
    model = labeltree.train(["a:1 b:2", "b:1 c:3"] * 5, [["x"], ["y"]] * 5, weighted_words=True)
    texts = ["a:0 b:0", "a:0 b:2", "b:0 c:1 a:0"]
    assert model.knows(texts).tolist() == [False, True, True]
    answers = model.predict(texts, k=2, if_unknown="nothing")
    assert [len(row) for row in answers] == [0, 2, 2]
    assert [model.predict([text], k=2, if_unknown="nothing")[0] for text in texts] == answers


def test_the_command_marks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = tmp_path / "data.txt", tmp_path / "m"
    data.write_text(write_fasttext(TOY))
    labeltree.train(data, **TREE).save(path)
    new = tmp_path / "new.txt"
    new.write_text("word0 word1\nnothing known\n\n")
    capsys.readouterr()
    assert cli.main(["predict", str(path), str(new), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(row) for row in rows] == [["labels"], ["labels", "unknown"], ["labels", "unknown"]]
    assert [len(row["labels"]) for row in rows] == [5, 5, 5]
    assert rows[1]["unknown"] is True
    assert cli.main(["predict", str(path), str(new), "--json", "--if-unknown", "nothing"]) == 0
    marked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert marked == [rows[0], {"labels": [], "unknown": True}, {"labels": [], "unknown": True}]
    assert cli.main(["predict", str(path), str(new), "-k", "1", "--if-unknown", "nothing"]) == 0
    assert [bool(line) for line in capsys.readouterr().out.splitlines()] == [True, False, False]
    assert cli.main(["predict", str(path), str(new), "--if-unknown", "none"]) == 2
