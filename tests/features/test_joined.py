"""Dense vectors beside words or sparse rows: given, and made of texts by a package."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from support.small_data import LABELS, make_toy, write_fasttext

import labeltree
from labeltree.config import Config, parameters
from labeltree.data.rows import SparseRows
from labeltree.errors import (
    CorruptedModelError,
    DataError,
    MissingPackageError,
    ModelFileError,
    ParameterError,
)
from labeltree.features import embedding
from labeltree.features.embedded import EmbeddedFeatures
from labeltree.features.embedding import EMBEDDERS, Embedder
from labeltree.features.joined import JoinedFeatures
from labeltree.model import Model

TRAIN, TEST = make_toy(300, seed=0), make_toy(60, seed=1)
LENGTH = 6


def dense_of(toy: Any) -> NDArray[np.float64]:
    """Numbers that tell the labels, with noise, of any length."""
    random = np.random.default_rng(len(toy.texts))
    mixed = np.random.default_rng(0).normal(size=(len(LABELS), LENGTH))
    return 3.0 * toy.indicator @ mixed + random.normal(size=(len(toy.texts), LENGTH))


def pair_of(toy: Any, base: str) -> list[Any]:
    rows = toy.rows(base)
    return [csr_matrix(as_matrix(rows)) if base == "vectors" else rows, dense_of(toy)]


@pytest.fixture(scope="module", params=["text", "vectors"])
def base(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def model(base: str) -> Model:
    return labeltree.train(pair_of(TRAIN, base), TRAIN.Y, threads=1)


def as_matrix(rows: SparseRows) -> NDArray[np.float32]:
    return csr_matrix((rows.values, rows.indices, rows.indptr), (rows.n_rows, rows.n_columns)).toarray()


def test_a_row_is_both_blocks_of_their_weights(base: str) -> None:
    model = labeltree.train(pair_of(TRAIN, base), TRAIN.Y, dense_weight=2.0, trees=1, neighbours=0)
    alone = labeltree.train(TRAIN.rows(base), TRAIN.Y, trees=1, neighbours=0)
    features = model.features
    assert isinstance(features, JoinedFeatures)
    assert model.n_features == alone.n_features + LENGTH
    found = as_matrix(model._rows(pair_of(TEST, base)))
    words, dense = as_matrix(alone._rows(TEST.rows(base))), dense_of(TEST)
    expected = np.hstack([words, 2.0 * dense / np.linalg.norm(dense, axis=1, keepdims=True)])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert features.n_compared == alone.features.n_compared  # neighbours are similar by the words
    assert features.feature_name(0) == alone.features.feature_name(0)
    assert features.feature_name(model.n_features - 1) == "number 5 beside"


def test_they_are_learned_from(base: str) -> None:
    """Of rows that have nothing else."""
    empty = csr_matrix((300, 4)) if base == "vectors" else ["x"] * 300
    model = labeltree.train([empty, dense_of(TRAIN)], TRAIN.Y, neighbours=0, prune=0.0)
    few = csr_matrix((60, 4)) if base == "vectors" else [""] * 60
    assert model.test([few, dense_of(TEST)], TEST.Y)["p@1"] > 0.6


def test_one_row_is_a_batch_of_one(model: Model, base: str) -> None:
    rows, dense = pair_of(TEST, base)
    ids, probabilities = model.predict_arrays([rows, dense], 3)
    for row in range(10):
        one = model.predict_arrays([rows[row : row + 1], dense[row : row + 1]], 3)
        assert one[0].tolist() == ids[[row]].tolist()
        np.testing.assert_array_equal(one[1], probabilities[[row]])
    prepared = model._rows([rows, dense])  # the model's own features, as a matrix and row by row
    np.testing.assert_array_equal(model.predict_arrays(prepared, 3)[1], probabilities)
    matrix = csr_matrix((prepared.values, prepared.indices, prepared.indptr), (60, prepared.n_columns))
    np.testing.assert_array_equal(model.predict_arrays(matrix[3], 3)[1], probabilities[[3]])


def test_saved_and_loaded(model: Model, base: str, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    expected = model.predict_arrays(pair_of(TEST, base), 3)
    for other in (labeltree.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for a, b in zip(other.predict_arrays(pair_of(TEST, base), 3), expected, strict=True):
            np.testing.assert_array_equal(a, b)
        facts = other.inspect()
        assert (facts["input"], facts["beside"]) == (base, "vectors")


def test_threads_do_not_change_a_bit(base: str, tmp_path: Path) -> None:
    contents = []
    for threads in (1, 3):
        labeltree.train(pair_of(TRAIN, base), TRAIN.Y, threads=threads).save(tmp_path / "model")
        contents.append((tmp_path / "model").read_bytes())
    assert contents[0] == contents[1]


def test_rows_without_numbers_or_words(model: Model, base: str) -> None:
    rows, dense = pair_of(TEST, base)
    nothing = csr_matrix((1, rows.shape[1])) if base == "vectors" else [""]
    assert not model.knows([nothing, np.zeros((1, LENGTH))]).any()
    assert model.knows([nothing, dense[:1]]).all()
    assert model.knows([rows[:1], np.zeros((1, LENGTH))]).all()
    np.testing.assert_array_equal(
        as_matrix(model._rows([rows[:1], np.zeros((1, LENGTH))]))[:, -LENGTH:], np.zeros((1, LENGTH))
    )


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((60, LENGTH + 1)), r"of shape \(60, 7\), but must be \(60, 6\)"),
        (np.zeros((59, LENGTH)), r"of shape \(59, 6\), but must be \(60, 6\)"),
        (np.full((60, LENGTH), np.nan), r"row 0, column 0: the value is nan"),
        (np.full((60, LENGTH), 1e300), r"row 0, column 0: the value is 1e\+300"),
        (np.full((60, LENGTH), "a"), "must be a 2-D array of numbers"),
    ],
)
def test_bad_vectors_are_named(model: Model, base: str, vectors: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        model.predict([TEST.rows(base), vectors], 3)


def test_what_else_cannot_be(model: Model, base: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="X must be a pair"):
        model.predict(["a text"], 3)
    with pytest.raises(DataError, match="have 0 columns, but must have 1"):
        labeltree.train([TRAIN.rows(base), np.zeros((300, 0))], TRAIN.Y)
    with pytest.raises(
        ParameterError, match=r"dense_weight=1\.0 has no effect where embed is none and beside"
    ):
        labeltree.train(TRAIN.rows(base), TRAIN.Y, dense_weight=1.0)
    path = tmp_path / "data"
    path.write_text(write_fasttext(TEST))
    with pytest.raises(DataError, match="no file format has; call the model from Python"):
        model.test(path)


def test_held_out_rows_keep_their_vectors(base: str) -> None:
    X, dense = pair_of(TRAIN, base)
    features = labeltree.train([X, dense], TRAIN.Y, calibrate=False, neighbours=0).features
    rows, chosen = features.prepared(features.given_rows([X, dense])), np.arange(10, 30)
    found, before = as_matrix(features.as_unseen(rows, chosen)), as_matrix(rows)[chosen]
    of_found, of_before = found[:, -LENGTH:], before[:, -LENGTH:]
    scale = np.linalg.norm(of_found, axis=1) / np.linalg.norm(of_before, axis=1)
    np.testing.assert_allclose(of_found, of_before * scale[:, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-5)


def test_the_estimator_takes_pairs(base: str) -> None:
    from labeltree.estimator import LabelTreeClassifier

    rows, dense = pair_of(TRAIN, base)
    weight = np.ones(300)
    weight[:20] = 0.0
    found = LabelTreeClassifier(neighbours=0).fit([rows, dense], TRAIN.Y, sample_weight=weight)
    assert found.model_.n_examples == 280
    assert found.predict(pair_of(TEST, base)).shape == (60, len(found.classes_))
    assert found.score(pair_of(TEST, base), TEST.Y) > 0.8
    with pytest.raises(DataError, match="X must be a pair"):
        found.predict(TEST.texts)


# Vectors made of texts


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An embedder that needs no package: how often some letters occur."""

    def load() -> Any:
        def embed(texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([[text.count(letter) for letter in "abc123"] for text in texts], np.float32)

        return embed

    monkeypatch.setitem(EMBEDDERS, "wordllama", Embedder("wordllama", LENGTH, "embed", load))
    embedding._loaded.cache_clear()
    yield
    embedding._loaded.cache_clear()


@pytest.mark.usefixtures("counting")
def test_texts_are_embedded_when_trained_on_and_when_asked_about(tmp_path: Path) -> None:
    from_lists = labeltree.train(TRAIN.texts, TRAIN.Y, embed="wordllama", dense_weight=0.7)
    dense = EMBEDDERS["wordllama"](TRAIN.texts)
    given = labeltree.train([TRAIN.texts, dense], TRAIN.Y, dense_weight=0.7)
    assert isinstance(from_lists.features, EmbeddedFeatures)
    expected = given.predict_arrays([TEST.texts, EMBEDDERS["wordllama"](TEST.texts)], 3)
    from_lists.save(tmp_path / "model")
    for other in (from_lists, labeltree.load(tmp_path / "model")):
        for a, b in zip(other.predict_arrays(TEST.texts, 3), expected, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(other.predict_arrays(TEST.texts[:1], 3)[1], expected[1][:1])
    facts = from_lists.inspect()
    assert (facts["input"], facts["beside"], facts["config"]["embed"]) == ("text", "nothing", "wordllama")


@pytest.mark.usefixtures("counting")
def test_files_are_embedded_without_their_labels(tmp_path: Path) -> None:
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text(write_fasttext(TRAIN) + "__label__ an empty label\n")
    test.write_text("__label__ an empty label\n" + write_fasttext(TEST))
    of_file = labeltree.train(train, embed="wordllama", skip_bad_lines=True)
    assert of_file.skipped_lines == 1
    X, _, skipped = of_file.read(test, skip_bad_lines=True)
    assert skipped == 1
    expected = of_file.features.given_rows(TEST.texts)
    assert all(map(np.array_equal, X[:3], expected[:3]))


@pytest.mark.usefixtures("counting")
def test_what_cannot_be_embedded() -> None:
    with pytest.raises(ParameterError, match="embed=wordllama has no effect where input is vectors"):
        labeltree.train(TRAIN.X, TRAIN.Y, embed="wordllama")
    with pytest.raises(DataError, match="give one of both"):
        labeltree.train([TRAIN.texts, dense_of(TRAIN)], TRAIN.Y, embed="wordllama")
    with pytest.raises(ParameterError, match="embed needs texts"):
        Config(weighted_words=True, embed="wordllama").validate()
    with pytest.raises(DataError, match="row 1"):
        labeltree.train(TRAIN.texts, TRAIN.Y, embed="wordllama").predict(["a", 3], 1)


@pytest.mark.usefixtures("counting")
def test_a_file_whose_embedder_makes_other_vectors_is_refused() -> None:
    features = labeltree.train(TRAIN.texts, TRAIN.Y, embed="wordllama", neighbours=0).features
    tensors = features.tensors() | {"features.n_dense": np.array([7], np.int64)}
    with pytest.raises(CorruptedModelError, match=r"features.n_dense is 7, but embed is wordllama"):
        EmbeddedFeatures.from_tensors(tensors, features.config)
    for wrong in ([0], [1, 2], [1 << 40]):
        tensors["features.n_dense"] = np.array(wrong, np.int64)
        with pytest.raises(CorruptedModelError, match=r"features.n_dense is not one number"):
            EmbeddedFeatures.from_tensors(tensors, features.config)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_missing_package_is_named_with_what_installs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_folder", lambda package: (_ for _ in ()).throw(ImportError(package)))
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    embedding._loaded.cache_clear()
    extra = EMBEDDERS[name].extra
    with pytest.raises(
        MissingPackageError, match=rf"embed={name} needs .* pip install 'labeltree\[{extra}\]'"
    ):
        labeltree.train(TRAIN.texts, TRAIN.Y, embed=name)


def test_the_table_has_every_choice_of_the_config() -> None:
    choices = next(parameter.choices for parameter in parameters() if parameter.name == "embed")
    assert set(choices) == {"none", *EMBEDDERS}


@pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("wordllama") is None, reason="needs the extra embed"
)
def test_wordllama_makes_vectors_of_its_length() -> None:
    found = EMBEDDERS["wordllama"](["a cat", "a kitten", "the price of oil", ""])
    assert found.shape == (4, 256)
    assert not found[3].any()
    unit = found[:3] / np.linalg.norm(found[:3], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2]


@pytest.mark.usefixtures("counting")
def test_white_space_is_the_same_in_memory_and_in_a_file(tmp_path: Path) -> None:
    model = labeltree.train(TRAIN.texts, TRAIN.Y, embed="wordllama")
    file = tmp_path / "lines.txt"
    file.write_text("__label__topic-1  \n__label__topic-1 a  b\n")
    X, _, _ = model.read(file)
    for texts in (["", "a b"], [" ", " a   b "]):
        assert all(map(np.array_equal, X[:3], model.features.given_rows(texts)[:3]))


@pytest.mark.usefixtures("counting")
def test_a_package_with_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labeltree.train(TRAIN.texts, TRAIN.Y, embed="wordllama").save(tmp_path / "model")
    own = EMBEDDERS["wordllama"]

    def changed_by(change: float) -> Embedder:
        load = own.load()
        return own._replace(load=lambda: lambda texts: load(texts) + np.float32(change))

    for change, is_refused in ((1e-5, False), (1.0, True)):
        monkeypatch.setitem(EMBEDDERS, "wordllama", changed_by(change))
        embedding._loaded.cache_clear()
        model = labeltree.load(tmp_path / "model")
        if not is_refused:
            model.predict(TEST.texts[:1], 1)
            continue
        with pytest.raises(ModelFileError, match="other vectors than those that embed=wordllama makes now"):
            model.predict(TEST.texts[:1], 1)


@pytest.mark.usefixtures("counting")
def test_a_file_without_a_probe_is_taken_on_trust() -> None:
    features = labeltree.train(TRAIN.texts, TRAIN.Y, embed="wordllama", neighbours=0).features
    tensors = features.tensors()
    probe = tensors.pop("features.probe")
    old = EmbeddedFeatures.from_tensors(tensors, features.config)
    assert len(old.tensors()["features.probe"]) == 0
    assert all(map(np.array_equal, old.given_rows(["a"])[:3], features.given_rows(["a"])[:3]))
    with pytest.raises(CorruptedModelError, match=r"features.probe is not 6 finite numbers"):
        EmbeddedFeatures.from_tensors(tensors | {"features.probe": probe[1:]}, features.config)


def test_vectors_may_be_nested_lists() -> None:
    dense = dense_of(TRAIN)
    of_lists = labeltree.train([TRAIN.texts, dense.tolist()], TRAIN.Y)
    of_array = labeltree.train([TRAIN.texts, dense], TRAIN.Y)
    test = dense_of(TEST)
    expected = of_array.predict([TEST.texts, test], 3)
    assert of_lists.predict([TEST.texts, test.tolist()], 3) == expected


def test_what_cannot_stand_beside_texts() -> None:
    dense = dense_of(TRAIN)
    for beside in (dense[:, 0], dense[:, 0].tolist()):
        with pytest.raises(DataError, match=r"the vectors beside X must be a 2-D array .* shape \(300,\)"):
            labeltree.train([TRAIN.texts, beside], TRAIN.Y)
    with pytest.raises(DataError, match=r"the vectors beside X .* give all of them the same length"):
        labeltree.train([TRAIN.texts, [*dense.tolist()[:-1], [1.0]]], TRAIN.Y)
    with pytest.raises(DataError, match="vectors beside X are for trees of labels, but trees is 0"):
        labeltree.train([TRAIN.texts, dense], TRAIN.Y, trees=0, forest=3)
