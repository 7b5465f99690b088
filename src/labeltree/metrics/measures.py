"""How good ranked labels are: precision, recall, nDCG, propensity-scored precision, calibration, per label.

Predictions are an integer array ``ids (n_rows, n_columns)``, best label first, -1 for "nothing". The truth is
:class:`LabelRows`, a SciPy indicator matrix, or one list of ids per row, with -1 for a label that the model
does not know: it counts as a label of its row but is never hit. Every mean is over all rows; a row without
labels scores 0. Columns that are missing for some k count as misses. ``docs/metrics.md`` has the formulas;
:mod:`labeltree.reference.metrics` is the slow twin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.data.rows import LabelRows
from labeltree.errors import DataError, ParameterError, show

Labels: TypeAlias = "LabelRows | Sequence[Sequence[int]] | Any"  # Any: a SciPy sparse matrix or array

# Rows matched at a time: bounds the memory, and keeps row * n_labels + label far inside 64 bits.
_BLOCK_ROWS = 1 << 16


class LabelTable(NamedTuple):
    """One entry per label, over the top k of every row; NaN where a ratio is undefined."""

    support: NDArray[np.int64]  # rows that have the label
    predicted: NDArray[np.int64]  # rows for which it was predicted
    hits: NDArray[np.int64]  # rows where both hold
    precision: NDArray[np.float64]  # hits / predicted
    recall: NDArray[np.float64]  # hits / support
    mean_probability: NDArray[np.float64]  # over the rows for which it was predicted


def precision_at(ids: ArrayLike, labels: Labels, k: int) -> float:
    """The mean over all rows of (hits among the first k) / k."""
    return _precision(_Matched(ids, labels, (k,)), k)


def recall_at(ids: ArrayLike, labels: Labels, k: int) -> float:
    """The mean over all rows of (hits among the first k) / (labels of the row)."""
    return _recall(_Matched(ids, labels, (k,)), k)


def ndcg_at(ids: ArrayLike, labels: Labels, k: int) -> float:
    """The mean over all rows of the discounted gain of the first k, relative to the best order possible."""
    return _ndcg(_Matched(ids, labels, (k,)), k)


def psprecision_at(
    ids: ArrayLike,
    labels: Labels,
    k: int,
    label_counts: ArrayLike,
    n_examples: int,
    *,
    a: float = 0.55,
    b: float = 1.5,
) -> float:
    """The propensity-weighted hits among the first k, relative to those of the best possible prediction.

    ``label_counts`` and ``n_examples`` describe the training data; an unknown label (-1) has count 0.
    """
    matched = _Matched(ids, labels, (k,))
    return _psprecision(matched, k, _inverse_propensities(matched, label_counts, n_examples, a, b))


def propensities(
    label_counts: ArrayLike, n_examples: int, a: float = 0.55, b: float = 1.5
) -> NDArray[np.float64]:
    """The chance that a label that fits was noted, from its frequency (Jain et al., KDD 2016, section 4).

    The repository's values: a=0.5, b=0.4 for Wikipedia, a=0.6, b=2.6 for Amazon, a=0.55, b=1.5 for others.
    """
    counts = _floats(label_counts, "label_counts")
    if counts.ndim != 1 or not np.all(np.isfinite(counts)) or np.any(counts < 0):
        raise DataError("label_counts must be a one-dimensional array of numbers of at least 0")
    if not n_examples >= 1:
        raise DataError(f"n_examples must be at least 1, but is {show(n_examples)}")
    try:
        # For large data: below e examples the constant would be negative, and nothing a chance.
        constant = max(0.0, math.log(n_examples) - 1.0) * (b + 1.0) ** a
        is_possible = a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b)
    except (OverflowError, ZeroDivisionError):
        is_possible = False
    if not is_possible:
        raise ParameterError(
            f"the propensity model needs a > 0 and b > 0 of moderate size, but has a={show(a)}, b={show(b)}"
        )
    return 1.0 / (1.0 + constant * (counts + b) ** -a)


def evaluate(
    ids: ArrayLike,
    labels: Labels,
    ks: Sequence[int] = (1, 3, 5),
    label_counts: ArrayLike | None = None,
    n_examples: int | None = None,
) -> dict[str, float]:
    """All metrics at once: ``p@k``, ``r@k``, ``ndcg@k``, and ``psp@k`` if the training counts are given."""
    if (label_counts is None) != (n_examples is None):
        raise ParameterError("propensity-scored precision needs both label_counts and n_examples")
    matched = _Matched(ids, labels, ks)
    scores = {f"p@{k}": _precision(matched, k) for k in ks}
    scores |= {f"r@{k}": _recall(matched, k) for k in ks}
    scores |= {f"ndcg@{k}": _ndcg(matched, k) for k in ks}
    if label_counts is not None and n_examples is not None:
        weights = _inverse_propensities(matched, label_counts, n_examples, 0.55, 1.5)
        scores |= {f"psp@{k}": _psprecision(matched, k, weights) for k in ks}
    return scores


def per_label(ids: ArrayLike, probs: ArrayLike, labels: Labels, n_labels: int, k: int = 5) -> LabelTable:
    """Counts and ratios of each label in the first k columns; ``probs`` are the probabilities of ``ids``."""
    matched = _Matched(ids, labels, (k,))
    is_label = matched.ids >= 0
    used = _probabilities(matched, ids, probs)
    truth = matched.truth.indices[matched.truth.indices >= 0]
    highest = max(int(truth.max(initial=-1)), int(matched.ids.max(initial=-1)))
    if not highest < n_labels < 1 << 31:
        raise DataError(
            f"label id {highest} occurs, but n_labels is {show(n_labels)}; give the model's number of labels"
        )
    support = np.bincount(truth, minlength=n_labels)
    predicted = np.bincount(matched.ids[is_label], minlength=n_labels)
    hits = np.bincount(matched.ids[matched.hits], minlength=n_labels)
    total = np.bincount(matched.ids[is_label], weights=used, minlength=n_labels)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN we want
        return LabelTable(support, predicted, hits, hits / predicted, hits / support, total / predicted)


def calibration_error(ids: ArrayLike, probs: ArrayLike, labels: Labels, k: int = 5, bins: int = 15) -> float:
    """How far the probabilities of the first k labels are from how often these are right, on average.

    The pairs of a row and a predicted label are sorted by probability and cut into bins of equal numbers; in
    each, the mean probability is compared with the share of hits.
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ParameterError(f"bins must be a whole number of at least 1, but is {show(bins)}")
    matched = _Matched(ids, labels, (k,))
    used = _probabilities(matched, ids, probs)
    if len(used) == 0:
        return 0.0
    order = np.argsort(used, kind="stable")
    excess = used[order] - matched.hits[matched.ids >= 0][order]
    return float(sum(abs(part.sum()) for part in np.array_split(excess, min(bins, len(used)))) / len(used))


