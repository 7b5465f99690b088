"""Predicted sets of labels beside the true ones: what only depends on how often they agree.

A set is the first k predictions of a row, or what a rule chose for it. Slow twins:
:mod:`labeltree.reference.metrics`. The definitions are scikit-learn's where it has them: a ratio without a
denominator is 0, and macro measures are means over all labels, also those that no row has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class Confusion(NamedTuple):
    """How often predicted and true labels agree. Labels that are neither predicted nor true have no entry."""

    hits: Counts  # (n_occurring,) rows where a label is predicted and true,
    predicted: Counts  # where it is predicted,
    support: Counts  # and where it is true
    row_hits: Counts  # (n_rows,) the same of rows ...
    row_predicted: Counts
    row_support: Counts  # ... with labels that the model does not know
    n_labels: int  # that there are

    @property
    def n_rows(self) -> int:
        return len(self.row_hits)


class SetMeasure(NamedTuple):
    """A number that sets of labels have, and what ``labeltree test`` calls it."""

    title: str
    of: Callable[[Confusion], float]
    form: str = ".2f"  # of a percentage


def micro_precision(found: Confusion) -> float:
    return _ratio(found.row_hits.sum(), found.row_predicted.sum())


def micro_recall(found: Confusion) -> float:
    return _ratio(found.row_hits.sum(), found.row_support.sum())


def micro_f1(found: Confusion) -> float:
    return _ratio(2 * found.row_hits.sum(), found.row_predicted.sum() + found.row_support.sum())


def macro_precision(found: Confusion) -> float:
    return _mean_of_labels(found, found.hits / np.maximum(found.predicted, 1))


def macro_recall(found: Confusion) -> float:
    return _mean_of_labels(found, found.hits / np.maximum(found.support, 1))


def macro_f1(found: Confusion) -> float:
    return _mean_of_labels(found, 2 * found.hits / np.maximum(found.predicted + found.support, 1))


def balanced_accuracy(found: Confusion) -> float:
    """The mean of recall and of the share of other rows that do not get the label."""
    others = found.n_rows - found.support
    kept_away = others - (found.predicted - found.hits)
    balanced = 0.5 * (found.hits / np.maximum(found.support, 1) + kept_away / np.maximum(others, 1))
    n_absent = found.n_labels - len(found.hits)  # neither predicted nor true: all rows are right, recall is 0
    return _mean_of_labels(found, balanced) + 0.5 * n_absent / max(found.n_labels, 1)


def coverage(found: Confusion) -> float:
    """The share of labels that are found in at least one row."""
    return _ratio(np.count_nonzero(found.hits), found.n_labels)


def instance_f1(found: Confusion) -> float:
    return float(np.mean(2 * found.row_hits / np.maximum(found.row_predicted + found.row_support, 1)))


def jaccard(found: Confusion) -> float:
    either = found.row_predicted + found.row_support - found.row_hits
    return float(np.mean(found.row_hits / np.maximum(either, 1)))


def hamming(found: Confusion) -> float:
    """The share of pairs of a row and a label that are wrong."""
    wrong = found.row_predicted.sum() + found.row_support.sum() - 2 * found.row_hits.sum()
    return _ratio(wrong, found.n_rows * found.n_labels)


def _mean_of_labels(found: Confusion, values: NDArray[np.float64]) -> float:
    return float(values.sum()) / max(found.n_labels, 1)


def _ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else 0.0


# By their keys, in the order of `labeltree test`.
SET_MEASURES: dict[str, SetMeasure] = {
    "instance-f1": SetMeasure("instance F1", instance_f1),
    "micro-f1": SetMeasure("micro F1", micro_f1),
    "micro-precision": SetMeasure("micro precision", micro_precision),
    "micro-recall": SetMeasure("micro recall", micro_recall),
    "macro-f1": SetMeasure("macro F1", macro_f1),
    "macro-precision": SetMeasure("macro precision", macro_precision),
    "macro-recall": SetMeasure("macro recall", macro_recall),
    "balanced-accuracy": SetMeasure("balanced accuracy", balanced_accuracy),
    "coverage": SetMeasure("coverage of labels", coverage),
    "jaccard": SetMeasure("Jaccard", jaccard),
    "hamming": SetMeasure("Hamming loss", hamming, ".3g"),
}
