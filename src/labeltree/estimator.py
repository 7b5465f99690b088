"""The scikit-learn face: :class:`LabelTreeClassifier`. The only module that imports scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from labeltree.config import parameters
from labeltree.data.labels import label_rows
from labeltree.data.matrices import is_sparse
from labeltree.data.memory import row_weights
from labeltree.data.rows import LabelRows, pointers
from labeltree.errors import DataError, ParameterError, show
from labeltree.features.joined import JoinedFeatures, read_dense
from labeltree.features.vectors import VectorFeatures
from labeltree.model import Model
from labeltree.parameter import Parameter, check_names, parsed, plain
from labeltree.query import (
    DEFAULT_BEAM,
    DEFAULT_SEARCH,
    SET_THRESHOLD,
    Query,
    check_threshold,
    make_query,
    query_all,
)
from labeltree.training.driver import train
from labeltree.training.tuning import NothingHeldOut

_Function = TypeVar("_Function", bound=Callable[..., Any])

AUTO = "auto"  # as a threshold: what is best for _AUTO_MEASURE on held-out rows
_AUTO_MEASURE = "micro-f1"

# label_prefix only matters for files, and an estimator gets its labels separately.
_CONFIG_PARAMETERS: dict[str, Parameter] = {p.name: p for p in parameters() if p.name != "label_prefix"}
_OWN_PARAMETERS: dict[str, tuple[Any, str]] = {
    "threads": (0, "Threads of fit and predict (0: all CPUs); they never change the result."),
    "threshold": (
        0.5,
        "`predict` returns the labels of at least this probability (multi-label); or auto: that of the best "
        "micro-F1 on rows that `fit` holds out at first, 0.5 where there are too few.",
    ),
    "k": (5, "`predict_proba` and `predict_topk` keep this many labels of a row (multi-label)."),
    "search": (DEFAULT_SEARCH, "auto; exact, however long it takes; or beam: quicker, but may miss labels."),
    "beam": (None, f"Nodes of each level that the search by beam opens; None: {DEFAULT_BEAM}."),
}


def _config_signature(function: _Function) -> _Function:
    """Give ``function(self, **parameters)`` the signature that scikit-learn reads parameters from."""
    defaults = {name: p.default for name, p in _CONFIG_PARAMETERS.items()}
    defaults |= {name: default for name, (default, _) in _OWN_PARAMETERS.items()}
    arguments = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    arguments += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in defaults.items()
    ]
    function.__dict__["__signature__"] = inspect.Signature(arguments)
    return function


class LabelTreeClassifier(ClassifierMixin, BaseEstimator):
    """A label tree for scikit-learn: multi-label or multi-class, on texts or on (sparse) matrices.

    Fitted attributes: ``model_`` (the :class:`labeltree.Model`), ``classes_`` (sorted labels, the columns of
    all outputs), ``multilabel_``, and for matrices ``n_features_in_``.

    Parameters
    ----------
    """

    threads: int
    threshold: float | str
    k: int
    search: str
    beam: int | None

    @_config_signature
    def __init__(self, **parameters: Any) -> None:
        check_names(parameters, _HELP)
        bound = inspect.signature(LabelTreeClassifier.__init__).bind(self, **parameters)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LabelTreeClassifier:
        """Train on ``X`` (texts, or a sparse or dense matrix) and ``y``.

        ``y`` is one list, tuple or set of labels (strings or integers) per row, an indicator matrix (sparse
        or dense), or a 1-D array of classes: one per row. ``sample_weight`` has one number per row, >= 0.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, y, sample_weight)
        except BaseException:  # an estimator that was fitted before stays as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        features, n_rows = self._read_features(X, reset=True)
        target = _read_target(y)
        if target.labels.n_rows != n_rows:
            raise DataError(
                f"X has {n_rows} rows, but y has {target.labels.n_rows}; give each row its labels"
            )
        indicator = _indicator(target.labels)
        weights = row_weights(sample_weight, n_rows)
        if not weights.all():  # a weight of 0 is an absent row
            kept = np.flatnonzero(weights)
            features = _take(features, kept)
            indicator, weights = indicator[kept], weights[kept]
        self.check_settings()
        values = self.given_parameters()
        # Trained by column numbers, so that lists and matrices of the same labels give the same model.
        names = [str(label) for label in target.classes.tolist()]
        if "" in names:
            raise DataError("y has the empty string as a class; give it a name")
        given: dict[str, Any] = dict(sample_weight=weights, label_names=names, threads=self.threads, **values)
        training = partial(train, features, indicator, **given)
        self.model_ = self.train_by(training) if target.multilabel else training()
        self.classes_ = target.classes
        self.multilabel_ = target.multilabel

    def check_settings(self) -> None:
        """What prediction would refuse is told before the training."""
        self._query(_read_k(self.k))
        if not self._is_auto:
            check_threshold(self.threshold)

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.threshold, str) and self.threshold == AUTO

    def train_by(self, training: Callable[..., Model]) -> Model:
        """With a rule, where the threshold is left to the data and there is enough of it."""
        if not self._is_auto:
            return training()
        try:
            return training(tune_for=_AUTO_MEASURE)
        except NothingHeldOut:
            return training()

    def with_model(self, model: Model) -> LabelTreeClassifier:
        """Itself, fitted by what trained a model elsewhere; classes are in the order of its labels."""
        self.model_, self.multilabel_ = model, True
        self.classes_ = np.array(model.label_names, object)
        if model.features.input == VectorFeatures.input:
            self.n_features_in_ = model.features.n_columns
        return self

    def given_parameters(self) -> dict[str, Any]:
        """Those that differ from the defaults: scikit-learn sets all of them when it clones."""
        values = {name: parsed(p, getattr(self, name)) for name, p in _CONFIG_PARAMETERS.items()}
        return {name: value for name, value in values.items() if value != _CONFIG_PARAMETERS[name].default}

    def predict(self, X: Any) -> Any:
        """A CSR indicator of the labels of probability >= ``threshold``; for a 1-D ``y`` the best classes.

        Where ``model_.rule`` was set, by a threshold of "auto" or what `model_.tune` gave, that says which.
        All labels above a threshold are found exactly: only the best classes are searched for by a beam.
        """
        features, _ = self._read_features(X)
        if not self.multilabel_:
            ids, _ = self._topk(features, 1)
            return self.classes_[ids[:, 0]]
        threshold = SET_THRESHOLD if self._is_auto else self.threshold
        query = self.model_.ruled(query_all(threshold))
        if query.rule is None:
            rows = self.model_.above(features, query, self.threads)
        else:
            rows, _ = self.model_.decided(features, query._replace(threshold=np.float32(0.0)), self.threads)
        return _indicator(LabelRows(rows.indptr, rows.indices, rows.n_columns))

    def predict_proba(self, X: Any) -> Any:
        """A CSR matrix of the ``k`` largest probabilities of each row: each label's own, not summing to 1.

        For a 1-D ``y``, where one class excludes the others: a dense (n_rows, n_classes) array with rows
        rescaled to sum to 1. With very many classes use ``predict_topk`` or ``model_`` instead.
        """
        features, n_rows = self._read_features(X)
        n_labels = len(self.classes_)
        if self.multilabel_:
            k = min(_read_k(self.k), n_labels)
            ids, probabilities = self._topk(features, k)
            found = probabilities > 0
            indptr = pointers(found.sum(axis=1))
            matrix = csr_matrix((probabilities[found], ids[found], indptr), shape=(n_rows, n_labels))
            matrix.sort_indices()
            return matrix
        rows = self.model_.predict_rows(features, 0.0, threads=self.threads)
        dense = np.zeros((n_rows, n_labels))
        dense[np.repeat(np.arange(n_rows), np.diff(rows.indptr)), rows.indices] = rows.values
        dense[~dense.any(axis=1)] = self.model_.label_counts  # all too small for a float: the prior
        return dense / dense.sum(axis=1, keepdims=True)

    def predict_topk(self, X: Any, k: int | None = None) -> list[list[Any]]:
        """The ``k`` most probable labels of each row, best first, as they were given to ``fit``."""
        features, _ = self._read_features(X)
        k = min(_read_k(self.k if k is None else k), len(self.classes_))
        ids, _ = self._topk(features, k)
        classes = self.classes_.tolist()
        return [[classes[id] for id in row if id >= 0] for row in ids.tolist()]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Precision at 1: how often the most probable label is right (for a 1-D ``y``: the accuracy)."""
        if not self.__sklearn_is_fitted__() or not self.multilabel_:
            return float(super().score(X, y, sample_weight))
        features, n_rows = self._read_features(X)
        if not is_sparse(y) and _kind(y) == "classes":
            raise DataError("y has one class per row, but fit was given several labels per row; wrap each")
        truth, _ = label_rows(y, self.model_.label_names, n_rows=n_rows)
        best, _ = self._topk(features, 1)
        row = np.repeat(np.arange(n_rows), np.diff(truth.indptr))
        right = (truth.indices >= 0) & (truth.indices == best[row, 0])
        hits = np.bincount(row[right], minlength=n_rows)
        return float(np.average(hits, weights=row_weights(sample_weight, n_rows)))

    def _topk(self, features: Any, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.model_.best(features, self._query(k), self.threads)[:2]

    def _query(self, k: int) -> Query:
        """For the best k labels, found by the search that was chosen."""
        return make_query(k, search=self.search, beam=self.beam)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def _read_features(self, X: Any, *, reset: bool = False) -> tuple[Any, int]:
        """A list of texts or a matrix of finite numbers, and its number of rows."""
        if not reset:
            check_is_fitted(self)
        if JoinedFeatures.recognises(X):  # the model checks both parts
            return self._read_pair(X, reset)
        texts = _texts(X)
        on_texts = not reset and not hasattr(self, "n_features_in_")
        if texts is None and on_texts and not is_sparse(X) and np.size(X) == 0:
            texts = []
        if texts is None:
            if on_texts:
                raise DataError("X is a matrix, but fit was given texts; give a list of texts")
            matrix = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric")
            return matrix, matrix.shape[0]
        if not reset and not on_texts:
            raise DataError(f"X has texts, but fit was given a matrix of {self.n_features_in_} features")
        if reset:
            self._forget_columns()
        return texts, len(texts)

    def _read_pair(self, X: Any, reset: bool) -> tuple[Any, int]:
        """Texts or rows, and the vectors beside them."""
        if reset:
            self._forget_columns()
        elif hasattr(self, "n_features_in_"):
            raise DataError("X has vectors beside the rows, but fit was given a matrix alone")
        texts, vectors = _texts(X[0]), read_dense(X[1])
        rows: Any = csr_matrix(X[0]) if texts is None else texts
        n_rows = rows.shape[0] if texts is None else len(rows)
        if n_rows != len(vectors):
            raise DataError(f"X has {n_rows} rows, and {len(vectors)} vectors beside them; give one each")
        return (rows, vectors), n_rows

    def _forget_columns(self) -> None:
        """What an earlier fit has found."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)