def _floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} must have numbers only, that a float can hold ({error})") from error


def _probabilities(matched: _Matched, ids: ArrayLike, probs: ArrayLike) -> NDArray[np.float64]:
    """Those of the predicted labels, row by row."""
    chances = _floats(probs, "probs")
    if chances.shape != np.shape(ids):
        raise DataError(f"probs has shape {chances.shape}, but ids {np.shape(ids)}; they must be the same")
    used: NDArray[np.float64] = chances[:, : matched.ids.shape[1]][matched.ids >= 0]
    if not np.all(np.isfinite(used)):
        raise DataError("probs holds NaN or infinity; give the probabilities that belong to ids")
    return used


class _Matched:
    """The checked arguments of a metric, and which predictions are true."""

    def __init__(self, ids: ArrayLike, labels: Labels, ks: Sequence[int]) -> None:
        for k in ks:
            if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < 1 << 31:
                raise ParameterError(f"k must be a whole number from 1 to 2^31 - 1, but is {show(k)}")
        self.truth = _label_rows(labels)
        self.ids = _checked_ids(ids)[:, : max(ks, default=1)]  # (n_rows, at most the largest k)
        if len(self.ids) != self.truth.n_rows:
            raise DataError(
                f"ids has {len(self.ids)} rows, but labels {self.truth.n_rows}; give both for the same rows"
            )
        if len(self.ids) == 0:
            raise DataError("ids and labels have no rows; there is nothing to score")
        self.n_labels = np.diff(self.truth.indptr)  # of each row, unknown ones included
        self.hits = np.zeros(self.ids.shape, dtype=np.bool_)
        for start in range(0, len(self.ids), _BLOCK_ROWS):
            _match_rows(self.ids, self.truth, start, min(start + _BLOCK_ROWS, len(self.ids)), self.hits)


def _match_rows(
    ids: NDArray[Any], truth: LabelRows, start: int, stop: int, out_hits: NDArray[np.bool_]
) -> None:
    """Look the pairs (row, predicted id) up in the sorted pairs (row, true id)."""
    block = ids[start:stop].astype(np.int64)
    _refuse_repeated(block, start)
    true_ids = truth.indices[truth.indptr[start] : truth.indptr[stop]].astype(np.int64)
    rows = np.repeat(np.arange(stop - start), np.diff(truth.indptr[start : stop + 1]))
    known = true_ids >= 0
    if not known.any():
        return
    width = int(true_ids.max()) + 1
    true_pairs = rows[known] * width + true_ids[known]  # sorted, as rows and the ids of a row are
    possible = (block >= 0) & (block < width)
    pairs = np.where(possible, np.arange(stop - start)[:, None] * width + block, 0)
    places = np.minimum(np.searchsorted(true_pairs, pairs), len(true_pairs) - 1)
    out_hits[start:stop] = possible & (true_pairs[places] == pairs)


