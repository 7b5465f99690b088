"""The table of ``labeltree test --per-label``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labeltree import metrics
from labeltree.checking.unknown import UnknownLabels, unknown_labels
from labeltree.data.formats import Reading
from labeltree.metrics.per_label import PROBLEMS, by_urgency, find_problems, with_unknown
from labeltree.storage.files import write_whole
from labeltree.wording import counted, escape_name

if TYPE_CHECKING:
    from labeltree.metrics.testing import Measures
    from labeltree.model import Model

_NONE = UnknownLabels([], np.empty(0, np.int64))


def write_per_label(path: Path, model: Model, measures: Measures, data: str, reading: Reading) -> list[str]:
    """A table with a line per label, over the largest k; a ratio that is undefined is left empty. Labels of
    the data that the model does not know are among them.

    Returns a line of advice for each kind of problem.
    """
    unknown = _NONE
    if measures["unknown_labels"] and data != "-":  # a pipe cannot be read again
        unknown = unknown_labels(model.labels, data, reading, model.config.label_prefix)
    found, labels = (measures.ids, measures.probabilities), measures.data.labels
    known = metrics.per_label(*found, labels, model.n_labels, measures.ranks[-1])
    table = with_unknown(known, unknown.support)
    training_rows = np.concatenate([model.label_counts, np.zeros_like(unknown.support)])
    problems, kinds = find_problems(table, training_rows), ["", *PROBLEMS]
    names, order = [*model.label_names, *unknown.names], by_urgency(table)
    lines = ["\t".join(("label", *table._fields, "training_rows", "problem"))]
    columns = [column[order].tolist() for column in (*table, training_rows, problems)]
    for label, *values, problem in zip(order.tolist(), *columns, strict=True):
        cells = (escape_name(names[label]), *map(_number, values), kinds[problem + 1])
        lines.append("\t".join(cells))
    write_whole(path, [f"{line}\n".encode() for line in lines])
    numbers = np.bincount(problems + 1, minlength=len(kinds))[1:].tolist()
    return [
        f"{counted(n, 'label')} {kind}: {advice}."
        for n, (kind, advice) in zip(numbers, PROBLEMS.items(), strict=True)
        if n
    ]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}" if isinstance(value, float) else str(value)
