"""How good ranked labels are: one object per metric, the table of all, and a function for each.

``docs/metrics.md`` has the formulas; :mod:`labeltree.reference.metrics` is the slow twin. What predictions
and true labels look like is told in :mod:`labeltree.metrics.matching`. Every mean is over all rows; a row
without labels scores 0. Columns that are missing for some k count as misses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.errors import DataError, ParameterError, show
from labeltree.metrics.confusion import SET_MEASURES, Confusion
from labeltree.metrics.matching import Labels, Matched, confusion_of_sets, floats
from labeltree.table import Entry, Table


class Metric(NamedTuple):
    """What is computed for each k, and what ``labeltree test`` calls it."""

    title: str
    at: Callable[[Matched, int], float]  # from the first k predictions of each row
    needs_counts: bool = False  # of the labels in the training data
    needs_probabilities: bool = False  # of the predictions
    form: str = ".2f"  # of a percentage

    def can_measure(self, matched: Matched) -> bool:
        """Whether what it needs was given."""
        has_counts = matched.counts is not None or not self.needs_counts
        return has_counts and (matched.probabilities is not None or not self.needs_probabilities)


# By their keys, as in ``p@5``: in the order of `labeltree test` and its JSON. The measures of sets follow.
METRICS: Table[Metric] = Table(
    p=Entry("metrics.measures:PRECISION"),
    r=Entry("metrics.measures:RECALL"),
    ndcg=Entry("metrics.measures:NDCG"),
    psp=Entry("metrics.measures:PSPRECISION"),
    psndcg=Entry("metrics.measures:PSNDCG"),
    ece=Entry("metrics.measures:CALIBRATION_ERROR"),
)


def precision_at(ids: ArrayLike, labels: Labels, k: int) -> float:
    """The mean over all rows of (hits among the first k) / k."""
    return _precision(Matched(ids, labels, (k,)), k)


def recall_at(ids: ArrayLike, labels: Labels, k: int) -> float:
    """The mean over all rows of (hits among the first k) / (labels of the row)."""
    return _recall(Matched(ids, labels, (k,)), k)


def ndcg_at(ids: ArrayLike, labels: Labels, k: int) -> float:
    """The mean over all rows of the discounted gain of the first k, relative to the best order possible."""
    return _ndcg(Matched(ids, labels, (k,)), k)


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
    return _psprecision(Matched(ids, labels, (k,), counts=(label_counts, n_examples)), k, a, b)


def psndcg_at(
    ids: ArrayLike,
    labels: Labels,
    k: int,
    label_counts: ArrayLike,
    n_examples: int,
    *,
    a: float = 0.55,
    b: float = 1.5,
) -> float:
    """As :func:`psprecision_at` for nDCG: what hits gain by their propensities, and the less the later."""
    return _psndcg(Matched(ids, labels, (k,), counts=(label_counts, n_examples)), k, a, b)


def propensities(
    label_counts: ArrayLike, n_examples: int, a: float = 0.55, b: float = 1.5
) -> NDArray[np.float64]:
    """The probability that a label that fits was noted, from its frequency (Jain et al., KDD 2016).

    The repository's values: a=0.5, b=0.4 for Wikipedia, a=0.6, b=2.6 for Amazon, a=0.55, b=1.5 for others.
    """
    counts = floats(label_counts, "label_counts")
    if counts.ndim != 1 or not np.all(np.isfinite(counts)) or np.any(counts < 0):
        raise DataError("label_counts must be a one-dimensional array of numbers of at least 0")
    if not n_examples >= 1:
        raise DataError(f"n_examples must be at least 1, but is {show(n_examples)}")
    try:
        # For large data: below e examples the constant would be negative, and nothing a probability.
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
    *,
    probs: ArrayLike | None = None,
) -> dict[str, float]:
    """All of :data:`METRICS` at once, as ``{"p@1": ...}``: ``psp@k`` if the training counts are given, and
    ``ece@k`` if the probabilities of ``ids`` are."""
    if (label_counts is None) != (n_examples is None):
        raise ParameterError("propensity-scored precision needs both label_counts and n_examples")
    counts = None if label_counts is None or n_examples is None else (label_counts, n_examples)
    matched = Matched(ids, labels, ks, probs=probs, counts=counts)
    possible = {key: metric for key, metric in METRICS.items() if metric.can_measure(matched)}
    return {f"{key}@{k}": metric.at(matched, k) for key, metric in possible.items() for k in ks}


def evaluate_sets(sets: Labels, labels: Labels, n_labels: int | None = None) -> dict[str, float]:
    """All of :data:`SET_MEASURES` of predicted sets, in the forms that true labels may have.

    ``n_labels`` is how many labels there are, if more than those that occur.
    """
    found = confusion_of_sets(sets, labels, n_labels)
    return {key: measure.of(found) for key, measure in SET_MEASURES.items()}


def calibration_error(ids: ArrayLike, probs: ArrayLike, labels: Labels, k: int = 5, bins: int = 15) -> float:
    """How far the probabilities of the first k labels are from how often these are right, on average.

    The pairs of a row and a predicted label are sorted by probability and cut into bins of equal numbers; in
    each, the mean probability is compared with the share of hits.
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ParameterError(f"bins must be a whole number of at least 1, but is {show(bins)}")
    return _calibration_error(Matched(ids, labels, (k,), probs=probs), k, bins)


