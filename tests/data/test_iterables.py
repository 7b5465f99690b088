"""Sources that give rows and labels together train the same model as the same rows in lists."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import labeltree
from labeltree.data import memory
from labeltree.errors import DataError, ParameterError
from labeltree.metrics.testing import Measures
from labeltree.training.driver import estimate

TEXTS = [f"word{i % 4} more{i % 3} {'last' * (i > 30)}" for i in range(40)]
LABELS = [[f"label{i % 4}", f"group{i % 2}"][: 1 + i % 3] for i in range(40)]
NAMES = sorted({label for labels in LABELS for label in labels})
X = csr_matrix([[float(i % 4), float(i % 3 == 0), 0.5] for i in range(40)])
INDICATOR = csr_matrix([[float(name in labels) for name in NAMES] for labels in LABELS])
SIZES = [0, 7, 1, 30, 2]


def content(model: labeltree.Model) -> bytes:
    """A pickle holds the bytes of the model file."""
    return pickle.dumps(model)


def scores(measures: Measures) -> dict[str, Any]:
    """All but how long it took."""
    return {key: value for key, value in measures.items() if "second" not in key}


def cut(rows: Any) -> list[Any]:
    """Into blocks of several sizes, one of them empty."""
    ends = np.cumsum(SIZES).tolist()
    return [rows[end - size : end] for size, end in zip(SIZES, ends, strict=True)]


def blocks(rows: Any = TEXTS, labels: Any = LABELS) -> list[tuple[Any, Any]]:
    return list(zip(cut(rows), cut(labels), strict=True))


def dicts(text: str = "text", labels: str = "labels") -> list[dict[str, Any]]:
    return [{"id": 7, labels: own, text: each} for each, own in zip(TEXTS, LABELS, strict=True)]


class Again:
    """Can be iterated over any number of times, and has no length."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make())