_HELP = {name: (p.default, p.full_help) for name, p in _CONFIG_PARAMETERS.items()} | _OWN_PARAMETERS
LabelTreeClassifier.__doc__ = (LabelTreeClassifier.__doc__ or "").rstrip() + "".join(
    f"\n    {name} : default={default!r}\n        {text}" for name, (default, text) in _HELP.items()
)


class _Target(NamedTuple):
    labels: LabelRows  # ids are positions in classes
    classes: NDArray[Any]  # sorted
    multilabel: bool


def _read_target(y: Any) -> _Target:
    if y is None:
        raise DataError("LabelTreeClassifier requires y to be passed, but the target y is None")
    kind = _kind(y)
    if kind == "classes":
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, ids = np.unique(y, return_inverse=True)
        indptr = np.arange(len(y) + 1)
        return _Target(LabelRows(indptr, ids.astype(np.int32), len(classes)), classes, multilabel=False)
    labels, names = label_rows(y if is_sparse(y) or kind == "lists" else np.asarray(y))
    if kind == "indicator":
        return _Target(labels, np.arange(len(names)), multilabel=True)
    kinds = {isinstance(label, str) for row in y for label in row}
    if len(kinds) > 1:
        raise DataError("y has both strings and integers as labels; use one of the two")
    # Objects, because a fixed-width array is as wide as the longest of millions of names.
    classes = np.array(names, object) if True in kinds else _integers(names)
    order = np.argsort(classes, kind="stable")
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order))
    return _Target(labels._replace(indices=position[labels.indices]), classes[order], multilabel=True)


