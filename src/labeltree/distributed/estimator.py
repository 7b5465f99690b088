"""A classifier for Dask's collections of texts, in the shape of LightGBM's and XGBoost's.

Workers write their partitions to the work dir as JSON lines, and read, train and predict from there: neither
the client nor the scheduler ever holds rows.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labeltree.data.columns import Columns
from labeltree.data.files import Files, are_files, find_files
from labeltree.errors import DataError, MissingPackageError, ParameterError, show
from labeltree.estimator import LabelTreeClassifier
from labeltree.model import Model, load
from labeltree.storage.files import write_whole
from labeltree.training.cluster import check_client
from labeltree.training.driver import train

_PARTITIONS = "partitions"
_MODEL = "model.labeltree"
_USUAL = Columns()


class DaskLabelTreeClassifier:
    """Trains on the workers of a Dask cluster; the model is that of one machine, byte for byte.

    ``client`` is a ``dask.distributed.Client``, or None for the present one. ``work_dir`` is a folder that
    all workers see; on a cluster of this machine it may be left out. Parameters are those of
    :class:`~labeltree.estimator.LabelTreeClassifier`.
    """

    def __init__(
        self, *, client: Any = None, work_dir: str | os.PathLike[str] | None = None, **parameters: Any
    ) -> None:
        self.client, self.work_dir, self.parameters = client, work_dir, parameters
        LabelTreeClassifier(**parameters)  # what has a wrong name is told at once
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def client_(self) -> Any:
        """The client that is used."""
        if self.client is not None:
            return check_client(self.client)
        try:
            from distributed import get_client
        except ImportError as error:
            raise MissingPackageError("a cluster needs Dask: pip install 'labeltree[dask]'") from error
        try:
            return get_client()
        except ValueError as error:
            raise ParameterError("there is no Dask client; make one, or give it as client=") from error

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        text_column: str = _USUAL.text,
        labels_column: str = _USUAL.labels,
        **how: Any,
    ) -> DaskLabelTreeClassifier:
        """Train on files, or on a collection: a data frame with both columns, a bag of dicts with both keys
        or of pairs (text, labels), or two series (or bags), of texts and of lists of labels.

        ``how`` goes to :func:`labeltree.train`, such as ``preset="fast"`` or ``callback=``.
        """
        local = LabelTreeClassifier(**self.parameters)
        local.check_settings()
        client, folder = self.client_, self._folder()
        if are_files(X):
            files = find_files(X)
            columns: dict[str, Any] = {"text_column": text_column, "labels_column": labels_column}
        else:
            files, columns = _write_partitions(client, X, y, (text_column, labels_column), folder), {}
            columns["format"] = "jsonl"
        training = partial(
            train, [Path(file) for file in files], work_dir=folder / "work", client=client,
            threads=local.threads, **columns, **local.given_parameters(), **how,
        )  # fmt: skip
        self.model_ = training() if "tune_for" in how else local.train_by(training)
        self.model_.save(folder / _MODEL)
        return self

    def predict_topk(self, X: Any, k: int | None = None, *, text_column: str = _USUAL.text) -> Any:
        """The k most probable labels of each text of a collection, best first, as a collection that is
        computed when it is asked for."""
        local = self.to_local()
        k = min(local.k if k is None else k, len(local.classes_))
        tag = partial(_tag, str((self._folder() / _MODEL).resolve()), k, text_column)
        if hasattr(X, "_meta"):  # data frames and series want to know what comes
            return X.map_partitions(tag, meta=("labels", object))
        if not hasattr(X, "map_partitions"):
            raise DataError(
                f"X must be a collection of Dask, but is {show(X)}; to_local() predicts what is in memory"
            )
        return X.map_partitions(tag)

    def to_local(self) -> LabelTreeClassifier:
        """An ordinary estimator with the model; its ``classes_`` are in the order of the model's labels."""
        if not hasattr(self, "model_"):
            raise ParameterError("the classifier is not fitted yet; call fit first")
        return LabelTreeClassifier(**self.parameters).with_model(self.model_)

    def _folder(self) -> Path:
        """Where workers find partitions and the model."""
        if self.work_dir is not None:
            return Path(self.work_dir)
        if self._temporary is None:
            if not hasattr(self.client_.cluster, "workers"):
                raise ParameterError("work_dir is missing: give a folder that all workers of the cluster see")
            self._temporary = tempfile.TemporaryDirectory(prefix="labeltree-", ignore_cleanup_errors=True)
        return Path(self._temporary.name)


