"""The scikit-learn estimator: its conventions, its outputs, and where it departs from them on purpose."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.estimator_checks import check_estimator

import labeltree
from labeltree.config import PRESETS, Config, parameters
from labeltree.errors import DataError, LabelTreeError, ParameterError, TreeError
from labeltree.estimator import LabelTreeClassifier
from labeltree.trees.file import write_tree

# Reviewed: each is a decision of the design or of the method, none a defect to hide.
EXPECTED_FAILURES = {
    "check_classifiers_multilabel_representation_invariance": (
        "a list of lists is a list of label lists here, not the rows of an indicator matrix"
    ),
    "check_classifiers_multilabel_output_format_predict": (
        "multi-label predict is sparse: a dense array of a million labels would not fit in memory"
    ),
    "check_classifiers_multilabel_output_format_predict_proba": (
        "multi-label predict_proba is sparse and holds the k largest probabilities only"
    ),
    "check_sample_weight_equivalence_on_dense_data": (
        "Adagrad adds up squared gradients: one row of weight 2 counts as 4, two rows as 1 + 1; and repeated "
        "rows fall into other mini-batches"
    ),
    "check_sample_weight_equivalence_on_sparse_data": (
        "Adagrad adds up squared gradients: one row of weight 2 counts as 4, two rows as 1 + 1; and repeated "
        "rows fall into other mini-batches"
    ),
}

TOPICS = ["art", "biology", "chess", "dance", "ethics", "film"]


def small(**changes: Any) -> LabelTreeClassifier:
    return LabelTreeClassifier(**{"threads": 1} | changes)


def small_dense(**changes: Any) -> LabelTreeClassifier:
    return small(**{"nodes": "dense", "dim": 16, "epochs": 20, "batch_size": 8} | changes)


def make_texts(n_rows: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts whose words name their one to three topics, among noise: a tree must learn them all."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n_rows):
        topics = sorted(random.choice(TOPICS, random.integers(1, 4), replace=False).tolist())
        noise = [f"noise{number}" for number in random.integers(0, 30, 3)]
        texts.append(" ".join([f"about-{topic}" for topic in topics] + noise))
        labels.append(topics)
    return texts, labels


TRAIN_TEXTS, TRAIN_LABELS = make_texts(240, seed=1)
TEST_TEXTS, TEST_LABELS = make_texts(60, seed=2)


@pytest.fixture(scope="module")
def fitted() -> LabelTreeClassifier:
    return small().fit(TRAIN_TEXTS, TRAIN_LABELS)


@pytest.fixture(scope="module")
def matrices() -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    vectorizer = TfidfVectorizer(token_pattern=r"\S+").fit(TRAIN_TEXTS)
    return vectorizer.transform(TRAIN_TEXTS), vectorizer.transform(TEST_TEXTS)


def model_bytes(classifier: LabelTreeClassifier) -> bytes:
    """The content of the model file: what a pickle of the model holds."""
    return classifier.model_.__reduce__()[1][0]


def same(first: sparse.csr_matrix, second: sparse.csr_matrix) -> bool:
    return first.shape == second.shape and (first != second).nnz == 0


# --- conventions ---------------------------------------------------------------------------------------


def test_checks_of_scikit_learn_fail_only_where_reviewed() -> None:
    classifier = LabelTreeClassifier(threads=1)
    results = check_estimator(
        classifier, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None
    )
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"}
    assert failed == {}
    ran = {r["check_name"]: r["status"] for r in results if r["expected_to_fail"]}
    assert ran == dict.fromkeys(EXPECTED_FAILURES, "xfail")  # one that passes now must leave the list
    assert sum(r["status"] == "passed" for r in results) > 40


def test_parameters_are_those_of_config() -> None:
    values = LabelTreeClassifier().get_params()
    own = {"threads": 0, "threshold": 0.5, "k": 5, "search": "auto", "beam": None}
    assert values == {p.name: p.default for p in parameters() if p.name != "label_prefix"} | own
    for name in values:
        assert f"\n    {name} : default=" in (LabelTreeClassifier.__doc__ or "")


def test_constructor_takes_known_names_only() -> None:
    """As Python and scikit-learn do it, a TypeError; and as everywhere in the package, with a hint."""
    for error in (TypeError, ParameterError):
        with pytest.raises(error, match="unknown parameter 'epoch'; did you mean 'epochs'"):
            LabelTreeClassifier(epoch=3)
    with pytest.raises(TypeError, match="did you mean 'threshold'"):
        LabelTreeClassifier(treshold=0.3)
    assert LabelTreeClassifier(**PRESETS["paper"]).dim == PRESETS["paper"]["dim"]


def test_integer_labels_have_64_bits() -> None:
    classifier = LabelTreeClassifier().fit(["one", "two"], [[-(2**63)], [2**63 - 1]])
    assert classifier.predict_topk(["one", "two"], k=1) == [[-(2**63)], [2**63 - 1]]
    for label in (2**63, 10**400, 10**5000):
        with pytest.raises(DataError):
            LabelTreeClassifier().fit(["one", "two"], [[1], [label]])


def test_a_huge_k_is_all_labels() -> None:
    classifier = LabelTreeClassifier(k=2**63).fit(["one", "two"], [["a"], ["b"]])
    assert classifier.predict_topk(["one"]) == classifier.predict_topk(["one"], k=10**400) == [["a", "b"]]
    assert classifier.predict_proba(["one"]).nnz == 2


def test_set_params_and_clone() -> None:
    classifier = LabelTreeClassifier(dim=7).set_params(arity=5, threshold=0.25)
    copied = clone(classifier)
    assert (copied.dim, copied.arity, copied.threshold) == (7, 5, 0.25)
    assert not hasattr(copied, "model_")
    with pytest.raises(ValueError, match="arrity"):
        classifier.set_params(arrity=2)


def test_fit_validates_what_the_constructor_took() -> None:
    with pytest.raises(ParameterError, match=r"arity must be at least 2, .* but is 1"):
        small(arity=1).fit(TRAIN_TEXTS, TRAIN_LABELS)
    with pytest.raises(ParameterError, match="threads"):
        small(threads=-1).fit(TRAIN_TEXTS, TRAIN_LABELS)


def test_numbers_of_numpy_are_parameters_too() -> None:
    classifier = small_dense(dim=np.int64(8), lr=np.float32(0.25), idf=np.bool_(False), threads=np.int32(1))
    assert classifier.fit(TRAIN_TEXTS, TRAIN_LABELS).model_.config.dim == 8


def test_a_parameter_without_effect_is_an_error() -> None:
    with pytest.raises(ParameterError, match=r"lr=0\.3 has no effect where nodes is sparse"):
        small(lr=0.3).fit(TRAIN_TEXTS, TRAIN_LABELS)
    with pytest.raises(ParameterError, match="tf=count has no effect where input is vectors"):
        small(tf="count").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ParameterError, match="beam=3 has no effect where search is auto"):
        small(beam=3).fit(TRAIN_TEXTS, TRAIN_LABELS)


@pytest.mark.parametrize("how", [{"search": "breadth"}, {"search": "beam", "beam": 0}])
def test_fit_checks_the_search(how: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"search must be one of|beam must be at least 1"):
        small(**how).fit(TRAIN_TEXTS, TRAIN_LABELS)


def test_labels_above_the_threshold_are_found_exactly() -> None:
    deep = {"arity": 2, "max_leaves": 2, "neighbours": 0, "threshold": 0.01}  # a beam is of one tree
    exact = small(**deep).fit(TRAIN_TEXTS, TRAIN_LABELS)
    narrow = small(**deep, search="beam", beam=1).fit(TRAIN_TEXTS, TRAIN_LABELS)
    assert (exact.predict(TEST_TEXTS) != narrow.predict(TEST_TEXTS)).nnz == 0
    assert exact.predict_topk(TEST_TEXTS) != narrow.predict_topk(TEST_TEXTS)


def test_defaults_may_be_set_as_clones_do() -> None:
    """They cannot be told from what nobody gave."""
    copied = clone(small().set_params(lr=0.1, dim=256))
    assert copied.fit(TRAIN_TEXTS, TRAIN_LABELS).model_.config == Config()


def test_grid_search_over_a_parameter_without_effect_says_so() -> None:
    with pytest.raises(ValueError, match=r"lr=0\.2 has no effect where nodes is sparse"):
        GridSearchCV(small(), {"lr": [0.2, 0.3]}, cv=KFold(2)).fit(TRAIN_TEXTS, TRAIN_LABELS)


def test_parameters_may_be_strings() -> None:
    given = small_dense(dim="8", balanced="false", lr="0.1").fit(TRAIN_TEXTS, TRAIN_LABELS).model_.config
    assert (given.dim, given.balanced, given.lr) == (8, False, 0.1)


def test_public_name() -> None:
    assert labeltree.LabelTreeClassifier is LabelTreeClassifier
    assert is_classifier(LabelTreeClassifier())


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_topk"])
def test_not_fitted(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(LabelTreeClassifier(), method)(TEST_TEXTS)


def test_score_before_fit() -> None:
    with pytest.raises(NotFittedError):
        LabelTreeClassifier().score(TEST_TEXTS, TEST_LABELS)


# --- multi-label outputs -------------------------------------------------------------------------------


def test_learns_the_topics(fitted: LabelTreeClassifier) -> None:
    assert fitted.classes_.tolist() == TOPICS
    assert fitted.model_.label_names == TOPICS
    assert fitted.multilabel_
    assert not hasattr(fitted, "n_features_in_")
    assert fitted.score(TEST_TEXTS, TEST_LABELS) == 1.0
    truth = MultiLabelBinarizer(sparse_output=True).fit_transform(TEST_LABELS)
    assert f1_score(truth, fitted.predict(TEST_TEXTS), average="micro") > 0.95


def test_predict_is_an_indicator_of_labels_above_the_threshold(fitted: LabelTreeClassifier) -> None:
    probabilities = fitted.model_.probability(TEST_TEXTS, TOPICS)
    for threshold in (0.1, 0.5, 0.9):
        predicted = clone_with_model(fitted, threshold=threshold).predict(TEST_TEXTS)
        assert sparse.issparse(predicted)
        assert predicted.format == "csr"
        assert predicted.has_canonical_format
        assert predicted.dtype == np.int64
        # Not within rounding of the threshold, where two ways to compute may differ.
        clear = np.abs(probabilities - threshold) > 1e-5
        np.testing.assert_array_equal(predicted.toarray()[clear], (probabilities > threshold)[clear])


def test_predict_proba_is_the_top_k(fitted: LabelTreeClassifier) -> None:
    probabilities = fitted.model_.probability(TEST_TEXTS, TOPICS)
    for k in (1, 2, len(TOPICS), 50):
        found = clone_with_model(fitted, k=k).predict_proba(TEST_TEXTS)
        assert sparse.issparse(found)
        assert found.format == "csr"
        assert found.shape == (len(TEST_TEXTS), len(TOPICS))
        assert found.has_canonical_format
        assert np.diff(found.indptr).max() == min(k, len(TOPICS))
        lowest = np.sort(probabilities, axis=1)[:, -min(k, len(TOPICS))]
        expected = np.where(probabilities >= lowest[:, None], probabilities, 0)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-4, atol=1e-6)


def test_predict_topk_gives_labels_best_first(fitted: LabelTreeClassifier) -> None:
    expected = [[label for label, _ in row] for row in fitted.model_.predict(TEST_TEXTS, k=3)]
    assert fitted.predict_topk(TEST_TEXTS, k=3) == expected
    assert fitted.predict_topk(TEST_TEXTS[:2], k=100) == fitted.predict_topk(TEST_TEXTS[:2], k=len(TOPICS))
    assert [len(row) for row in fitted.predict_topk(TEST_TEXTS[:2])] == [5, 5]
    with pytest.raises(ParameterError, match="k must be an integer of at least 1, but is 0"):
        fitted.predict_topk(TEST_TEXTS, k=0)


def test_no_rows_and_unknown_words(fitted: LabelTreeClassifier) -> None:
    assert fitted.predict([]).shape == (0, len(TOPICS))
    assert fitted.predict_proba([]).shape == (0, len(TOPICS))
    assert fitted.predict_topk([]) == []
    assert np.isfinite(fitted.predict_proba(["never seen"]).data).all()


def test_score_is_precision_at_1(fitted: LabelTreeClassifier) -> None:
    best = [row[0] for row in fitted.predict_topk(TEST_TEXTS, k=1)]
    wrong = [[label for label in TOPICS if label != top] for top in best]
    assert fitted.score(TEST_TEXTS, wrong) == 0.0
    half = [[top] if row % 2 else ["unknown", "labels"] for row, top in enumerate(best)]
    assert fitted.score(TEST_TEXTS, half) == 0.5
    assert fitted.score(TEST_TEXTS, half, sample_weight=[row % 2 for row in range(len(half))]) == 1.0
    indicator = MultiLabelBinarizer(classes=TOPICS, sparse_output=True).fit_transform(TEST_LABELS)
    assert fitted.score(TEST_TEXTS, indicator) == fitted.score(TEST_TEXTS, TEST_LABELS)
    with pytest.raises(DataError, match="one class per row"):
        fitted.score(TEST_TEXTS, best)


def clone_with_model(fitted: LabelTreeClassifier, **changes: Any) -> LabelTreeClassifier:
    return copy.copy(fitted).set_params(**changes)


# --- what y may be -------------------------------------------------------------------------------------


def test_lists_and_indicators_give_the_same_model(matrices: tuple[Any, Any]) -> None:
    train, test = matrices
    binarizer = MultiLabelBinarizer(sparse_output=True)
    indicator = binarizer.fit_transform(TRAIN_LABELS)
    by_lists = small().fit(train, TRAIN_LABELS)
    by_sets = small().fit(train, [frozenset(row) for row in TRAIN_LABELS])
    assert model_bytes(by_lists) == model_bytes(by_sets)
    assert by_lists.n_features_in_ == train.shape[1]

    by_numbers = small().fit(train, [[TOPICS.index(label) for label in row] for row in TRAIN_LABELS])
    for y in (indicator, sparse.csc_array(indicator), indicator.toarray(), indicator.toarray().astype(bool)):
        by_indicator = small().fit(train, y)
        assert model_bytes(by_indicator) == model_bytes(by_numbers)
        assert by_indicator.classes_.tolist() == list(range(len(TOPICS)))
        assert same(by_indicator.predict(test), by_lists.predict(test))
        assert same(by_indicator.predict_proba(test), by_lists.predict_proba(test))


def test_integers_stay_integers() -> None:
    numbers = [[100 * (TOPICS.index(label) + 1) for label in row] for row in TRAIN_LABELS]
    classifier = small().fit(TRAIN_TEXTS, numbers)
    assert classifier.classes_.dtype == np.int64
    assert classifier.classes_.tolist() == [100, 200, 300, 400, 500, 600]  # not in the order of their digits
    label = classifier.predict_topk(["about-chess"], k=1)[0][0]
    assert type(label) is int
    assert label == 300
    assert classifier.model_.label_names[2] == "300"
    assert classifier.score(TRAIN_TEXTS, numbers) > 0.95


def test_labels_in_arrays() -> None:
    as_objects = np.empty(len(TRAIN_LABELS), object)
    as_objects[:] = TRAIN_LABELS
    expected = model_bytes(small().fit(TRAIN_TEXTS, TRAIN_LABELS))
    assert model_bytes(small().fit(np.array(TRAIN_TEXTS), as_objects)) == expected
    assert model_bytes(small().fit(np.array(TRAIN_TEXTS, object), tuple(TRAIN_LABELS))) == expected
    pairs = np.array([[row[0], row[-1]] for row in TRAIN_LABELS])
    assert small().fit(TRAIN_TEXTS, pairs).classes_.tolist() == TOPICS


def test_rows_and_columns_without_labels() -> None:
    indicator = sparse.lil_matrix((len(TRAIN_TEXTS), 9), dtype=np.int8)
    for row, labels in enumerate(TRAIN_LABELS):
        if "film" not in labels:
            indicator[row, [1 + TOPICS.index(label) for label in labels]] = 1
    classifier = small().fit(TRAIN_TEXTS, indicator)
    assert classifier.classes_.tolist() == list(range(9))
    predicted = classifier.predict([f"about-{topic}" for topic in TOPICS])
    assert predicted.shape == (6, 9)
    assert predicted[:5].indices.tolist() == [1, 2, 3, 4, 5]
    assert predicted[5].nnz == 0  # documents about films never have a label


def test_one_class_per_row() -> None:
    rows = [row for row, labels in enumerate(TRAIN_LABELS) if len(labels) == 1]
    texts, y = [TRAIN_TEXTS[row] for row in rows], [TRAIN_LABELS[row][0] for row in rows]
    classifier = small().fit(texts, y)
    assert not classifier.multilabel_
    assert classifier.classes_.tolist() == TOPICS
    predicted = classifier.predict(texts)
    assert predicted.shape == (len(texts),)
    assert classifier.score(texts, y) == np.mean(predicted == np.array(y)) > 0.95
    probabilities = classifier.predict_proba(texts)
    assert isinstance(probabilities, np.ndarray)
    assert probabilities.shape == (len(texts), len(TOPICS))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(classifier.classes_[probabilities.argmax(axis=1)], predicted)
    assert [row[0] for row in classifier.predict_topk(texts, k=2)] == predicted.tolist()


def test_a_tree_file_has_the_labels_names(tmp_path: Path) -> None:
    def numbered(lists: list[list[str]]) -> list[list[int]]:
        return [[100 - TOPICS.index(label) for label in row] for row in lists]

    for y, test in ((TRAIN_LABELS, TEST_LABELS), (numbered(TRAIN_LABELS), numbered(TEST_LABELS))):
        grown = small(tree="huffman", arity=2).fit(TRAIN_TEXTS, y)
        tree = grown.model_.label_trees[0]
        write_tree(tmp_path / "tree.txt", tree, grown.model_.label_names)
        given = small(tree=str(tmp_path / "tree.txt")).fit(TRAIN_TEXTS, y)
        assert given.model_.label_names == grown.model_.label_names
        depths = given.model_.label_trees[0].depth_of_leaves
        np.testing.assert_array_equal(depths, tree.depth_of_leaves)
        assert len(set(depths.tolist())) > 1  # else labels could be swapped unseen
        assert given.score(TEST_TEXTS, test) == 1.0
    (tmp_path / "tree.txt").write_text("root leaf art\n")
    with pytest.raises(TreeError, match=r"tree\.txt"):
        small(tree=str(tmp_path / "tree.txt")).fit(TRAIN_TEXTS, TRAIN_LABELS)
    with pytest.raises(ParameterError, match="absent"):
        small(tree="absent.txt").fit(TRAIN_TEXTS, TRAIN_LABELS)


def test_sample_weight_decides_between_contradicting_rows() -> None:
    texts = ["same words"] * 40
    labels = [["yes"], ["no"]] * 20
    for heavy in ("yes", "no"):
        weights = np.array([9.0 if row == [heavy] else 1.0 for row in labels])
        classifier = small(nodes="dense").fit(texts, labels, sample_weight=weights)
        no_yes = classifier.model_.probability(texts[:1], ["no", "yes"])[0]
        probabilities = dict(zip(["no", "yes"], no_yes, strict=True))
        assert probabilities.pop(heavy) > 0.75
        assert max(probabilities.values()) < 0.25


def test_weight_zero_is_an_absent_row() -> None:
    weights = np.ones(len(TRAIN_TEXTS))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    by_weight = small().fit(TRAIN_TEXTS, TRAIN_LABELS, sample_weight=weights)
    without = small().fit([TRAIN_TEXTS[row] for row in kept], [TRAIN_LABELS[row] for row in kept])
    assert same(by_weight.predict_proba(TEST_TEXTS), without.predict_proba(TEST_TEXTS))


# --- bad input -----------------------------------------------------------------------------------------

ROWS = ["some text", "other text"]


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ("some text", ["a"], None, "wrap a text in a list"),
        (ROWS, None, None, "y to be passed"),
        (ROWS, [["a"]], None, "X has 2 rows, but y has 1"),
        (ROWS, [["a"], "b"], None, "row 1: 'b' is not a list of labels"),
        (ROWS, [["a"], None], None, "row 1: None"),
        (ROWS, [["a"], {"b": 1}], None, "row 1: a dict"),
        (ROWS, [["a"], [1.5]], None, "row 1: .*1.5"),
        (ROWS, [["a"], [1]], None, "both strings and integers"),
        (ROWS, np.array([[0, 1], [2, 0]]), None, "row 1, column 0: .*only 0 and 1"),
        (["some text", None], [["a"], ["b"]], None, "row 1: None"),
        ([None, "some text"], [["a"], ["b"]], None, "row 0: None"),
        (ROWS, [["a"], ["b"]], [1.0], r"shape \(2,\)"),
        (ROWS, [["a"], ["b"]], [1.0, -1.0], "row 1: .*at least 0, but is -1.0"),
        (ROWS, [["a"], ["b"]], [np.nan, 1.0], "row 0: .*finite"),
        (ROWS, [["a"], ["b"]], [0, 0], "zero for every row"),
        (ROWS, [["a"], ["b"]], ["x", 1], "numbers only"),
        (ROWS, [[], []], None, "label"),
        (ROWS, ["", "a"], None, "empty string as a class"),
    ],
)
def test_bad_input_has_a_named_error(X: Any, y: Any, weight: Any, message: str) -> None:
    with pytest.raises(LabelTreeError, match=message):
        small().fit(X, y, sample_weight=weight)


def test_a_failed_fit_leaves_the_fitted_model(matrices: tuple[Any, Any]) -> None:
    train, test = matrices
    classifier = small().fit(train, TRAIN_LABELS)
    before = classifier.predict_proba(test)
    with pytest.raises(ParameterError):
        classifier.set_params(arity=1).fit(TRAIN_TEXTS, TRAIN_LABELS)
    assert same(classifier.predict_proba(test), before)


def test_features_must_be_those_of_fit(fitted: LabelTreeClassifier, matrices: tuple[Any, Any]) -> None:
    train, test = matrices
    classifier = small().fit(train, TRAIN_LABELS)
    message = f"X has 3 features, but LabelTreeClassifier is expecting {train.shape[1]}"
    with pytest.raises(ValueError, match=message):
        classifier.predict(test[:, :3])
    with pytest.raises(DataError, match="fit was given a matrix"):
        classifier.predict(TEST_TEXTS)
    with pytest.raises(DataError, match="fit was given texts"):
        fitted.predict(test)
    refitted = classifier.fit(TRAIN_TEXTS, TRAIN_LABELS)  # what an earlier fit saw is forgotten
    assert not hasattr(refitted, "n_features_in_")
    assert refitted.predict(TEST_TEXTS).shape == (len(TEST_TEXTS), len(TOPICS))


def test_threshold_and_k_are_checked(fitted: LabelTreeClassifier) -> None:
    for threshold in (-0.5, 1.5, "high"):
        with pytest.raises(ParameterError, match="threshold"):
            clone_with_model(fitted, threshold=threshold).predict(TEST_TEXTS)
    with pytest.raises(ParameterError, match="k must be"):
        clone_with_model(fitted, k=0).predict_proba(TEST_TEXTS)


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": 2.0},
        {"threshold": "atuo"},
        {"threshold": None},
        {"threshold": np.ones(2)},
        {"k": 0},
        {"k": 2.5},
    ],
)
def test_what_prediction_would_refuse_is_told_before_training(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("labeltree.estimator.train")
    with pytest.raises(ParameterError, match=f"{next(iter(settings))} must be"):
        LabelTreeClassifier(**settings).fit(TRAIN_TEXTS, TRAIN_LABELS)


# --- with the rest of scikit-learn ---------------------------------------------------------------------


def test_pickle_copy_and_joblib(fitted: LabelTreeClassifier) -> None:
    expected = fitted.predict_proba(TEST_TEXTS)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), joblib.load(file)):
        assert same(other.predict_proba(TEST_TEXTS), expected)
        assert other.get_params() == fitted.get_params()
        assert model_bytes(other) == model_bytes(fitted)  # a copy of a copy is the same file
    assert pickle.loads(pickle.dumps(small(dim=3))).dim == 3


def test_pipeline() -> None:
    pipeline = make_pipeline(TfidfVectorizer(token_pattern=r"\S+"), small_dense())
    pipeline.fit(TRAIN_TEXTS, TRAIN_LABELS)
    assert pipeline.score(TEST_TEXTS, TEST_LABELS) == 1.0
    assert pipeline.predict(TEST_TEXTS).shape == (len(TEST_TEXTS), len(TOPICS))
    pipeline.set_params(labeltreeclassifier__dim=8).fit(TRAIN_TEXTS, TRAIN_LABELS)
    assert pipeline[-1].model_.config.dim == 8
    assert make_pipeline(small()).fit(TRAIN_TEXTS, TRAIN_LABELS).score(TEST_TEXTS, TEST_LABELS) == 1.0


def test_grid_search_on_texts_with_label_lists() -> None:
    search = GridSearchCV(small_dense(), {"epochs": np.array([1, 20]), "lr": [0.001, 0.2]}, cv=KFold(2))
    search.fit(TRAIN_TEXTS, TRAIN_LABELS)
    assert search.best_params_ == {"epochs": 20, "lr": 0.2}
    assert search.best_score_ > 0.95
    assert search.best_estimator_.predict_topk(["about-dance"], k=1) == [["dance"]]


def test_grid_search_with_a_scorer_and_processes() -> None:
    indicator = MultiLabelBinarizer(sparse_output=True).fit_transform(TRAIN_LABELS)
    scorer = make_scorer(f1_score, average="micro")
    search = GridSearchCV(small(), {"threshold": [0.01, 0.5]}, scoring=scorer, cv=2, n_jobs=2)
    search.fit(TRAIN_TEXTS, indicator)
    assert search.best_params_ == {"threshold": 0.5}
    assert search.best_score_ > 0.9


def test_cross_validation_of_classes() -> None:
    rows = [row for row, labels in enumerate(TRAIN_LABELS) if len(labels) == 1]
    texts, y = [TRAIN_TEXTS[row] for row in rows], [TRAIN_LABELS[row][0] for row in rows]
    assert cross_val_score(small(), texts, y, cv=2, scoring="neg_log_loss").min() > -1.0


def test_probabilities_of_classes_are_of_all_of_them() -> None:
    """Dense probabilities are of all classes, however small, and rows sum to 1."""
    texts, y = ["about-a"] * 30 + ["about-b"] * 10, ["a"] * 30 + ["b"] * 10
    classifier = small(tree="flat").fit(texts, y)
    expected = classifier.model_.probability(["about-a", "x"], ["a", "b"])
    found = classifier.predict_proba(["about-a", "x"])
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)
    assert classifier.predict_proba([]).shape == (0, 2)
