"""labeltree: tag texts or vectors with the few labels that fit, of millions, with honest probabilities."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import labeltree.metrics as metrics
    from labeltree.estimator import LabelTreeClassifier
    from labeltree.model import Model, load
    from labeltree.training.driver import train
    from labeltree.tree import LabelTree

__version__ = "0.1.0"
__all__ = ["LabelTree", "LabelTreeClassifier", "Model", "decide", "load", "metrics", "train"]

# Silent unless the program chooses to listen: without a handler Python would print warnings.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Where each public name lives; it is imported when first used, so `import labeltree` is free.
_HOME = {
    "LabelTree": "tree",
    "LabelTreeClassifier": "estimator",
    "Model": "model",
    "decide": "decisions.batch",
    "load": "model",
    "train": "training.driver",
}
_MODULES = ("config", "errors", "estimator", "metrics", "model", "tree")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"labeltree.{name}")
    if name in _HOME:
        return getattr(import_module(f"labeltree.{_HOME[name]}"), name)
    raise AttributeError(f"module 'labeltree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