def _precision(matched: Matched, k: int) -> float:
    return int(np.count_nonzero(matched.hits[:, :k])) / (len(matched.ids) * k)


def _recall(matched: Matched, k: int) -> float:
    n_hits = matched.hits[:, :k].sum(axis=1)
    return float(np.mean(n_hits / np.maximum(matched.n_labels, 1)))


def _ndcg(matched: Matched, k: int) -> float:
    hits = matched.hits[:, :k]
    n_places = min(k, max(hits.shape[1], int(matched.n_labels.max()), 1))  # no others can be reached
    discounts = 1.0 / np.log2(np.arange(2, n_places + 2))
    gains = (discounts[: hits.shape[1]] * hits).sum(axis=1)
    best = np.cumsum(discounts)[np.clip(matched.n_labels, 1, n_places) - 1]
    return float(np.mean(gains / best))


def _psprecision(matched: Matched, k: int, a: float = 0.55, b: float = 1.5) -> float:
    weights = _inverse_propensities(matched, a, b)
    hits = matched.hits[:, :k]
    reached = float(weights[matched.ids[:, :k][hits]].sum())
    possible = float(_best_weights(matched, weights, k)[0].sum())
    return reached / possible if possible > 0 else 0.0


def _psndcg(matched: Matched, k: int, a: float = 0.55, b: float = 1.5) -> float:
    weights = _inverse_propensities(matched, a, b)
    hits = matched.hits[:, :k]
    true_weights, rows, places = _best_weights(matched, weights, k)
    n_places = max(hits.shape[1], int(places.max(initial=0)) + 1)
    discounts = 1.0 / np.log2(np.arange(2, n_places + 2))
    rated = np.where(hits, weights[np.where(hits, matched.ids[:, :k], -1)], 0.0)
    # In units of a row's best nDCG, as the measure without propensities has it.
    units = np.cumsum(discounts)[np.clip(matched.n_labels, 1, min(k, n_places)) - 1]
    reached = float(((discounts[: hits.shape[1]] * rated).sum(axis=1) / units).sum())
    possible = float((true_weights * discounts[places] / units[rows]).sum())
    return reached / possible if possible > 0 else 0.0


def _best_weights(
    matched: Matched, weights: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Of the best prediction, each row's k rarest labels: their weights, rows and places in the row."""
    rows = np.repeat(np.arange(len(matched.ids)), matched.n_labels)
    true_weights = weights[matched.truth.indices]
    true_weights = true_weights[np.lexsort((-true_weights, rows))]
    places = np.arange(len(rows)) - matched.truth.indptr[rows]
    is_used = places < k
    return true_weights[is_used], rows[is_used], places[is_used]


def _inverse_propensities(matched: Matched, a: float, b: float) -> NDArray[np.float64]:
    """(n_labels + 1,): the last entry is a label that was never seen, so that id -1 finds it."""
    assert matched.counts is not None
    label_counts, n_examples = matched.counts
    known = propensities(label_counts, n_examples, a, b)
    highest = int(matched.truth.indices.max(initial=-1))
    if highest >= len(known):
        raise DataError(f"labels holds id {highest}, but label_counts has only {len(known)} entries")
    return 1.0 / np.append(known, propensities([0], n_examples, a, b))


def _calibration_error(matched: Matched, k: int, bins: int = 15) -> float:
    assert matched.probabilities is not None
    is_label = matched.ids[:, :k] >= 0
    used = matched.probabilities[:, :k][is_label]
    if len(used) == 0:
        return 0.0
    order = np.argsort(used, kind="stable")
    excess = used[order] - matched.hits[:, :k][is_label][order]
    return float(sum(abs(part.sum()) for part in np.array_split(excess, min(bins, len(used)))) / len(used))


PRECISION = Metric("precision", _precision)
RECALL = Metric("recall", _recall)
NDCG = Metric("nDCG", _ndcg)
PSPRECISION = Metric("propensity-scored P", _psprecision, needs_counts=True)
PSNDCG = Metric("propensity-scored nDCG", _psndcg, needs_counts=True)
CALIBRATION_ERROR = Metric("calibration error", _calibration_error, needs_probabilities=True)


def _of_sets(of: Callable[[Confusion], float]) -> Callable[[Matched, int], float]:
    return lambda matched, k: of(matched.confusion(k))


for _key, _measure in SET_MEASURES.items():
    METRICS.add(_key, Metric(_measure.title, _of_sets(_measure.of), form=_measure.form))
