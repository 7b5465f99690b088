"""Model: kinds of input, given labels, files read in its features, and what it says about itself."""

from __future__ import annotations

import copy
import io
import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from support.small_data import (
    LABELS,
    N_FEATURES,
    N_LABELS,
    empty_rows,
    make_toy,
    write_fasttext,
    write_xmlc,
)

import labeltree
from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.decisions.rule import RankingRule, ThresholdRule
from labeltree.errors import DataError, ModelFileError, ParameterError
from labeltree.features.strings import StringTable
from labeltree.model import Model
from labeltree.query import make_query
from labeltree.reference.text import fit_lines, split_line

TRAIN, TEST = make_toy(150), make_toy(60, seed=4)
SMALL: dict[str, Any] = dict(arity=2, max_leaves=3)


@pytest.fixture(scope="module")
def text_model() -> Model:
    return labeltree.train(TRAIN.texts, TRAIN.Y, **SMALL)


@pytest.fixture(scope="module")
def ensemble() -> Model:
    return labeltree.train(TRAIN.texts, TRAIN.Y, trees=3, **SMALL)


@pytest.fixture(scope="module")
def vector_model() -> Model:
    return labeltree.train(TRAIN.X, TRAIN.indicator, **SMALL)


def scipy_of(rows: SparseRows) -> Any:
    return sp.csr_matrix((rows.values, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_columns))


def n_features_of(texts: list[str]) -> int:
    """Words, and parts and pairs of them that two rows have."""
    lines = [split_line(text.encode(), Config(), labels_in_text=False) for text in texts]
    return fit_lines(lines, Config()).block_end[-1]


def same(one: Any, other: Any) -> bool:
    return all(map(np.array_equal, one, other))


def test_texts_of_every_kind(text_model: Model) -> None:
    expected = text_model.predict(TEST.texts)
    for X in (tuple(TEST.texts), iter(TEST.texts), np.array(TEST.texts)):
        assert text_model.predict(X) == expected


@pytest.mark.parametrize("name", ["text_model", "ensemble"])
def test_answers_to_known_short_texts(name: str, request: pytest.FixtureRequest) -> None:
    """The quick way of single texts is that of all others, where it is taken."""
    model: Model = request.getfixturevalue(name)
    for query in (make_query(3), make_query(10**6), make_query(5, 0.3), make_query(2, search="exact")):
        for text in TEST.texts[:20]:
            answers, is_exact = model.answer([text], query, 1)
            assert model.answer_known(text, query) == (answers[0], bool(is_exact[0]))
        for unknown in ("", "qqqq", "\ud800", f"{TEST.texts[0]} " * 10_000):
            assert model.answer_known(unknown, query) is None