def _integers(names: list[str]) -> NDArray[np.int64]:
    try:
        return np.array([int(name) for name in names], np.int64)
    except OverflowError as error:
        longest = max(names, key=len)
        raise DataError(f"y has the label {longest:.40}, beyond 64 bits; give labels as strings") from error


def _kind(y: Any) -> str:
    """What y is: an "indicator" matrix, "lists" of labels, or "classes", one per row."""
    if is_sparse(y):
        return "indicator"
    if not isinstance(y, (list, tuple)):
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] != 1:  # one column is a 1-D y for scikit-learn
            of_names = y.size and isinstance(y.flat[0], str)
            return "lists" if of_names else "indicator"
        if y.dtype != object or y.ndim != 1:
            return "classes"
    nested = any(isinstance(labels, (list, tuple, set, frozenset, dict, np.ndarray)) for labels in y)
    return "lists" if nested else "classes"


def _texts(X: Any) -> list[str] | None:
    """X as a list of texts, or None if it is something else, hopefully a matrix."""
    if isinstance(X, (str, bytes, PathLike)):
        raise DataError(f"X must be a list of texts or a matrix, but is {show(X, 40)}; wrap a text in a list")
    if is_sparse(X):
        return None
    if not isinstance(X, (list, tuple)):
        array = np.asarray(X)
        if array.ndim != 1 or array.dtype.kind not in "OU":
            return None
        X = array.tolist()
    return list(X) if any(isinstance(text, str) for text in X) else None


def _take(features: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of texts, of a matrix, or of a pair of either and vectors."""
    if isinstance(features, tuple):
        return tuple(_take(part, rows) for part in features)
    return [features[row] for row in rows] if isinstance(features, list) else features[rows]


def _indicator(labels: LabelRows) -> csr_matrix:
    ones = np.ones(len(labels.indices), np.int64)  # the type of scikit-learn's own indicators
    matrix = csr_matrix((ones, labels.indices, labels.indptr), shape=(labels.n_rows, labels.n_labels))
    matrix.sort_indices()
    return matrix


def _read_k(k: Any) -> int:
    k = plain(k)
    if type(k) is not int or k < 1:
        raise ParameterError(f"k must be an integer of at least 1, but is {show(k)}")
    return k
