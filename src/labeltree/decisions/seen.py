"""Whether rows look like those that a model was trained on: a rule that is tuned on them is too bold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labeltree.data.rows import SparseRows, take_rows
from labeltree.errors import ParameterError

if TYPE_CHECKING:
    from labeltree.predictor import Predictor

_MOST_ROWS = 1_000  # that are looked at
_LEAST_ROWS = 10
_SAME = 0.85  # a row's similarity with itself is less than 1 where frequent words are not in the index


def seen_notices(model: Predictor, rows: SparseRows, threads: int) -> list[str]:
    """A line where most of these rows are as similar to training rows as training rows are to themselves.

    Each must have a training row of its own: a text that is often the same here and there is no sign. Models
    without neighbours know no training rows, and say nothing.
    """
    if rows.n_rows < _LEAST_ROWS:
        return []
    chosen = np.unique(np.linspace(0, rows.n_rows - 1, _MOST_ROWS).astype(np.int64))
    try:
        found = model.neighbours(SparseRows(*take_rows(rows[:3], chosen), rows.n_columns), 1, threads=threads)
    except ParameterError:
        return []
    same = {number for row in found for number, similarity in row if similarity >= _SAME}
    if 2 * len(same) <= len(chosen):
        return []
    return [
        "Warning: most of these rows look like rows that the model was trained on; a rule tuned on them is "
        "too bold for others. Tune on rows that it has not seen, or train with tune_for (--tune-for)."
    ]
