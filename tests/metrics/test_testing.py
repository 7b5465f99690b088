"""`model.test`: the numbers of `labeltree test`, from a file or from memory, as a mapping and as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.small_data import N_LABELS, make_toy, write_fasttext, write_xmlc

import labeltree
from labeltree import cli, metrics
from labeltree.data.bad_lines import BadLines
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import DataError, ParameterError
from labeltree.features.reading import DataSet, LabelCounts
from labeltree.metrics.testing import Measures
from labeltree.model import Model

TRAIN, TEST = make_toy(150), make_toy(60, seed=4)
TREE: dict[str, Any] = dict(arity=2, max_leaves=3)
TIMED = {"seconds", "rows_per_second"}


@pytest.fixture(scope="module")
def model() -> Model:
    return labeltree.train(TRAIN.texts, TRAIN.Y, **TREE)


@pytest.fixture(scope="module")
def vector_model() -> Model:
    return labeltree.train(TRAIN.X, TRAIN.indicator, **TREE)


def untimed(measures: Any) -> dict[str, float]:
    return {key: value for key, value in measures.items() if key not in TIMED}


def test_a_file_gives_what_the_command_prints(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = tmp_path / "test.txt", tmp_path / "m"
    data.write_text(write_fasttext(TEST) + "__label__new nothing known\n")
    model.save(path)
    for options, how in [((), {}), (("-k", "2", "--normalize", "--search", "beam", "--beam", "1"),
                                    dict(k=2, normalize=True, search="beam", beam=1))]:  # fmt: skip
        measures = model.test(data, threads=1, **how)
        capsys.readouterr()
        assert cli.main(["test", str(path), str(data), "--json", *options]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert list(printed) == list(measures)
        assert untimed(printed) == untimed(measures)
        assert cli.main(["test", str(path), str(data), *options]) == 0
        captured = capsys.readouterr()
        # The speed is said only where it was measured for long enough, and may be in one of the two.
        assert captured.out.splitlines()[:6] == measures.lines()[:6]
        assert all(line in captured.err and line in repr(measures) for line in measures.notices)
    assert (measures["examples"], measures["unknown_labels"], len(measures.notices)) == (61, 1, 2)


@pytest.mark.parametrize("kind", ["text", "vectors"])
def test_memory_gives_what_the_file_gives(
    kind: str, model: Model, vector_model: Model, tmp_path: Path
) -> None:
    trained = model if kind == "text" else vector_model
    data = tmp_path / "test"
    data.write_text(write_fasttext(TEST) if kind == "text" else write_xmlc(TEST))
    expected = untimed(trained.test(data))
    rows, labels, _ = trained.read(data)
    names = TEST.Y if kind == "text" else [np.flatnonzero(row).tolist() for row in TEST.indicator]
    assert untimed(trained.test(TEST.rows(kind), names)) == expected
    assert untimed(trained.test(rows, labels)) == expected
    known = LabelRows(labels.indptr, labels.indices, N_LABELS)
    matrix = sp.csr_matrix((np.ones(len(known.indices)), known.indices, known.indptr), (60, N_LABELS))
    assert untimed(trained.test(TEST.rows(kind), matrix)) == expected
    assert expected["p@1"] > 0.5


def test_skipped_lines_are_counted(model: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "test.jsonl"
    data.write_text('{"text": "word0 word1", "labels": ["topic-0"]}\n{broken\n')
    with pytest.raises(DataError, match="line 2"):
        model.test(data)
    measures = model.test(data, skip_bad_lines=True)
    assert (measures["skipped"], measures["examples"]) == (1, 1)
    assert [record.levelname for record in caplog.records if record.name.startswith("labeltree")] == [
        "WARNING"
    ]
    assert "Skipped 1 bad row.\n" in caplog.text
    assert f"{data}, line 2: " in caplog.text
    data.write_text("{broken\n{as well\n")
    with pytest.raises(DataError, match="no rows to test on; 2 rows could not be read, the first: line 1: "):
        model.test(data, format="jsonl", skip_bad_lines=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(X=TEST.texts), "Y is missing"),
        (dict(X="test.txt", Y=TEST.Y), "Y must be None when X is a file"),
        (dict(X=TEST.texts, Y=TEST.Y[:-1]), "60 rows, but Y has 59"),
        (dict(X=TEST.texts, Y=LabelRows(np.zeros(3, np.int64), np.empty(0, np.int32), 12)), "60 rows"),
        (dict(X=[], Y=[]), "Y: no rows to test on"),
        (dict(X="no such file"), "no such file"),
    ],
)
def test_wrong_data_is_refused(arguments: dict[str, Any], message: str, model: Model) -> None:
    with pytest.raises((DataError, OSError), match=message):
        model.test(**arguments)


@pytest.mark.parametrize("how", [{"format": "jsonl"}, {"skip_bad_lines": True}])
def test_what_is_for_files_is_refused_for_data_in_memory(how: dict[str, Any], model: Model) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(how))}=.* has no effect where X is in memory"):
        model.test(TEST.texts, TEST.Y, **how)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", (), (1, 0), None, True, 10**7])
def test_wrong_ranks_are_refused(k: Any, model: Model) -> None:
    with pytest.raises(ParameterError, match="k must be numbers from 1 to 1000000, like"):
        model.test(TEST.texts, TEST.Y, k=k)


def test_ranks_are_sorted_and_may_exceed_the_labels(model: Model) -> None:
    measures = model.test(TEST.texts, TEST.Y, k=[np.int64(100), 2, 2])
    assert measures.lines()[0].split() == ["@2", "@100", "p>=0.5"]
    assert measures["r@100"] >= measures["r@2"]


@pytest.mark.parametrize("threshold", [0.02, 0.3])
def test_sets_are_all_labels_above_the_threshold(threshold: float, model: Model) -> None:
    """Also those that are not among the first k."""
    measures = model.test(TEST.texts, TEST.Y, k=1, threshold=threshold)
    above = model.predict_rows(TEST.texts, threshold)
    sets = LabelRows(above.indptr, above.indices, N_LABELS)
    names = {name: label for label, name in enumerate(model.label_names)}
    truth = [[names[name] for name in row] for row in TEST.Y]
    expected = metrics.evaluate_sets(sets, truth, N_LABELS)
    assert {key: measures[key] for key in expected} == expected
    assert measures.lines()[0].split()[-1] == f"p>={threshold:g}"


@pytest.mark.parametrize("threshold", [0, -1, 2, "much"])
def test_wrong_thresholds_are_refused(threshold: Any, model: Model) -> None:
    with pytest.raises(ParameterError, match="threshold must be"):
        model.test(TEST.texts, TEST.Y, threshold=threshold)


def made(seconds: float, name: str = "Y") -> Measures:
    """Measures of 3,000 rows of one label that the model does not know."""
    scores = dict.fromkeys(("p@1", "r@1", "ndcg@1", "psp@1", "ece@1"), 0.5)
    none = np.empty(0, np.int32)
    rows = SparseRows(np.zeros(3001, np.int64), none, none.astype(np.float32), 0)
    labels = LabelRows(np.arange(3001), np.full(3000, -1, np.int32), 1)
    found = np.zeros((3000, 1), np.int32), np.zeros((3000, 1), np.float32), np.ones(3000, np.bool_)
    data = DataSet(rows, labels, name, BadLines())
    return Measures(scores, [1], data, LabelCounts(3000, 3000, 0, 3000), found, seconds)


def test_a_speed_is_shown_only_where_it_was_measured() -> None:
    assert made(0.001).lines()[-1] == "3,000 rows"
    assert made(2.0).lines()[-1] == "3,000 rows; search alone: 2.0 s, 1,500 rows/s"


def test_a_notebook_shows_a_table() -> None:
    text = made(0.0, "<b>&.txt")._repr_html_()
    assert "<tr><td>precision</td><td>50.00</td><td></td></tr>" in text
    assert "3,000 rows<br>All 3,000 labels of &lt;b&gt;&amp;.txt are unknown" in text
