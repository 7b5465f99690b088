"""What docs/estimator.md says about cross-validation and pipelines, statement by statement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from labeltree.estimator import LabelTreeClassifier

TEXTS = ["red apple", "green pear", "red car", "green car", "apple pear", "red green car"] * 4
LISTS = [["red"], ["green"], ["red", "car"], ["green", "car"], [], ["red", "green", "car"]] * 4
SPARSE = MultiLabelBinarizer(sparse_output=True).fit_transform(LISTS)
TARGETS: dict[str, Any] = {
    "lists": LISTS,
    "sparse": SPARSE,
    "dense": SPARSE.toarray(),
    "classes": [(labels or ["none"])[0] for labels in LISTS],
}
CLASSIFIER = LabelTreeClassifier(threads=1)


def scores(y: Any, cv: Any) -> Any:
    return cross_val_score(CLASSIFIER, TEXTS, y, cv=cv, error_score="raise")


def several_scores(y: Any, cv: Any) -> Any:
    return cross_validate(CLASSIFIER, TEXTS, y, cv=cv, scoring="f1_micro", error_score="raise")["test_score"]


def search(y: Any, cv: Any, scoring: str | None = None) -> Any:
    grid = GridSearchCV(CLASSIFIER, {"threshold": [0.3, 0.5]}, cv=cv, scoring=scoring, error_score="raise")
    return grid.fit(TEXTS, y).cv_results_["mean_test_score"]


def search_with_scorer(y: Any, cv: Any) -> Any:
    return search(y, cv, "f1_micro")


def predictions(y: Any, cv: Any) -> Any:
    return cross_val_predict(CLASSIFIER, TEXTS, y, cv=cv)


def probabilities(y: Any, cv: Any) -> Any:
    return cross_val_predict(CLASSIFIER, TEXTS, y, cv=cv, method="predict_proba")


# The table of the page: what works with which y; lists always need a splitter.
WORKS = {
    scores: {"lists", "dense", "classes"},
    several_scores: {"dense", "classes"},
    search: {"lists", "sparse", "dense", "classes"},
    search_with_scorer: {"sparse", "dense", "classes"},
    predictions: {"sparse", "dense", "classes"},
    probabilities: {"dense", "classes"},
}


@pytest.mark.parametrize("y", TARGETS)
@pytest.mark.parametrize("call", WORKS)
def test_what_works_with_which_y(call: Any, y: str) -> None:
    if call is predictions and y == "lists":
        pytest.skip("it may not fail; why it must not be used has a test of its own")
    if y not in WORKS[call]:
        with pytest.raises(Exception):  # noqa: B017, PT011 - scikit-learn has many ways to say so
            call(TARGETS[y], KFold(3))
        return
    found = call(TARGETS[y], KFold(3))
    assert found.shape[0] in (2, 3, len(TEXTS))
    if y == "lists":
        with pytest.raises(ValueError, match="legacy multi-label data representation"):
            call(TARGETS[y], 3)
    else:
        assert call(TARGETS[y], 3).shape == found.shape


def test_predictions_of_lists_have_the_columns_of_each_fold() -> None:
    """Why cross_val_predict needs an indicator: the same column is another label in another fold."""
    lists = [["a"], ["b"], ["b"], ["c"]] * 2
    halves = [CLASSIFIER.fit(TEXTS[:3], lists[:3]).classes_, CLASSIFIER.fit(TEXTS[1:4], lists[1:4]).classes_]
    assert [half.tolist() for half in halves] == [["a", "b"], ["b", "c"]]


def test_scores_of_a_sparse_indicator_come_from_a_search_over_nothing() -> None:
    found = GridSearchCV(CLASSIFIER, {}, cv=KFold(3)).fit(TEXTS, SPARSE).cv_results_
    by_split = [found[f"split{number}_test_score"][0] for number in range(3)]
    assert by_split == scores(SPARSE.toarray(), KFold(3)).tolist()


def test_probabilities_of_a_sparse_indicator_come_from_a_loop() -> None:
    texts = np.array(TEXTS)
    parts = [
        clone(CLASSIFIER).fit(texts[train], SPARSE[train]).predict_proba(texts[test])
        for train, test in KFold(3).split(texts)
    ]
    found = sparse.vstack(parts)
    assert np.array_equal(found.toarray(), probabilities(SPARSE.toarray(), KFold(3)).toarray())


def test_the_best_labels_of_a_pipeline() -> None:
    pipeline = make_pipeline(TfidfVectorizer(), LabelTreeClassifier(threads=1)).fit(TEXTS, LISTS)
    found = pipeline[-1].predict_topk(pipeline[:-1].transform(TEXTS), k=2)
    assert len(found) == len(TEXTS)
    assert set(found[3]) == {"green", "car"}
    best = pipeline.predict_proba(TEXTS).argmax(axis=1)
    assert [labels[0] for labels in found] == pipeline.classes_[np.asarray(best).ravel()].tolist()