def _write_partitions(client: Any, X: Any, y: Any, columns: tuple[str, str], folder: Path) -> Files:
    """A file for each partition of a collection, written by the worker that has it."""
    if not hasattr(X, "to_delayed") or not (y is None or hasattr(y, "to_delayed")):
        raise DataError(
            f"X must be files or a collection of Dask (a data frame, a series or a bag), but is {show(X)}; "
            "labeltree.train takes what is in memory"
        )
    from dask import delayed

    target = folder.resolve() / _PARTITIONS
    target.mkdir(parents=True, exist_ok=True)
    parts, labels = X.to_delayed(), [None] * len(X.to_delayed()) if y is None else y.to_delayed()
    if len(parts) != len(labels):
        raise DataError(f"X has {len(parts)} partitions, but y has {len(labels)}; give both the same")
    names = [str(target / f"{number:06}.jsonl") for number in range(len(parts))]
    written = [
        delayed(_write_partition)(part, own, columns, name, number)
        for number, (part, own, name) in enumerate(zip(parts, labels, names, strict=True))
    ]
    client.gather(client.compute(written))
    return Files(names)


def _write_partition(part: Any, labels: Any, columns: tuple[str, str], name: str, number: int) -> None:
    """On a worker."""
    rows = _pairs(part, columns) if labels is None else zip(part, labels, strict=True)
    write_whole(name, (_line(row, f"partition {number}, row {k}") for k, row in enumerate(rows)))


def _pairs(part: Any, columns: tuple[str, str]) -> Iterator[Any]:
    if hasattr(part, "columns"):
        for column in columns:
            if column not in part.columns:
                raise DataError(f"X has no column {column!r}, but {', '.join(map(str, part.columns))}")
        yield from zip(part[columns[0]], part[columns[1]], strict=True)
        return
    for row in part:
        yield tuple(row.get(column) for column in columns) if isinstance(row, Mapping) else row


def _line(row: Any, place: str) -> bytes:
    try:
        text, labels = row
    except (TypeError, ValueError) as error:
        raise DataError(f"{place}: must be a pair (text, labels), but is {show(row)}") from error
    if not isinstance(text, str):
        raise DataError(f"{place}: the text must be a string, but is {show(text)}; fill or drop such rows")
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise DataError(
            f"{place}: labels must be a list, but are {show(labels)}; give a list, even of one (Dask turns "
            "lists of a data frame into strings unless its option dataframe.convert-string is False)"
        )
    content = {"text": text, "labels": [str(label) for label in labels]}
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


_lock = threading.Lock()
_loaded: dict[tuple[str, int], Model] = {}  # of this worker, the last one


def _tag(path: str, k: int, text_column: str, part: Any) -> Any:
    """On a worker: labels of the texts of a partition."""
    key = path, os.stat(path).st_mtime_ns
    with _lock:
        if key not in _loaded:
            _loaded.clear()
            _loaded[key] = load(path)
        model = _loaded[key]
    is_frame = hasattr(part, "columns")
    texts = list(part[text_column] if is_frame else part)
    if not is_frame and texts and isinstance(texts[0], Mapping):
        texts = [row[text_column] for row in texts]
    answers = model.predict(texts, k, rule="none", threads=1) if texts else []
    found = [[label for label, _ in row] for row in answers]
    if hasattr(part, "index") and hasattr(part, "iloc"):
        series = type(part.iloc[:0, 0] if is_frame else part)  # of pandas, which need not be imported
        return series(found, index=part.index, name="labels", dtype=object)
    return found
