"""How good predictions are: measures of ranked labels and of sets, and a model's test on a data set.

``METRICS`` is the table of metrics, in ``measures``.
"""

from labeltree.metrics.confusion import SET_MEASURES
from labeltree.metrics.measures import (
    METRICS,
    Metric,
    calibration_error,
    evaluate,
    evaluate_sets,
    ndcg_at,
    precision_at,
    propensities,
    psndcg_at,
    psprecision_at,
    recall_at,
)
from labeltree.metrics.per_label import LabelTable, per_label

__all__ = [
    "METRICS",
    "SET_MEASURES",
    "LabelTable",
    "Metric",
    "calibration_error",
    "evaluate",
    "evaluate_sets",
    "ndcg_at",
    "per_label",
    "precision_at",
    "propensities",
    "psndcg_at",
    "psprecision_at",
    "recall_at",
]
