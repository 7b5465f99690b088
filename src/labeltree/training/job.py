"""What experts are trained from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from labeltree.config import Config
from labeltree.data.rows import TrainingRows
from labeltree.parallel import Pool
from labeltree.training.progress import Callback


class TrainingJob(NamedTuple):
    """Data, parameters and means of one training."""

    rows: TrainingRows
    label_names: Sequence[str]
    config: Config  # as it was given: a 0 leaves a value to the data
    pool: Pool
    report: Callback
