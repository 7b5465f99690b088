"""Labels of a data file that a model does not know."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.checking.collecting import collect
from labeltree.data.formats import Reading
from labeltree.features.strings import StringTable


class UnknownLabels(NamedTuple):
    """Their names, and how many rows of the file have each."""

    names: list[str]
    support: NDArray[np.int64]


def unknown_labels(
    known: StringTable, path: str | Path, reading: Reading, label_prefix: str
) -> UnknownLabels:
    """Of a file, which is read once more: a data set of a model numbers only labels that the model has."""
    found = collect(path, reading, label_prefix)
    support = np.bincount(found.labels.indices, minlength=found.labels.n_labels)
    names = [found.name_of(label) for label in range(len(support))]
    chosen = np.flatnonzero((known.ids(names) < 0) & (support > 0))
    return UnknownLabels([names[label] for label in chosen.tolist()], support[chosen])