def table(**columns: Any) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def dataset(folder: Path) -> Any:
    """Of two files, whose columns have other names."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import dataset, parquet

    for number, part in enumerate((slice(0, 25), slice(25, 40))):
        columns = {"tags": LABELS[part], "id": list(range(40))[part], "body": TEXTS[part]}
        parquet.write_table(pyarrow.table(columns), folder / f"{number}.parquet")
    return dataset.dataset(folder)


SOURCES: dict[str, Callable[[], Any]] = {
    "list": blocks,
    "generator": lambda: (block for block in blocks()),
    "iterable": lambda: Again(blocks),
    "tuples": lambda: tuple((tuple(texts), tuple(map(tuple, labels))) for texts, labels in blocks()),
    "one row each": lambda: [([text], [own]) for text, own in zip(TEXTS, LABELS, strict=True)],
    "dicts": dicts,
    "dicts again": lambda: Again(dicts),  # as Hugging Face's data sets
    "dicts once": lambda: iter(dicts()),
    "table": lambda: table(text=TEXTS, labels=LABELS),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("block_rows", [memory.BLOCK_ROWS, 9])
def test_texts_give_the_same_bytes(name: str, block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = content(labeltree.train(TEXTS, LABELS))
    monkeypatch.setattr("labeltree.data.iterables.BLOCK_ROWS", block_rows)
    assert content(labeltree.train(SOURCES[name]())) == expected


def test_data_sets_of_pyarrow(tmp_path: Path) -> None:
    columns = {"text_column": "body", "labels_column": "tags"}
    source = dataset(tmp_path)
    model = labeltree.train(source, **columns)
    assert content(model) == content(labeltree.train(TEXTS, LABELS))
    assert scores(model.test(source, **columns)) == scores(model.test(TEXTS, LABELS))
    (tmp_path / "1.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="X: pyarrow cannot read it"):
        labeltree.train(source, **columns)


@pytest.mark.parametrize("labels", [LABELS, INDICATOR], ids=["lists", "matrix"])
@pytest.mark.parametrize("rows", [X, X.toarray()], ids=["sparse", "dense"])
@pytest.mark.parametrize("names", [None, NAMES])
def test_vectors_give_the_same_bytes(rows: Any, labels: Any, names: list[str] | None) -> None:
    expected = labeltree.train(rows, labels, label_names=names)
    model = labeltree.train(iter(blocks(rows, labels)), label_names=names)
    assert content(model) == content(expected)
    assert model.n_labels == len(NAMES)
    if not isinstance(labels, list) or names is not None:
        return
    assert scores(model.test(blocks(rows, labels))) == scores(expected.test(rows, labels))


def test_other_arguments_go_with_sources() -> None:
    weight = np.linspace(0, 1, 40)
    expected = labeltree.train(TEXTS, LABELS, sample_weight=weight, label_names=NAMES, link="hsm")
    model = labeltree.train(blocks(), sample_weight=weight, label_names=NAMES, link="hsm")
    assert content(model) == content(expected)
    renamed = dicts("body", "tags")
    assert labeltree.train(renamed, text_column="body", labels_column="tags").n_examples == 40
    as_strings = [row | {"labels": "|".join(row["labels"])} for row in dicts()]
    assert (
        labeltree.train(as_strings, label_separator="|").label_names
        == labeltree.train(TEXTS, LABELS).label_names
    )
    assert estimate(iter(blocks())).n_labels == estimate(TEXTS, LABELS).n_labels == len(NAMES)


@pytest.mark.parametrize("name", SOURCES)
def test_models_are_tested_on_sources(name: str) -> None:
    model = labeltree.train(TEXTS[:3], LABELS[:3])  # which does not know all labels
    found, expected = model.test(SOURCES[name]()), model.test(TEXTS, LABELS)
    assert scores(found) == scores(expected)
    assert found.notices == [line.replace(" Y ", " X ") for line in expected.notices]


def test_texts_are_not_kept() -> None:
    """Of a hundred blocks never more than a few are alive."""

    class Text(str):
        alive = 0

        def __init__(self, _: str) -> None:
            Text.alive += 1

        def __del__(self) -> None:
            Text.alive -= 1

    most = 0

    def made() -> Iterator[Any]:
        nonlocal most
        for i in range(100):
            yield [Text(f"word{i % 4} of row {row}") for row in range(1000)], [["a", "b"][: i % 2]] * 1000
            most = max(most, Text.alive)

    estimate(made())
    assert most < 40_000


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "X has no rows: nothing came"),
        (iter([]), "a generator can be used only once"),
        ([([], [])], "X: no rows to train on"),
        ([(["a"], [[]])], "X: no row has a label"),
        ([(["a"], [["x"]]), ["b"]], r"block 1: must be a pair \(texts or rows, labels\), but is \['b'\]"),
        ([(["a"], [["x"]], [1.0])], "Y is missing"),
        (["a", "b"], "Y is missing"),
        ([("a b", ["x"])], "block 0: must begin with a list of texts or a matrix, but begins with 'a b'"),
        ([(["a"], [["x"]]), (None, [["x"]])], "block 1: must begin with a list of texts or a matrix"),
        ([(["a"], [["x"]]), (["b", "c"], [["x"]])], "block 1: X has 2 rows, but Y has 1"),
        ([(["a"], [["x"]]), (["b", 3], [[], []])], "block 1: X, row 1: 3 is of type int"),
        ([(["a", None], [["x"], []])], "block 0: X, row 1: None is of type NoneType"),
        ([(["a", "\ud800"], [["x"], []])], "block 0: X, row 1: not valid Unicode"),
        ([(["a"], [["x"]]), (["b"], [None])], "block 1: Y, row 0: None instead of a list of labels"),
        ([(["a"], None)], "block 0: Y must be a list of lists of labels"),
        ([(["a"], [["x", ["y"]]])], "block 0: Y, row 0: a label must be a string or an integer"),
        ([(["a"], [["x", None]])], "block 0: Y, row 0: a label must be a string or an integer"),
        ([(["a"], ["x"])], "block 0: Y, row 0: 'x' is not a list of labels"),
        ([(["a"], [["x"]]), (csr_matrix([[1.0]]), [["x"]])], "block 1: X is texts in some blocks and a mat"),
        ([(csr_matrix([[1.0]]), [["x"]]), (["a"], [["x"]])], "block 1: X is texts in some blocks and a mat"),
        (
            [(csr_matrix([[1.0]]), [["x"]]), (csr_matrix([[1.0, 2.0]]), [["x"]])],
            "block 1: X has 2 columns, but the blocks before have 1; give all the same number",
        ),
        ([(["a"], csr_matrix([[1]])), (["a"], [["x"]])], "block 1: Y is a matrix here and lists of labels"),
        ([(["a"], csr_matrix([[1]])), (["a"], csr_matrix([[1, 0]]))], "block 1: Y has 2 columns, but there"),
        ([(csr_matrix([[np.nan]]), [["x"]])], "block 0: X, row 0, column 0: the value is nan"),
        ([{"text": "a"}], r"X, row 0: no column 'labels'.*it has 'text'; name one with labels_column"),
        ([{"text": "a", "labels": []}, {"labels": []}], "X, row 1: no column 'text'"),
        ([{"text": "a", "labels": ["x"]}, "b"], "X, row 1: must be a dict, as the first row is, but is 'b'"),
        ([{"text": "a", "labels": ["x"]}, {"text": None, "labels": []}], "^X, row 1: None is of type"),
        ([{"text": "a", "labels": [["x"]]}], "^Y, row 0: a label must be a string or an integer"),
        ([{"text": "a", "labels": ["x"]}, {"text": "a", "labels": 0.5}], "^Y, row 1: a label must be a str"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(source: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        labeltree.train(source)


def test_tables_that_do_not_suit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labeltree.data.iterables.BLOCK_ROWS", 2)
    with pytest.raises(DataError, match="X: no column 'labels'"):
        labeltree.train(table(text=["a"]))
    with pytest.raises(DataError, match=r'X: the column "labels" is of type list<.*list<'):
        labeltree.train(table(text=["a"], labels=[[["x"]]]))
    with pytest.raises(DataError, match="X, row 3: the text is null"):
        labeltree.train(table(text=["a", "b", "c", None], labels=["x", "y", "", ""]))
    with pytest.raises(DataError, match="X, row 2: a label is null"):
        labeltree.train(table(text=["a", "b", "c"], labels=[["x"], [], ["y", None]]))
    with pytest.raises(DataError, match="X has no rows"):
        labeltree.train(table(text=["a"], labels=["x"])[:0])


def test_what_has_no_effect_is_refused() -> None:
    with pytest.raises(ParameterError, match="text_column=body has no effect where X is in memory"):
        labeltree.train(blocks(), text_column="body")
    with pytest.raises(ParameterError, match="skip_bad_lines=yes has no effect"):
        labeltree.train(dicts(), skip_bad_lines=True)
    with pytest.raises(ParameterError, match="format=csv has no effect"):
        labeltree.train(dicts(), format="csv")
    with pytest.raises(ParameterError, match="tf"):
        labeltree.train(blocks(X), tf="count")
    with pytest.raises(DataError, match="Y, row 1: a label is not among the 1 label_names"):
        labeltree.train(blocks(), label_names=["label0"])


def test_models_refuse_blocks_of_another_kind() -> None:
    model = labeltree.train(X, LABELS)
    with pytest.raises(DataError, match="block 0: X is text, but the model was trained on vectors"):
        model.test([(["a"], [["x"]])])
    with pytest.raises(DataError, match="block 0: X has 2 features, but the model was trained with 3"):
        model.test([(csr_matrix([[1.0, 0.0]]), [["x"]])])
