"""Every error the package raises on purpose. Each message names the place, the value and the fix."""

from __future__ import annotations

from typing import Any


class LabelTreeError(Exception):
    """Base of all errors raised on purpose; the command line prints it without a traceback."""


class ParameterError(LabelTreeError, ValueError):
    """A parameter has an impossible value: "arity must be at least 2, but is 1"."""


class UnknownParameterError(ParameterError, TypeError):
    """A parameter has a name that nothing has; also the :class:`TypeError` of an unexpected keyword."""


class DataError(LabelTreeError, ValueError):
    """A file, line, row or array cannot be used as data."""


class MissingPackageError(LabelTreeError, ImportError):
    """Something needs a package that is not installed; the message says how to install it."""


class TreeError(LabelTreeError, ValueError):
    """Arrays or a file do not describe a label tree."""


class TrainingError(LabelTreeError, RuntimeError):
    """Training cannot go on, for example because the loss is no longer finite."""


class WorkDirError(TrainingError):
    """A work dir holds something else than this training, or something that cannot be used."""


class DiskFullError(TrainingError):
    """The disk that holds the work of a training is full; what is finished stays."""


class ModelFileError(LabelTreeError, ValueError):
    """A file cannot be used as a model."""


class NotAModelError(ModelFileError):
    """The file is something else than a labeltree model."""


class TruncatedModelError(ModelFileError):
    """The file ends before the model does."""


class CorruptedModelError(ModelFileError):
    """The file's digest or its contents contradict each other."""


class NewerModelError(ModelFileError):
    """The file was written by a newer version of labeltree."""


def show(value: Any, most: int = 60) -> str:
    """A value for a message, however long it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no whole number of more than 4,300 digits
        text = f"<{type(value).__name__}, too long to show>"
    return text if len(text) <= most else f"{text[:most]}..."