def _refuse_repeated(block: NDArray[np.int64], first_row: int) -> None:
    ordered = np.sort(block, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, column = np.argwhere(repeated)[0]
        raise DataError(
            f"ids row {first_row + row}: label {ordered[row, column]} is predicted twice; "
            "each label may stand in a row once"
        )


def _precision(matched: _Matched, k: int) -> float:
    return int(np.count_nonzero(matched.hits[:, :k])) / (len(matched.ids) * k)


def _recall(matched: _Matched, k: int) -> float:
    n_hits = matched.hits[:, :k].sum(axis=1)
    return float(np.mean(n_hits / np.maximum(matched.n_labels, 1)))


def _ndcg(matched: _Matched, k: int) -> float:
    hits = matched.hits[:, :k]
    n_places = min(k, max(hits.shape[1], int(matched.n_labels.max()), 1))  # no others can be reached
    discounts = 1.0 / np.log2(np.arange(2, n_places + 2))
    gains = (discounts[: hits.shape[1]] * hits).sum(axis=1)
    best = np.cumsum(discounts)[np.clip(matched.n_labels, 1, n_places) - 1]
    return float(np.mean(gains / best))


def _inverse_propensities(
    matched: _Matched, label_counts: ArrayLike, n_examples: int, a: float, b: float
) -> NDArray[np.float64]:
    """(n_labels + 1,): the last entry is a label that was never seen, so that id -1 finds it."""
    known = propensities(label_counts, n_examples, a, b)
    highest = int(matched.truth.indices.max(initial=-1))
    if highest >= len(known):
        raise DataError(f"labels holds id {highest}, but label_counts has only {len(known)} entries")
    return 1.0 / np.append(known, propensities([0], n_examples, a, b))


def _psprecision(matched: _Matched, k: int, weights: NDArray[np.float64]) -> float:
    hits = matched.hits[:, :k]
    reached = float(weights[matched.ids[:, :k][hits]].sum())
    # The best prediction: each row's k rarest labels. Sort by row, then by falling weight, and count places.
    rows = np.repeat(np.arange(len(matched.ids)), matched.n_labels)
    true_weights = weights[matched.truth.indices]
    order = np.lexsort((-true_weights, rows))
    place = np.arange(len(rows)) - matched.truth.indptr[rows]
    possible = float(true_weights[order][place < k].sum())
    return reached / possible if possible > 0 else 0.0


def _checked_ids(ids: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(ids)
    except ValueError as error:
        raise DataError("ids must be a two-dimensional array, but its rows differ in length") from error
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise DataError(
            f"ids must be a two-dimensional array of whole numbers, but has shape {array.shape} and type "
            f"{array.dtype}; give the first array that predict_arrays returns"
        )
    if array.size and array.min() < -1:
        row = int(np.argwhere(array < -1)[0, 0])
        raise DataError(f"ids row {row}: {array[row].min()} is no label; use -1 for nothing")
    return array


def _label_rows(labels: Labels) -> LabelRows:
    """Any form of true labels as checked :class:`LabelRows`."""
    if isinstance(labels, LabelRows):
        return _checked_rows(labels)
    if hasattr(labels, "tocsr"):
        matrix = labels.tocsr(copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        indptr = matrix.indptr.astype(np.int64)
        return LabelRows(indptr, matrix.indices.astype(np.int32, copy=False), int(matrix.shape[1]))
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise DataError(
            f"labels is an array of shape {labels.shape}, which could mean indicators or ids; "
            "give a scipy.sparse.csr_matrix of indicators or one list of ids per row"
        )
    rows = [_row_ids(row, i) for i, row in enumerate(labels)]
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    indices = np.array([label for row in rows for label in row], dtype=np.int32)
    return LabelRows(indptr, indices, int(indices.max(initial=-1)) + 1)


def _row_ids(row: Any, i: int) -> list[int]:
    """The ids of one row, sorted, each known one once."""
    is_list = isinstance(row, Sequence | np.ndarray | Set) and not isinstance(row, str | bytes)
    if not is_list or not all(_is_id(label) for label in row):
        raise DataError(
            f"labels row {i}: must be a list of ids from 0 to 2^31 - 1 (or -1), but is {show(row)}"
        )
    unknown = [-1 for label in row if label < 0]
    return unknown + sorted({int(label) for label in row if label >= 0})


def _is_id(label: Any) -> bool:
    return isinstance(label, int | np.integer) and not isinstance(label, bool) and -1 <= int(label) < 1 << 31


def _checked_rows(rows: LabelRows) -> LabelRows:
    indptr, indices = rows.indptr, rows.indices
    if len(indptr) < 1 or indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        raise DataError("labels: indptr must rise from 0 to the number of indices")
    rises = (indices[1:] > indices[:-1]) | ((indices[1:] == -1) & (indices[:-1] == -1))
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # a new row may start anywhere
    if not rises.all() or np.any(indices < -1):
        place = int(np.argmin(rises)) + 1 if not rises.all() else int(np.argmax(indices < -1))
        row = int(np.searchsorted(indptr, place, side="right")) - 1
        raise DataError(f"labels row {row}: ids must be sorted, unique and at least -1")
    return rows
