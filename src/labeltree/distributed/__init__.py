"""Training on a cluster, through Dask (extra ``dask``). Nothing imports this but the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labeltree.distributed.estimator import DaskLabelTreeClassifier

__all__ = ["DaskLabelTreeClassifier"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: the estimator imports scikit-learn."""
    if name == "DaskLabelTreeClassifier":
        from labeltree.distributed.estimator import DaskLabelTreeClassifier

        return DaskLabelTreeClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
