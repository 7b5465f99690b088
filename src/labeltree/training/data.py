"""Data as training needs it, from a file or from objects in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.config import NO_PARAMETERS, Config, Given, check_effects
from labeltree.data.bad_lines import BadLines
from labeltree.data.files import are_files, find_files, parts_of_progress
from labeltree.data.formats import (
    FORMATS,
    USUAL_READING,
    Format,
    Reading,
    check_in_memory,
    find_format,
)
from labeltree.data.iterables import NO_LABELS, is_source, open_source
from labeltree.data.labels import label_rows
from labeltree.data.numbering import LabelNumbers
from labeltree.data.opening import Source
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, pointers, take_rows
from labeltree.errors import DataError
from labeltree.features import FEATURES, features_for, input_in_memory
from labeltree.features.features import Features
from labeltree.features.strings import StringTable
from labeltree.storage.space import IN_MEMORY, Space


class TrainingData(NamedTuple):
    """Everything training needs, in the shape it needs it."""

    features: Features
    X: SparseRows
    Y: LabelRows
    labels: StringTable
    bad_lines: BadLines
    format: str = ""  # of the file; empty for objects in memory
    unused_rows: int = 0  # without labels, where these are no examples

    def training_rows(self, weight: NDArray[np.float32]) -> TrainingRows:
        return TrainingRows(self.X, self.Y, weight)


def read_training_data(
    X: Any,
    Y: Any,
    config: Config,
    reading: Reading = USUAL_READING,
    skip_bad_lines: bool = False,
    label_names: Sequence[str] | None = None,
    progress: Callable[[float], None] | None = None,
    given: Given = NO_PARAMETERS,
    space: Space = IN_MEMORY,
) -> TrainingData:
    """Features, rows and labels of files or of objects in memory, checked for being trainable.

    Rows go to ``space``. Of the parameters that someone asked for, ``given``, those without effect on such
    data are an error.
    """
    if are_files(X):
        check_labels_of_files(Y, label_names)
        files = find_files(X)
        bad_lines = BadLines(skip=skip_bad_lines)
        data = _read_files(files, config, reading.check(), bad_lines, progress, given, space)
        place = place_of(files)
    elif Y is None and is_source(X):
        data = _read_source(X, config, reading, skip_bad_lines, label_names, given, space)
        place = "X: "
    else:
        check_in_memory(reading, skip_bad_lines)
        data = _read_memory(X, Y, config, label_names, given, space)
        place = ""
    return check_trainable(data, place, config)


def check_labels_of_files(Y: Any, label_names: Any) -> None:
    """Files have them: refuse others."""
    if Y is not None or label_names is not None:
        raise DataError("Y and label_names must be None when X is a file, whose lines have the labels")


def place_of(files: Sequence[str]) -> str:
    """For messages about all of them."""
    return f"{files[0]}: " if len(files) == 1 else f"{files[0]} and {len(files) - 1} more: "


def check_trainable(data: TrainingData, place: str, config: Config) -> TrainingData:
    """Refuse data without rows or labels; tell of lines that were skipped."""
    if data.X.n_rows == 0:
        raise DataError(f"{place}no rows to train on")
    if len(data.Y.indices) == 0:
        hint = ""
        if data.format:
            found = FORMATS[data.format].where_labels_are(config.label_prefix)
            hint = (
                f"; it was read as {data.format}, where {found}; set the format (--format) if it is another"
            )
        raise DataError(f"{place}no row has a label{hint}")
    data.bad_lines.log()
    return data


def _read_files(
    files: Sequence[str],
    config: Config,
    reading: Reading,
    bad_lines: BadLines,
    progress: Callable[[float], None] | None,
    given: Given,
    space: Space,
) -> TrainingData:
    """One after another, as if they were one. Formats may differ; texts and vectors may not be mixed."""

    def opened() -> Generator[tuple[Source, Format], None, None]:
        for file, report in zip(files, parts_of_progress(progress, files), strict=True):
            columns = reading.columns
            with Source(file, columns=columns, wants_labels=True, progress=report, space=space) as source:
                yield source, find_format(reading.format, source)

    with closing(opened()) as sources:
        first, found = next(sources)
        check_effects(config, given, input=found.input, beside="nothing")
        content = found.joined(_contents(first, found, sources, bad_lines), space)
        fitted = features_for(found.input, config.embed).fit(content, config, bad_lines, space)
    return TrainingData(fitted.features, fitted.rows, fitted.Y, fitted.labels, bad_lines, found.name)


def _contents(
    first: Source, found: Format, others: Iterator[tuple[Source, Format]], bad_lines: BadLines
) -> Iterator[Any]:
    """Of each file."""
    yield found.content(first, bad_lines)
    for source, own in others:
        both = (first.name, found.name), (source.name, own.name)
        check_same_input(*both, not source.first_bytes, not first.first_bytes)
        yield own.content(source, bad_lines)


def check_same_input(
    first: tuple[str, str], other: tuple[str, str], is_empty: bool, first_is_empty: bool = False
) -> None:
    """Refuse files, given with their formats, that hold different things: texts and vectors."""
    if FORMATS[first[1]].input == FORMATS[other[1]].input:
        return
    if is_empty or first_is_empty:
        name = first[0] if first_is_empty else other[0]
        raise DataError(f"{name}: an empty file, which does not tell its format; remove it")
    raise DataError(
        f"{other[0]}: a file of format {other[1]}, but {first[0]} has the format {first[1]}: "
        "texts and vectors cannot be trained on together; give files of one kind"
    )


def _read_memory(
    X: Any, Y: Any, config: Config, label_names: Sequence[str] | None, given: Given, space: Space
) -> TrainingData:
    if Y is None:
        raise DataError(NO_LABELS)
    input = input_in_memory(X)
    check_effects(config, given, **FEATURES[input].facts_of(X))
    kind = features_for(input, config.embed)
    features, _, rows, _ = kind.fit(kind.content(X), config, space=space)
    labels, names = label_rows(Y, label_names, n_rows=rows.n_rows)
    return _with_names(features, rows, labels, names)


def _read_source(
    X: Any,
    config: Config,
    reading: Reading,
    skip_bad_lines: bool,
    label_names: Sequence[str] | None,
    given: Given,
    space: Space,
) -> TrainingData:
    """Rows with their labels, some at a time; texts are not kept."""
    source = open_source(X, reading.check().columns)
    check_in_memory(reading, skip_bad_lines, has_columns=source.has_columns)
    check_effects(config, given, input=source.input, beside="nothing")
    kind, labels = features_for(source.input, config.embed), LabelNumbers(label_names)
    features, _, rows, _ = kind.fit(kind.content(source.rows(labels, space)), config, space=space)
    return _with_names(features, rows, labels.rows(), labels.names)


def _with_names(features: Features, rows: SparseRows, labels: LabelRows, names: list[str]) -> TrainingData:
    if len(labels.indices) and labels.indices.min() < 0:
        row = int(np.searchsorted(labels.indptr, np.argmin(labels.indices), side="right")) - 1
        raise DataError(f"Y, row {row}: a label is not among the {len(names)} label_names")
    return TrainingData(features, rows, labels, StringTable.from_strings(names), BadLines())


def with_labels(
    data: TrainingData, weight: NDArray[np.float32], link: str
) -> tuple[TrainingData, NDArray[np.float32]]:
    """The rows that have labels, and their weights: a softmax cannot say that there is none."""
    n_labels = np.diff(data.Y.indptr)
    chosen = np.flatnonzero(n_labels)
    if not weight[chosen].any():
        raise DataError(
            f"sample_weight is zero for every row with a label; link {link} needs one that counts"
        )
    X = SparseRows(*take_rows(data.X[:3], chosen), data.X.n_columns)
    Y = LabelRows(pointers(n_labels[chosen]), data.Y.indices, data.Y.n_labels)
    return data._replace(X=X, Y=Y, unused_rows=len(n_labels) - len(chosen)), weight[chosen]
