"""The data of a training in its work dir: which data it is, and its rows once they are read."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeltree import __version__
from labeltree.config import Config
from labeltree.data.bad_lines import BadLines
from labeltree.data.files import Files
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.errors import DataError
from labeltree.features import FEATURES
from labeltree.features.strings import StringTable
from labeltree.storage.space import disk_error
from labeltree.storage.work_dir import Tensors, WorkDir
from labeltree.training.data import TrainingData
from labeltree.trees import BUILDERS

ROWS = "rows"
IN_MEMORY_INPUT = "in memory"

_STANDARD_INPUT = "standard-input"
_AT_ONCE = 1 << 20


def training_key(
    config: Config, files: Sequence[str] | None, sample_weight: Any, how: Sequence[Any]
) -> dict[str, Any]:
    """What makes a training the same: its parameters and its data; ``files`` are None for data in memory,
    whose rows are compared when they are made. ``how`` files are read is told as text."""
    key: dict[str, Any] = {"labeltree": __version__, "config": config.to_dict()}
    if config.tree not in BUILDERS:
        key["tree file"] = digest_of_file(config.tree)
    if files is None:
        return key | {"data": IN_MEMORY_INPUT}
    if sample_weight is not None:
        key["sample_weight"] = hashlib.sha256(np.asarray(sample_weight).tobytes()).hexdigest()[:32]
    contents = {f"file {number}": digest_of_file(file) for number, file in enumerate(files, 1)}
    return key | {"reading": str(tuple(how)), "data": contents}


def digest_of_file(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as file:
            while part := file.read(_AT_ONCE):
                digest.update(part)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the name") from error
    return digest.hexdigest()[:32]


def with_standard_input(files: Files, folder: Path) -> Files:
    """The same files, standard input as a file in the folder: it can be read once only."""
    if "-" not in files:
        return files
    kept = folder / _STANDARD_INPUT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(kept, "wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out, _AT_ONCE)
    except OSError as error:
        raise disk_error(folder, error) from error
    return Files(str(kept) if file == "-" else file for file in files)


def keep_rows(work: WorkDir, data: TrainingData, weight: NDArray[np.float32]) -> None:
    """Rows, features and labels, ready for training."""
    what = {
        "features": data.features.input,
        "format_of_file": data.format,
        "unused_rows": data.unused_rows,
        "skipped": data.bad_lines.skipped,
        "messages": data.bad_lines.messages,
    }
    work.write(ROWS, _tensors(data, weight), what)


def _tensors(data: TrainingData, weight: NDArray[np.float32]) -> Tensors:
    names, offsets = data.labels.tensors()
    rows: Tensors = {"X.indptr": data.X.indptr, "X.indices": data.X.indices, "X.values": data.X.values}
    labels: Tensors = {"Y.indptr": data.Y.indptr, "Y.indices": data.Y.indices}
    others: Tensors = {"labels.names": names, "labels.offsets": offsets, "weight": weight}
    return data.features.tensors() | rows | labels | others


def kept_rows(
    work: WorkDir, config: Config, *, verify: bool = True
) -> tuple[TrainingData, NDArray[np.float32]]:
    """What :func:`keep_rows` kept, mapped; and the weights of the rows."""
    tensors, what = work.read(ROWS, verify=verify)
    features = FEATURES[what["features"]].from_tensors(tensors, config)
    labels = StringTable.from_tensors(tensors["labels.names"], tensors["labels.offsets"], "labels.names")
    bad_lines = BadLines(skip=True)
    bad_lines.skipped, bad_lines.messages = what["skipped"], what["messages"]
    X = SparseRows(tensors["X.indptr"], tensors["X.indices"], tensors["X.values"], features.n_columns)
    Y = LabelRows(tensors["Y.indptr"], tensors["Y.indices"], len(labels))
    data = TrainingData(features, X, Y, labels, bad_lines, what["format_of_file"], what["unused_rows"])
    return data, tensors["weight"]


def same_rows(work: WorkDir, data: TrainingData, weight: NDArray[np.float32]) -> bool:
    """Whether the rows that are kept are these."""
    kept, new = work.read(ROWS)[0], _tensors(data, weight)
    return kept.keys() == new.keys() and all(np.array_equal(kept[name], new[name]) for name in new)


def remove_work(work_dir: Path) -> None:
    """All that a training has kept there."""
    (work_dir / _STANDARD_INPUT).unlink(missing_ok=True)
    WorkDir(work_dir).remove()
