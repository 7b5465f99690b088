"""What a test says of a model, for people to look at: measures, a calibration curve, the labels found best
and worst. `labeltree test --scorecard` writes it, and the page of `labeltree serve` draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.metrics.matching import Matched
from labeltree.metrics.per_label import LabelTable, per_label

if TYPE_CHECKING:
    from labeltree.metrics.testing import Measures
    from labeltree.model import Model

_BINS = 10
_LISTED = 20  # labels, of the best and of the worst
_LEAST_ROWS = 3  # with the label among the test rows: of fewer a measure says little


def scorecard(model: Model, measures: Measures) -> dict[str, Any]:
    """Of a test of a model, for JSON."""
    k = measures.ranks[-1]
    found, labels = (measures.ids, measures.probabilities), measures.data.labels
    table = per_label(*found, labels, model.n_labels, k)
    best, worst, n_judged = _best_and_worst(table)
    return {
        "rows": int(measures["examples"]),
        "k": k,
        "rule": None if measures.rule is None else measures.rule.measure,
        "threshold": measures.threshold,
        "measures": dict(measures),
        "calibration": calibration_curve(Matched(measures.ids, labels, (k,), probs=measures.probabilities)),
        "labels_judged": n_judged,
        "least_rows": _LEAST_ROWS,
        "best": _listed(model, table, best),
        "worst": _listed(model, table, worst),
    }


def calibration_curve(matched: Matched) -> list[dict[str, float]]:
    """Of predicted labels by their probability, in steps of a tenth: how probable they are on average, how
    often they are right, and how many they are."""
    assert matched.probabilities is not None
    is_label = matched.ids >= 0
    probability, hits = matched.probabilities[is_label].astype(np.float64), matched.hits[is_label]
    place = np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)
    n, total, right = (
        np.bincount(place, weights, _BINS) for weights in (None, probability, hits.astype(np.float64))
    )
    return [
        {"probability": total[bin] / n[bin], "right": right[bin] / n[bin], "n": int(n[bin])}
        for bin in np.flatnonzero(n).tolist()
    ]


def _best_and_worst(table: LabelTable) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """By the F1 that a threshold of its own reaches; of equal ones those of most rows first."""
    judged = np.flatnonzero(table.support >= _LEAST_ROWS)
    f1, support = table.best_f1[judged], table.support[judged]
    n = len(judged)
    best = judged[np.lexsort((judged, -support, -f1))][: min(_LISTED, n - n // 2)]
    worst = judged[np.lexsort((judged, -support, f1))]
    return best, worst[~np.isin(worst, best)][:_LISTED], n


def _listed(model: Model, table: LabelTable, labels: NDArray[np.int64]) -> list[dict[str, Any]]:
    return [
        {
            "label": model.labels[label],
            "f1": float(table.best_f1[label]),
            "rows": int(table.support[label]),
            "training_rows": int(model.label_counts[label]),
        }
        for label in labels.tolist()
    ]
