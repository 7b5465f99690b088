"""The quick path of single rows: half of their time would be handing arrays from one step to the next.

A row is copied into a buffer of its thread, a short text is handed on as it is, and one call of a kernel does
the rest: check or split, weigh and search. What is not as usual takes the way of batches.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from labeltree.data.matrices import copy_row
from labeltree.experts.ensemble import Ensemble
from labeltree.experts.expert import Found
from labeltree.features.features import Features
from labeltree.query import NO_BEAM, Query

LONGEST_ROW = 1 << 14  # entries


class RowBuffer(threading.local):
    """For a single row, in each thread its own."""

    def __init__(self) -> None:
        self.indices = np.empty(LONGEST_ROW, np.int32)
        self.values = np.empty(LONGEST_ROW, np.float32)


class SingleRow:
    """The best labels of a single text or row, where a model's only expert or its trees are that quick."""

    def __init__(self, features: Features, ensemble: Ensemble) -> None:
        self._features, self._n_columns = features, features.n_columns
        self._expert = ensemble.single or (ensemble if ensemble.trees is not None else None)
        self._column_weight = features.column_weight
        self._buffer = RowBuffer()

    def best(self, X: Any, query: Query) -> Found | None:
        """Label ids and probabilities, both (1, k); None where the way of batches must be taken."""
        expert = self._expert
        if expert is None or query.beam != NO_BEAM:
            return None
        if type(X) is not list:
            indices, values = self._buffer.indices, self._buffer.values
            n = copy_row(X, self._n_columns, indices, values)
            if n < 0 or not (query.labels_unknown or values[:n].any()):
                return None
            if len(self._column_weight):  # a column that is out of bounds is found by the kernel
                values[:n] *= self._column_weight.take(indices[:n], mode="clip")
            return expert.topk_row(indices, values, n, self._features.norm_of_rows, query)
        if len(X) != 1 or type(X[0]) is not str:
            return None
        short = self._features.short_text(X[0])
        if short is None:
            return None
        buffer, text = short
        if query.labels_unknown:
            return expert.topk_text(buffer, text, query)
        row = buffer.values  # of the row that the kernel makes of the text
        row[0] = 0.0
        found = expert.topk_text(buffer, text, query)
        return found if row[0] != 0.0 else None  # where it is still 0, the row may be empty