def test_prepared_rows_are_what_the_texts_become(text_model: Model, tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text(write_fasttext(TEST))
    rows, labels, skipped = text_model.read(path)
    assert skipped == 0
    expected = text_model.predict_arrays(TEST.texts)
    assert same(text_model.predict_arrays(rows), expected)
    assert same(text_model.predict_arrays(scipy_of(rows)), expected)
    names = [text_model.label_names[id] for id in labels.indices]
    assert sorted(names) == sorted(label for row in TEST.Y for label in row)


def test_vectors_of_every_kind(vector_model: Model) -> None:
    expected = vector_model.predict_arrays(TEST.X)
    matrix = scipy_of(TEST.X)
    for X in (matrix, matrix.tocsc(), matrix.toarray(), matrix.toarray().tolist(), matrix.astype(np.float64)):
        assert same(vector_model.predict_arrays(X), expected)
    backwards = [slice(start, stop) for start, stop in pairwise(TEST.X.indptr)]
    order = np.concatenate([np.arange(part.stop - 1, part.start - 1, -1) for part in backwards])
    unsorted = SparseRows(TEST.X.indptr, TEST.X.indices[order], TEST.X.values[order], N_FEATURES)
    assert same(vector_model.predict_arrays(unsorted), expected)


def test_the_callers_arrays_stay_as_they_are(vector_model: Model) -> None:
    before = [array.copy() for array in TEST.X[:3]]
    vector_model.predict(TEST.X)
    labeltree.train(TEST.X, TEST.Y, **SMALL)
    assert same(before, TEST.X[:3])


def test_labels_of_a_file_that_the_model_does_not_know(text_model: Model, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text(
        '{"text": "word0", "labels": ["topic-0", "strange", "stranger", "strange"]}\n{"text": "x"}\n'
    )
    rows, labels, _ = text_model.read(path)
    assert (rows.n_rows, labels.n_labels) == (2, N_LABELS)
    assert labels.indptr.tolist() == [0, 3, 3]
    assert labels.indices.tolist() == [-1, -1, text_model.label_names.index("topic-0")]
    found = text_model.probability_rows(rows, labels)
    assert found[:2].tolist() == [0, 0]
    assert found[2] == text_model.probability(rows, ["topic-0"])[0, 0]


def test_xmlc_files_with_and_without_header(vector_model: Model, tmp_path: Path) -> None:
    path = tmp_path / "test.xmlc"
    path.write_text(write_xmlc(TEST))
    expected = vector_model.predict_arrays(TEST.X)
    rows, labels, _ = vector_model.read(path)
    assert same(vector_model.predict_arrays(rows), expected)
    assert len(labels.indices) == TEST.indicator.sum()
    path.write_text(write_xmlc(TEST).partition("\n")[2])
    rows, _, _ = vector_model.read(path)
    assert same(vector_model.predict_arrays(rows), expected)


@pytest.mark.parametrize("name", ["text_model", "ensemble"])
def test_given_labels(name: str, request: pytest.FixtureRequest) -> None:
    model: Model = request.getfixturevalue(name)
    everything = model.probability(TEST.texts, model.label_names)
    some = ["topic-3", "topic-0", "topic-3"]
    places = [model.label_names.index(label) for label in some]
    assert np.array_equal(model.probability(TEST.texts, some), everything[:, places])
    assert model.probability(TEST.texts, []).shape == (len(TEST.texts), 0)
    indptr = np.arange(len(TEST.texts) + 1) * 2
    given = LabelRows(indptr, np.tile(np.array([-1, 4], np.int32), len(TEST.texts)), N_LABELS)
    found = model.probability_rows(TEST.texts, given).reshape(-1, 2)
    assert np.all(found[:, 0] == 0)
    assert np.array_equal(found[:, 1], everything[:, 4])


def test_given_labels_must_fit(text_model: Model) -> None:
    none = LabelRows(np.zeros(2, np.int64), np.empty(0, np.int32), N_LABELS)
    with pytest.raises(DataError, match="60 rows"):
        text_model.probability_rows(TEST.texts, none)
    high = LabelRows(np.arange(2), np.array([N_LABELS], np.int32), N_LABELS + 1)
    with pytest.raises(DataError, match=f"{N_LABELS} is not below"):
        text_model.probability_rows(TEST.texts[:1], high)


def test_an_ensemble_is_the_mean_of_its_trees(ensemble: Model) -> None:
    parts = [
        Model(
            ensemble.config,
            ensemble.features,
            ensemble.labels,
            ensemble.label_counts,
            ensemble.n_examples,
            [expert],
        ).probability(TEST.texts, LABELS)
        for expert in ensemble.experts
    ]
    np.testing.assert_allclose(ensemble.probability(TEST.texts, LABELS), np.mean(parts, axis=0), rtol=1e-6)


@pytest.mark.parametrize("name", ["text_model", "ensemble"])
def test_limits_of_k_and_threshold(name: str, request: pytest.FixtureRequest) -> None:
    model: Model = request.getfixturevalue(name)
    X = TEST.texts[:3]
    assert same(model.predict_arrays(X, k=np.int64(4)), model.predict_arrays(X, k=4))
    assert model.predict_arrays(X, k=100_000)[0].shape == (3, 100_000)
    assert model.predict_rows(X, 0.0).indptr.tolist() == [0, N_LABELS, 2 * N_LABELS, 3 * N_LABELS]
    assert model.predict_rows(X, 1.0).n_rows == 3
    assert model.predict(X, k=3, threshold=1.0) == [[], [], []]
    assert model.predict(X, k=None, threshold=1.0) == [[], [], []]


def test_a_label_may_be_any_text(tmp_path: Path) -> None:
    names = ["a b", "tab\t", "é\u2028", "__label__x", "1:2", "<uri>", " ", "\U0001f33f", "'\"\\"]
    model = labeltree.train(TRAIN.texts[: len(names)], [[name] for name in names], **SMALL)
    model.save(tmp_path / "m")
    loaded = labeltree.load(tmp_path / "m")
    assert loaded.label_names == names
    assert loaded.probability(["word1"], names).shape == (1, len(names))


def test_what_a_model_says_about_itself(ensemble: Model, vector_model: Model) -> None:
    facts = json.loads(json.dumps(ensemble.inspect()))
    assert facts["config"] == ensemble.config.to_dict()
    assert (facts["input"], facts["n_labels"], facts["n_examples"]) == ("text", N_LABELS, 150)
    assert facts["n_features"] == ensemble.n_features == n_features_of(TRAIN.texts)
    assert [tree["n_labels"] for tree in facts["trees"]] == [N_LABELS] * 3
    assert [index["n_indexed_rows"] for index in facts["neighbours"]] == [150]
    parts = [expert.parameter_bytes for expert in ensemble.experts]
    assert parts[:3] == [sum(array.nbytes for array in tree.parameters) for tree in ensemble.experts[:3]]
    assert facts["parameter_bytes"] == sum(parts) > sum(parts[:3])
    assert vector_model.inspect()["input"] == "vectors"


def test_parameters_are_read_only_trained_or_loaded(text_model: Model, tmp_path: Path) -> None:
    text_model.save(tmp_path / "m")
    for model in (text_model, labeltree.load(tmp_path / "m")):
        for array in model.experts[0].parameters:
            assert not array.flags.writeable


def test_a_loaded_model_may_be_saved_over_its_own_file(text_model: Model, tmp_path: Path) -> None:
    path = tmp_path / "m"
    text_model.save(path)
    before = path.read_bytes()
    loaded = labeltree.load(path)
    loaded.save(path)
    assert path.read_bytes() == before
    assert loaded.predict(TEST.texts) == text_model.predict(TEST.texts)
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_empty_rows_among_others(text_model: Model) -> None:
    X = ["", *TEST.texts[:2], "", "unknown"]
    answers = text_model.predict(X, k=3)
    assert answers[0] == answers[3] == answers[4] == text_model.predict(empty_rows("text"), k=3)[0]
    assert answers[1:3] == text_model.predict(TEST.texts[:2], k=3)


@pytest.mark.parametrize("name", ["text_model", "ensemble", "vector_model"])
def test_pickles_and_copies(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    model: Model = request.getfixturevalue(name)
    X = TEST.X if name == "vector_model" else TEST.texts
    expected = model.predict(X)
    model.skipped_lines, model.skipped_messages = 3, ["line 7"]
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    model.save(tmp_path / "m")
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        copy.copy(model),
        joblib.load(file),
    ):
        assert other is not model
        assert other.predict(X) == expected
        assert (other.skipped_lines, other.skipped_messages) == (3, ["line 7"])
        other.save(tmp_path / "other")
        assert (tmp_path / "other").read_bytes() == (tmp_path / "m").read_bytes()
    broken = pickle.dumps(model)
    place = broken.index(b"__metadata__")
    with pytest.raises(ModelFileError):
        pickle.loads(broken[:place] + b"X" + broken[place + 1 :])


@pytest.mark.parametrize("name", ["text_model", "ensemble"])
def test_a_huge_k_of_predict_is_all_labels(name: str, request: pytest.FixtureRequest) -> None:
    model: Model = request.getfixturevalue(name)
    assert model.predict(TEST.texts, k=10**15) == model.predict(TEST.texts, k=N_LABELS)
    assert model.predict(TEST.texts, k=np.int64(2)) == model.predict(TEST.texts, k=2)
    for k in (-1, 1.0, True, np.float64(2), "3"):
        with pytest.raises(ParameterError, match="k must be at least 1"):
            model.predict(TEST.texts, k=k)
        with pytest.raises(ParameterError, match="k must be at least 1"):
            model.predict_arrays(TEST.texts, k=k)


@pytest.mark.parametrize("threads", [-1, 0.5, True, "2", None])
@pytest.mark.parametrize("n_rows", [0, 1, 60])
def test_threads_are_checked_however_few_the_rows(text_model: Model, threads: Any, n_rows: int) -> None:
    X = TEST.texts[:n_rows]
    for call in (
        lambda: text_model.predict(X, threads=threads),
        lambda: text_model.predict_arrays(X, threads=threads),
        lambda: text_model.predict_rows(X, 0.5, threads=threads),
        lambda: text_model.probability(X, LABELS, threads=threads),
    ):
        with pytest.raises(ParameterError, match="threads must be at least 0"):
            call()


def test_numbers_of_numpy_are_arguments(text_model: Model) -> None:
    expected = text_model.predict(TEST.texts, 3, threshold=0.25)
    assert (
        text_model.predict(TEST.texts, np.int8(3), threshold=np.float32(0.25), threads=np.int64(1))
        == expected
    )
    assert text_model.predict(TEST.texts, 3, threshold=np.int64(1)) == [[]] * 60


def test_a_file_read_in_blocks_is_the_whole(
    text_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "test.txt"
    path.write_text(write_fasttext(TEST) + "__label__new __label__new __label__newer words\n")
    whole_rows, whole_labels, _ = text_model.read(path)
    monkeypatch.setattr("labeltree.data.opening.BLOCK_BYTES", 300)
    rows, labels, _ = text_model.read(path)
    assert same(rows[:3], whole_rows[:3])
    assert same(labels[:2], whole_labels[:2])
    assert labels.indices[-2:].tolist() == [-1, -1]
    assert (rows.n_columns, labels.n_labels) == (text_model.n_features, N_LABELS)
    path.write_text("")
    rows, labels, _ = text_model.read(path)
    assert (rows.n_rows, rows.n_columns, labels.n_rows, labels.n_labels) == (
        0,
        text_model.n_features,
        0,
        N_LABELS,
    )


def test_repr_says_what_it_is(text_model: Model, ensemble: Model) -> None:
    shown = ", ".join(map(repr, text_model.label_names[:3]))
    assert repr(text_model.labels) == f"<StringTable of 12 strings: {shown}, ...>"
    assert repr(StringTable.from_strings(["a"])) == "<StringTable of 1 string: 'a'>"
    assert repr(StringTable()) == "<StringTable of 0 strings>"
    start = f"<labeltree.Model: {text_model.n_examples:,} rows, {N_LABELS} labels, "
    assert repr(text_model) == f"{start}{text_model.n_features:,} features, 1 tree, neighbours>"
    assert repr(ensemble).endswith("features, 3 trees, neighbours>")
    alone = labeltree.train(TRAIN.texts, TRAIN.Y, neighbours=0, **SMALL)
    assert repr(alone).endswith("features, 1 tree>")


@pytest.mark.parametrize(
    "X", ["one two", b"one", ["one two"], ("one",), np.array(["one"]), np.array(["a"], object)]
)
def test_a_model_of_vectors_refuses_text_by_name(X: Any, vector_model: Model) -> None:
    with pytest.raises(DataError, match="X is text, but the model was trained on vectors; give a matrix of"):
        vector_model.predict(X)


@pytest.mark.parametrize("k", [0, None, np.int64(0)])
def test_k_of_0_and_none_are_all_labels_above_the_threshold(text_model: Model, k: Any) -> None:
    expected = [
        [pair for pair in row if pair[1] >= 0.05] for row in text_model.predict(TEST.texts, k=N_LABELS)
    ]
    assert text_model.predict(TEST.texts, k=k, threshold=0.05) == expected
    asked = r"k 0 \(or None\) lists all labels above a threshold: "
    with pytest.raises(ParameterError, match=f"{asked}give a threshold"):
        text_model.predict(TEST.texts, k=k)
    with pytest.raises(ParameterError, match=f"{asked}search beam cannot"):
        text_model.predict(TEST.texts, k=k, threshold=0.1, search="beam")
    with pytest.raises(
        ParameterError, match=r"k must be at least 1, but is .*; predict and predict_rows give"
    ):
        text_model.predict_arrays(TEST.texts, k=k, threshold=0.1)


def test_a_row_that_is_no_matrix_is_refused_both_ways(vector_model: Model) -> None:
    """A single row has a quick way of its own: it must not take what the other refuses."""
    flat = sp.coo_array(np.ones(vector_model.n_features)).tocsr()
    if flat.ndim != 1:
        pytest.skip("this SciPy has no sparse vectors")
    for search in ("exact", "beam"):
        with pytest.raises(DataError, match="2 dimensions"):
            vector_model.predict(flat, search=search)


def test_a_huge_k_takes_no_memory_without_rows(text_model: Model) -> None:
    most = 2**31 - 1
    assert text_model.predict_arrays([], k=most)[0].shape == (0, most)
    with pytest.raises(DataError, match="wrap a single text in a list"):
        text_model.predict_arrays("word0", k=most)


def test_an_array_of_one_text_must_be_a_list(text_model: Model) -> None:
    with pytest.raises(DataError, match="wrap a single text in a list"):
        text_model.predict(np.array("word0"))


@pytest.mark.parametrize("threshold", ["a", None])
def test_a_threshold_that_is_no_number(text_model: Model, threshold: Any) -> None:
    for k in (None, 3):
        with pytest.raises(ParameterError, match="threshold must be"):
            text_model.predict(["word0"], k, threshold=threshold)


def test_what_is_explained_is_what_is_predicted() -> None:
    """By the model's rule, another, or none."""
    model = labeltree.train(TRAIN.texts, TRAIN.Y, neighbours=0, arity=2, max_leaves=3)
    random = np.random.default_rng(1)
    weight = random.choice([0.1, 1.0, 50.0], N_LABELS).astype(np.float32)
    plain = [label for label, _ in model.predict(TRAIN.texts[:1], 4)[0]]
    model.rule = rule = RankingRule("p@2", 2, weight, np.zeros(N_LABELS, np.float32))
    none = ThresholdRule("macro-f1", np.full(N_LABELS, 2.0, np.float32))
    text = TRAIN.texts[0]
    assert [label for label, _ in model.predict([text])[0]] != plain[:2]

    def explained(**how: Any) -> list[str]:
        return [found.label for found in model.explain(text, **how).labels]

    for how in (dict(), dict(k=1), dict(k=4), dict(rule=rule), dict(rule=none), dict(rule="none", k=4)):
        given = model.predict([text], **how)[0]
        assert explained(**how) == [label for label, _ in given]
        if "k" not in how:
            assert model.why_not(text, plain[3], **how).instead == given
    assert explained(rule="none") == plain[:3]
    assert [label for label, _ in model.why_not(text, plain[3], rule="none").instead] == plain[:3]
    for wrong, message in (
        (dict(label=5), "label must be a label or a list of labels, but is 5"),
        (dict(label=plain[0], k=7), "k=7 has no effect where labels are given"),
        (dict(rule="other"), "rule must be one of model, none"),
    ):
        with pytest.raises(ParameterError, match=message):
            model.explain(text, **wrong)
