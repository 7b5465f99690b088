"""Decisions for given rows together: what a measure of all of them gains the most by.

A measure like macro F1 is not a sum over rows: what one row should get depends on what others get. Block
coordinate ascent (Schultheis et al., NeurIPS 2023) goes from row to row, giving each what gains the
most, given the others, until nothing changes. Where true labels are not known, their probabilities take their
place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.rows import SparseRows, keep_entries, pointers, read_only
from labeltree.decisions.goals import Goal, parse_goal
from labeltree.decisions.judged import sums_of_labels
from labeltree.decisions.separate import SEPARATE
from labeltree.errors import DataError, ParameterError, show
from labeltree.experts.ensemble import best_per_row
from labeltree.metrics.measures import propensities
from labeltree.query import make_query

if TYPE_CHECKING:
    from labeltree.model import Model
    from labeltree.predictor import Answers

# In the order of the kernel's coefficients.
MEASURES = ("p", "macro-f1", "macro-precision", "macro-recall", "balanced-accuracy", "coverage", "psp")
_MOST_PASSES = 50
_LEAST_GAIN = 1e-6  # of the measure, by another pass
_N_CANDIDATES = 100  # labels of a row, where a model gives them
_SEED = 1


def decide(model: Any, X: Any = None, *, measure: str, k: int | None = None, threads: int = 0) -> Any:
    """The labels of all rows of ``X`` that are best together for a measure, such as ``macro-f1@5``.

    ``model`` is a model, and the answer like that of its ``predict``; or, without ``X``, it is a SciPy CSR
    matrix of probabilities (n_rows, n_labels), and the answer one of those that are chosen.
    """
    goal = parse_goal(measure, k)
    if goal.least_precision:
        raise ParameterError(
            f"measure {show(measure)} needs no decision for all rows: tune has a rule for it"
        )
    if hasattr(model, "predict_arrays"):
        return _decide_by_model(model, X, goal, threads)
    if X is not None or not is_sparse(model):
        raise DataError("give a model and X, or a SciPy CSR matrix of probabilities alone")
    if any(key == "psp" for _, key in goal.terms):
        raise ParameterError(f"measure {show(measure)} needs a model, which knows how frequent labels are")
    from scipy.sparse import csr_matrix

    rows = sparse_rows(model, int(model.shape[1]))
    if len(rows.values) and not (rows.values.min() >= 0.0 and rows.values.max() <= 1.0):
        raise DataError("probabilities must be from 0 to 1")
    support = sums_of_labels(rows.indices, rows.values, rows.n_columns)
    chosen = choose_together(rows, support, goal)
    shape = rows.n_rows, rows.n_columns
    return csr_matrix((chosen.values, chosen.indices, chosen.indptr), shape=shape)


def _decide_by_model(model: Model, X: Any, goal: Goal, threads: int) -> Answers:
    n_most = min(model.n_labels, max(_N_CANDIDATES, 4 * goal.k))
    ids, probabilities, _ = model.best(X, make_query(n_most), threads)
    is_label = ids >= 0
    rows = SparseRows(pointers(is_label.sum(axis=1)), ids[is_label], probabilities[is_label], model.n_labels)
    # What is not among a row's candidates counts too: a label is at least as frequent as it was in training.
    found = sums_of_labels(rows.indices, rows.values, model.n_labels)
    support = np.maximum(found, rows.n_rows * model.label_counts / model.n_examples)
    chosen = choose_together(rows, support, goal, 1.0 / propensities(model.label_counts, model.n_examples))
    best_ids, best = best_per_row((chosen.indptr, chosen.indices), chosen.values, _longest(chosen))
    names = model.label_names
    return [
        [(names[label], p) for label, p in zip(row, values, strict=True) if label >= 0]
        for row, values in zip(best_ids.tolist(), best.astype(np.float32).tolist(), strict=True)
    ]


def choose_together(
    rows: SparseRows,
    support: NDArray[np.float64],
    goal: Goal,
    inverse: NDArray[np.float64] | None = None,
) -> SparseRows:
    """Those of the candidates that are chosen.

    ``support`` is how many rows are expected to have a label, ``inverse`` are inverse propensities.
    """
    if not goal.k and goal.terms[0][1] in SEPARATE:
        return keep_entries(rows, SEPARATE[goal.terms[0][1]](rows, support))
    from labeltree.kernels.decisions.ascent import ascend, choose_best

    factors = {key: factor for factor, key in goal.terms}
    coefficients = np.array([factors.get(key, 0.0) for key in MEASURES])
    coefficients[0] *= rows.n_columns / max(1, rows.n_rows)  # the utility counts times the number of labels
    inverse = np.zeros(rows.n_columns) if inverse is None else _relative(inverse, rows)
    order = np.random.default_rng(_SEED).permutation(rows.n_rows)
    given = [read_only(array) for array in (rows.indptr, rows.indices, rows.values)]
    chosen = np.empty(len(rows.values), np.bool_)
    choose_best(given[0], given[2], goal.k, chosen)  # to begin with: what is most probable
    for _ in range(_MOST_PASSES):
        totals = _totals(rows, chosen, support, inverse)  # anew, as sums that go up and down drift
        asked = goal.k, rows.n_rows, read_only(coefficients), totals
        if ascend(*given, read_only(order), *asked, chosen) < _LEAST_GAIN * rows.n_columns:
            break
    return keep_entries(rows, chosen)


def _relative(inverse: NDArray[np.float64], rows: SparseRows) -> NDArray[np.float64]:
    """Inverse propensities, so that what all rows are expected to have is the number of labels."""
    expected = float((inverse[rows.indices] * rows.values).sum())
    return inverse * (rows.n_columns / max(expected, 1e-9))


def _totals(
    rows: SparseRows, chosen: NDArray[np.bool_], support: NDArray[np.float64], inverse: NDArray[np.float64]
) -> Any:
    from labeltree.kernels.decisions.ascent import SURE, Totals

    ids, values = rows.indices[chosen], rows.values[chosen].astype(np.float64)
    missed = np.log1p(-np.minimum(values, SURE))
    n = rows.n_columns
    return Totals(
        sums_of_labels(ids, values, n),
        np.bincount(ids, minlength=n).astype(np.float64),
        sums_of_labels(ids, missed, n),
        read_only(np.ascontiguousarray(support, np.float64)),
        read_only(inverse),
        np.empty((n, 2)),
    )


def _longest(rows: SparseRows) -> int:
    return max(1, int(np.diff(rows.indptr).max(initial=0)))
