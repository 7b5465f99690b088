"""How good predictions are: measures of ranked labels, and a model's test on a data set."""

from labeltree.metrics.measures import (
    LabelTable,
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
    "LabelTable",
    "calibration_error",
    "evaluate",
    "ndcg_at",
    "per_label",
    "precision_at",
    "propensities",
    "psprecision_at",
    "recall_at",
]
