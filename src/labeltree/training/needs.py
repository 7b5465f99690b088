"""What training would need: memory and the size of the model.

When training starts this is a rough guess from averages: a tree's shape is only known once it is built, and
which weights are pruned once they are trained. For ``--dry-run`` the trees are built and sparse nodes trained
in part (:mod:`labeltree.nodes.sparse.sample`).
"""

from __future__ import annotations

from typing import NamedTuple

from labeltree.experts import EXPERTS
from labeltree.experts.job import TrainingJob
from labeltree.training.data import TrainingData

_PROCESS_BYTES = 150_000_000  # Python, NumPy, Numba and its kernels
# What a work dir needs. While files are read, the rows as they are counted and as they are weighted, mapped
# and as finished work; then these two, and of the bytes that are kept finished parts and what is assembled of
# them, both with what was trained without the held-out rows. Files that arrays share are never quite full.
_ROWS_WHILE_READ, _ROWS, _KEPT, _PARTLY_FULL = 3, 2, 2.5, 1.25


class Estimate(NamedTuple):
    """What training would need (`--dry-run`)."""

    n_rows: int
    n_features: int
    n_labels: int
    data_bytes: int
    parameter_bytes: int
    model_bytes: int
    peak_bytes: int
    cpu_seconds: float  # on one core; NaN where nothing is known
    times_of_default: float = 1.0  # how many times as long as with the default tree
    disk_bytes: int = 0  # beside the model, while it is trained; 0 where all is in memory


def estimate_needs(data: TrainingData, job: TrainingJob, *, closely: bool = False) -> Estimate:
    """A rough guess, or a close one: that takes a part of the training."""
    needs = [kind.needs(job, closely=closely) for kind in EXPERTS.values()]
    data_bytes = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
    kept_bytes = sum(of_kind.kept_bytes for of_kind in needs)
    file_bytes = sum(of_kind.file_bytes for of_kind in needs)
    names = sum(array.nbytes for array in data.labels.tensors())
    vocabulary = sum(array.nbytes for array in data.features.tensors().values())
    training_bytes, space = max(of_kind.training_bytes for of_kind in needs), job.pool.space
    if space.is_on_disk:  # as are the rows, and what is kept
        peak_bytes = space.most_bytes(_PROCESS_BYTES + names + vocabulary + training_bytes - kept_bytes)
        most = max(_ROWS_WHILE_READ * data_bytes, _ROWS * data_bytes + _KEPT * kept_bytes)
        disk_bytes = int(_PARTLY_FULL * most)
    else:
        peak_bytes, disk_bytes = _PROCESS_BYTES + data_bytes + kept_bytes + training_bytes, 0
    return Estimate(
        n_rows=data.X.n_rows,
        n_features=data.X.n_columns,
        n_labels=len(data.labels),
        data_bytes=data_bytes,
        parameter_bytes=kept_bytes,
        model_bytes=file_bytes + names + vocabulary,
        peak_bytes=peak_bytes,
        cpu_seconds=sum(of_kind.cpu_seconds for of_kind in needs),
        times_of_default=max(of_kind.times_of_default for of_kind in needs),
        disk_bytes=disk_bytes,
    )
