"""How each label fares: counts, ratios, its best threshold, and what kind of problem it has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeltree.errors import DataError, show
from labeltree.metrics.matching import Labels, Matched
from labeltree.parameter import MOST_IDS

_FEW = 5  # training rows
_SURE = 10  # predictions, from which on a mean of them says something
_FAR = 0.15  # of a mean probability from how often it is right

# Kinds of problems and one line of advice each, the first that a label has counts.
PROBLEMS = {
    "no-examples": "no training row has them: add some, or take the labels out of the data",
    "few-examples": f"fewer than {_FEW} training rows: more rows help, or a broader label that includes them",
    "never-found": "they are never among the first k: look at rows of them, whose labels may be incomplete, "
    "or take a larger k",
    "overrated": "probabilities are too high: test rows are of another kind than those trained on, or the "
    "label is not given where it fits",
    "underrated": "probabilities are too low: the label is more frequent here than among the training rows",
    "often-missed": "fewer than half of their rows have them among the first k: a larger k, or more rows",
}


class LabelTable(NamedTuple):
    """One entry per label, over the top k of every row; NaN where a ratio is undefined."""

    support: NDArray[np.int64]  # rows that have the label
    predicted: NDArray[np.int64]  # rows for which it was predicted
    hits: NDArray[np.int64]  # rows where both hold
    precision: NDArray[np.float64]  # hits / predicted
    recall: NDArray[np.float64]  # hits / support
    mean_probability: NDArray[np.float64]  # over the rows for which it was predicted
    best_f1: NDArray[np.float64]  # that any threshold reaches, if the first k are all that can be predicted
    best_threshold: NDArray[np.float64]  # the largest one that reaches it


def per_label(ids: ArrayLike, probs: ArrayLike, labels: Labels, n_labels: int, k: int = 5) -> LabelTable:
    """Counts and ratios of each label in the first k columns; ``probs`` are the probabilities of ``ids``."""
    matched = Matched(ids, labels, (k,), probs=probs)
    assert matched.probabilities is not None
    is_label = matched.ids >= 0
    truth = matched.truth.indices[matched.truth.indices >= 0]
    highest = max(int(truth.max(initial=-1)), int(matched.ids.max(initial=-1)))
    if not highest < n_labels <= MOST_IDS:
        raise DataError(
            f"label id {highest} occurs, but n_labels is {show(n_labels)}; give the model's number of labels"
        )
    guesses, used = matched.ids[is_label], matched.probabilities[is_label]
    support = np.bincount(truth, minlength=n_labels)
    predicted = np.bincount(guesses, minlength=n_labels)
    hits = np.bincount(matched.ids[matched.hits], minlength=n_labels)
    total = np.bincount(guesses, weights=used, minlength=n_labels)
    best = best_thresholds(guesses, used, matched.hits[is_label], support)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN we want
        ratios = hits / predicted, hits / support, total / predicted
    return LabelTable(support, predicted, hits, *ratios, *best)


def with_unknown(table: LabelTable, support: NDArray[np.int64]) -> LabelTable:
    """With labels that cannot be predicted behind the others, of which these rows have so many."""
    none, nothing = np.zeros_like(support), np.zeros(len(support))
    undefined = np.full(len(support), np.nan)
    more = LabelTable(support, none, none, undefined, nothing, undefined, nothing, undefined)
    return LabelTable(*(np.concatenate(pair) for pair in zip(table, more, strict=True)))


def best_thresholds(
    ids: NDArray[Any],
    probabilities: NDArray[np.float64],
    is_hit: NDArray[np.bool_],
    support: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The best F1 of each label and the largest threshold that reaches it, from pairs of a row and a label.

    NaN for labels without rows and, of thresholds, where nothing is right.
    """
    order = np.lexsort((-probabilities, ids))
    label, value, hit = ids[order], probabilities[order], is_hit[order]
    n_labels = len(support)
    begin = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=n_labels))])
    before = np.concatenate([[0], np.cumsum(hit)])  # right ones among all earlier pairs
    n_taken = np.arange(1, len(label) + 1) - begin[label]
    f1 = 2 * (before[1:] - before[begin[label]]) / (n_taken + support[label])
    # A threshold takes all pairs of the same probability: only the last of them is one.
    is_end = np.ones(len(label), np.bool_)
    is_end[:-1] = (label[1:] != label[:-1]) | (value[1:] != value[:-1])
    best = np.full(n_labels, np.nan)
    best[support > 0] = 0.0
    np.fmax.at(best, label[is_end], f1[is_end])
    threshold = np.full(n_labels, np.nan)
    reached = is_end & (f1 == best[label]) & (f1 > 0)
    np.fmax.at(threshold, label[reached], value[reached])
    best[support == 0] = np.nan
    return best, threshold


def find_problems(table: LabelTable, training_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n_labels,) which of :data:`PROBLEMS` a label has, by its place; -1 for none."""
    is_missed = (table.support > 0) & ~(table.recall >= 0.5)
    judged = table.predicted >= _SURE
    with np.errstate(invalid="ignore"):
        excess = np.where(judged, table.mean_probability - table.precision, 0.0)
    holds = (
        (table.support > 0) & (training_rows == 0),
        is_missed & (training_rows < _FEW),
        (table.support > 0) & (table.hits == 0),
        excess > _FAR,
        excess < -_FAR,
        is_missed,
    )
    return np.select(holds, np.arange(len(PROBLEMS)), -1)


def by_urgency(table: LabelTable) -> NDArray[np.int64]:
    """Labels by what to worry about first: the most rows that miss it, then the most that get it wrongly."""
    return np.lexsort((table.hits - table.predicted, table.hits - table.support))
