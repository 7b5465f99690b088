"""Data as training needs it, from a file or from objects in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import Config, check_effects
from labeltree.data.bad_lines import BadLines
from labeltree.data.formats import check_format, check_in_memory, detect_format, where_labels_are
from labeltree.data.labels import label_rows
from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.memory import text_blocks
from labeltree.data.rows import LabelRows, SparseRows, pointers, take_rows
from labeltree.errors import DataError
from labeltree.features.features import Features
from labeltree.features.strings import StringTable
from labeltree.features.text import TextFeatures
from labeltree.features.vectors import VectorFeatures


class TrainingData(NamedTuple):
    """Everything training needs, in the shape it needs it."""

    features: Features
    X: SparseRows
    Y: LabelRows
    labels: StringTable
    bad_lines: BadLines
    format: str = ""  # of the file; empty for objects in memory
    unused_rows: int = 0  # without labels, where these are no examples


def read_training_data(
    X: Any,
    Y: Any,
    config: Config,
    format: str = "auto",
    skip_bad_lines: bool = False,
    label_names: Sequence[str] | None = None,
    progress: Callable[[float], None] | None = None,
    given: Collection[str] = (),
) -> TrainingData:
    """Features, rows and labels of a file or of objects in memory, checked for being trainable.

    ``given`` are the parameters that someone asked for: those without effect on such data are an error.
    """
    if isinstance(X, (str, Path)):
        if Y is not None or label_names is not None:
            raise DataError("Y and label_names must be None when X is a file, whose lines have the labels")
        data = _read_file(X, config, check_format(format), BadLines(skip=skip_bad_lines), progress, given)
        place = f"{X}: "
    else:
        check_in_memory(format, skip_bad_lines)
        data = _read_memory(X, Y, config, label_names, given)
        place = ""
    if data.X.n_rows == 0:
        raise DataError(f"{place}no rows to train on")
    if len(data.Y.indices) == 0:
        hint = ""
        if data.format:
            found = where_labels_are(data.format, config.label_prefix)
            hint = (
                f"; it was read as {data.format}, where {found}; set the format (--format) if it is another"
            )
        raise DataError(f"{place}no row has a label{hint}")
    data.bad_lines.log()
    return data


def _read_file(
    path: str | Path,
    config: Config,
    format: str,
    bad_lines: BadLines,
    progress: Callable[[float], None] | None,
    given: Collection[str],
) -> TrainingData:
    from labeltree.data.opening import Source
    from labeltree.data.reading import read_blocks
    from labeltree.data.xmlc import read_xmlc

    with Source(path, progress=progress) as source:
        found = detect_format(source.first_bytes, source.path) if format == "auto" else format
        check_effects(config, given, input="vectors" if found == "xmlc" else "text")
        if found == "xmlc":
            rows, Y = read_xmlc(source, bad_lines=bad_lines)
            vectors, rows = VectorFeatures.fit(rows, config)
            labels = StringTable.from_strings([str(label) for label in range(Y.n_labels)])
            return TrainingData(vectors, rows, Y, labels, bad_lines, found)
        blocks = read_blocks(source, found, bad_lines=bad_lines)
        features, labels, rows, Y = TextFeatures.fit(blocks, config, bad_lines)
    return TrainingData(features, rows, Y, labels, bad_lines, found)


def _read_memory(
    X: Any, Y: Any, config: Config, label_names: Sequence[str] | None, given: Collection[str]
) -> TrainingData:
    if Y is None:
        raise DataError("Y is missing: give the labels of each row, or the path of a file as X")
    features: Features
    is_matrix = type(X) is SparseRows or is_sparse(X) or getattr(X, "ndim", 1) != 1
    is_matrix = is_matrix or _holds_numbers(X)
    check_effects(config, given, input="vectors" if is_matrix else "text")
    if is_matrix:
        features, rows = VectorFeatures.fit(sparse_rows(X), config)
    else:
        features, _, rows, _ = TextFeatures.fit(text_blocks(X), config)
    labels, names = label_rows(Y, label_names, n_rows=rows.n_rows)
    if len(labels.indices) and labels.indices.min() < 0:
        row = int(np.searchsorted(labels.indptr, np.argmin(labels.indices), side="right")) - 1
        raise DataError(f"Y, row {row}: a label is not among the {len(names)} label_names")
    return TrainingData(features, rows, labels, StringTable.from_strings(names), BadLines())


def with_labels(data: TrainingData, weight: NDArray[np.float32]) -> tuple[TrainingData, NDArray[np.float32]]:
    """The rows that have labels, and their weights: a softmax cannot say that there is none."""
    n_labels = np.diff(data.Y.indptr)
    chosen = np.flatnonzero(n_labels)
    if not weight[chosen].any():
        raise DataError("sample_weight is zero for every row with a label; link hsm needs one that counts")
    X = SparseRows(*take_rows(data.X[:3], chosen), data.X.n_columns)
    Y = LabelRows(pointers(n_labels[chosen]), data.Y.indices, data.Y.n_labels)
    return data._replace(X=X, Y=Y, unused_rows=len(n_labels) - len(chosen)), weight[chosen]


def _holds_numbers(X: Any) -> bool:
    """A list of lists of numbers is a dense matrix, not texts; an array of numbers may have too few axes."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "biufc"
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (list, tuple, np.ndarray))
