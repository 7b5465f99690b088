"""How good predictions are: measures of ranked labels, and a model's test on a data set.

``METRICS`` is the table of metrics, in ``measures``.
"""

from labeltree.metrics.measures import (
    METRICS,
    LabelTable,
    Metric,
    calibration_error,
    evaluate,
    ndcg_at,
    per_label,
    precision_at,
    propensities,
    psprecision_at,
    recall_at,
)

__all__ = [
    "METRICS",
    "LabelTable",
    "Metric",
    "calibration_error",
    "evaluate",
    "ndcg_at",
    "per_label",
    "precision_at",
    "propensities",
    "psprecision_at",
    "recall_at",
]
