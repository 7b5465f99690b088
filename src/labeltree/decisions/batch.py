"""Decisions for given rows together: what a measure of all of them gains the most by.

A measure like macro F1 is not a sum over rows: what one row should get depends on what others get. Block
coordinate ascent (Schultheis et al., NeurIPS 2023) goes from row to row, giving each what gains the
most, given the others, until nothing changes. Where true labels are not known, their probabilities take their
place. Measures that are such sums need one look at each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeltree.data.matrices import is_sparse, sparse_rows
from labeltree.data.rows import SparseRows, keep_entries, pointers, read_only
from labeltree.decisions.fitting import n_candidates
from labeltree.decisions.goals import Goal, parse_goal
from labeltree.decisions.separate import SEPARATE
from labeltree.errors import DataError, ParameterError, show
from labeltree.experts.ensemble import best_per_row
from labeltree.metrics.measures import propensities
from labeltree.parallel import Pool, row_slices
from labeltree.query import make_query

if TYPE_CHECKING:
    from labeltree.kernels.decisions.ascent import Candidates, Weights
    from labeltree.model import Model
    from labeltree.predictor import Answers

_MOST_PASSES = 50
_LEAST_GAIN = 1e-6  # of the measure, by another pass
_TIE = 1e-4  # of precision beside coverage
# Of rows that propose by the same counts: few, so that threads seldom wait for each other. With one block
# decisions are as good too, but take up to twice as many passes, or more where many rows are alike.
_N_BLOCKS = 8


def decide(model: Any, X: Any = None, *, measure: str, k: int | None = None, threads: int = 0) -> Any:
    """The labels of all rows of ``X`` that are best together for a measure, such as ``macro-f1@5``.

    ``model`` is a model, and the answer like that of its ``predict``; or, without ``X``, it is a SciPy CSR
    matrix (or NumPy array) of probabilities (n_rows, n_labels), and the answer a CSR matrix of those that are
    chosen. It is the same for any number of ``threads`` (0: all CPUs).
    """
    goal = parse_goal(measure, k)
    if goal.least_precision:
        raise ParameterError(
            f"measure {show(measure)} needs no decision for all rows: tune has a rule for it"
        )
    if hasattr(model, "predict_arrays"):
        return _decide_by_model(model, X, goal, threads)
    if X is not None:
        raise DataError("X is for a model; probabilities are given alone")
    if any(key == "psp" for _, key in goal.terms):
        raise ParameterError(f"measure {show(measure)} needs a model, which knows how frequent labels are")
    from scipy.sparse import csr_matrix

    rows = _rows_of(model)
    chosen = choose_together(rows, _expected(rows), goal, threads=threads)
    shape = rows.n_rows, rows.n_columns
    return csr_matrix((chosen.values, chosen.indices, chosen.indptr), shape=shape)


def _rows_of(marginals: Any) -> SparseRows:
    """Probabilities as they were given, checked."""
    from scipy.sparse import csr_matrix

    if isinstance(marginals, np.ndarray) and marginals.ndim == 2 and marginals.dtype.kind in "fiub":
        marginals = csr_matrix(marginals)
    if not is_sparse(marginals):
        raise DataError(
            "give a model and X, or probabilities (n_rows, n_labels) alone, a SciPy CSR matrix or NumPy array"
        )
    rows = sparse_rows(marginals, int(marginals.shape[1]))
    is_wrong = ~((rows.values >= 0.0) & (rows.values <= 1.0))
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        row = int(np.searchsorted(rows.indptr, place, side="right")) - 1
        raise DataError(
            f"row {row}, column {rows.indices[place]}: {rows.values[place]:g} is no probability from 0 to 1"
        )
    return rows


def _decide_by_model(model: Model, X: Any, goal: Goal, threads: int) -> Answers:
    ids, probabilities, _ = model.best(X, make_query(n_candidates(goal, model.n_labels)), threads)
    is_label = ids >= 0
    rows = SparseRows(pointers(is_label.sum(axis=1)), ids[is_label], probabilities[is_label], model.n_labels)
    # What is not among a row's candidates counts too: a label is at least as frequent as it was in training.
    support = np.maximum(_expected(rows), rows.n_rows * model.label_counts / model.n_examples)
    inverse = 1.0 / propensities(model.label_counts, model.n_examples)
    chosen = choose_together(rows, support, goal, inverse, threads)
    best_ids, best = best_per_row((chosen.indptr, chosen.indices), chosen.values, _longest(chosen))
    names = model.label_names
    return [
        [(names[label], p) for label, p in zip(row, values, strict=True) if label >= 0]
        for row, values in zip(best_ids.tolist(), best.astype(np.float32).tolist(), strict=True)
    ]


def _expected(rows: SparseRows) -> NDArray[np.float64]:
    """(n_labels,) how many rows are expected to have each label."""
    from labeltree.kernels.decisions.ascent import add_labels

    sums = np.zeros(rows.n_columns)
    add_labels(read_only(rows.indices), read_only(rows.values), sums)
    return sums


def choose_together(
    rows: SparseRows,
    support: NDArray[np.float64],
    goal: Goal,
    inverse: NDArray[np.float64] | None = None,
    threads: int = 0,
) -> SparseRows:
    """Those of the candidates that are chosen.

    ``support`` is how many rows are expected to have a label, ``inverse`` are inverse propensities.
    """
    if not goal.k:
        return keep_entries(rows, SEPARATE[goal.terms[0][1]](rows, support))
    from labeltree.kernels.decisions.ascent import Candidates, Weights

    taken = pointers(np.minimum(np.diff(rows.indptr), goal.k))
    arrays = [read_only(array) for array in (rows.indptr, rows.indices, rows.values, taken)]
    candidates = Candidates(_longest(rows), *arrays)
    factors = {key: factor for factor, key in goal.terms}
    if "coverage" in factors:  # where all that can be is covered, rows get what is probable
        factors["p"] = factors.get("p", 0.0) + _TIE * factors["coverage"]
    weights = Weights(*(factors.get(key, 0.0) for key in ("macro-f1", "macro-precision", "coverage")))
    fixed = _fixed_lines(factors, rows, support, goal.k, inverse)
    with Pool(threads) as pool:
        if any(weights):
            choices = _ascend(candidates, support, fixed, weights, pool)
        else:
            choices = _best(candidates, fixed.astype(np.float32), pool)
    choices.sort()  # those of a row stand together: each row's are in order
    return SparseRows(taken, rows.indices[choices], rows.values[choices], rows.n_columns)


def _fixed_lines(
    factors: dict[str, float],
    rows: SparseRows,
    support: NDArray[np.float64],
    k: int,
    inverse: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """(n_labels, 2) slope and intercept of what one more row with a label gains by its probability, as far as
    that does not depend on other rows; times the number of labels."""
    lines = np.zeros((rows.n_columns, 2))
    lines[:, 0] = factors.get("p", 0.0) * rows.n_columns / (k * max(1, rows.n_rows))
    if inverse is not None and "psp" in factors:
        # Relative to what all rows are expected to have.
        expected = float((inverse[rows.indices] * rows.values).sum())
        lines[:, 0] += factors["psp"] * inverse * (rows.n_columns / max(expected, 1e-9))
    found, lost = _inverse(support), _inverse(rows.n_rows - support)
    balanced = 0.5 * factors.get("balanced-accuracy", 0.0)
    lines[:, 0] += (factors.get("macro-recall", 0.0) + balanced) * found + balanced * lost
    lines[:, 1] -= balanced * lost
    return lines


def _inverse(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of what is not above 0, 0."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0.0)


def _best(candidates: Candidates, lines: NDArray[np.float32], pool: Pool) -> NDArray[np.int64]:
    """The choices of the highest values on these lines."""
    from labeltree.kernels.decisions.ascent import choose_best

    choices, given = np.empty(candidates.taken[-1], np.int64), (candidates, read_only(lines))
    parts = row_slices(len(candidates.taken) - 1, pool.threads)
    pool.map(lambda part: choose_best(*given, part.start, part.stop, choices), parts)
    return choices


def _ascend(
    candidates: Candidates,
    support: NDArray[np.float64],
    fixed: NDArray[np.float64],
    weights: Weights,
    pool: Pool,
) -> NDArray[np.int64]:
    """The choices that no row gains by changing alone, or hardly anything."""
    from labeltree.kernels.decisions.ascent import SUPPORT, Totals, Trade, count_choices, exchange, propose

    n_rows, n_labels, n_most = len(candidates.taken) - 1, len(support), candidates.longest
    n_possible = int(np.count_nonzero(support))
    counts, lines = np.zeros((n_labels, 4)), np.zeros((n_labels, 2), np.float32)
    counts[:, SUPPORT], lines[:, 0] = support, 1.0
    choices = _best(candidates, lines, pool)  # to begin with: what is most probable
    proposed, totals = np.empty_like(choices), Totals(counts, read_only(fixed), lines)
    room = Trade(np.empty(n_most), np.empty(n_most, np.int64), np.empty(n_most), np.empty(n_most, np.int64))

    def propose_part(part: slice) -> None:
        propose(candidates, choices, part.start, part.stop, weights, totals, proposed)

    for _ in range(_MOST_PASSES):
        count_choices(candidates, choices, weights, totals)
        gained = 0.0
        for block in row_slices(n_rows, _N_BLOCKS):
            pool.map(propose_part, _parts(block, pool.threads))
            gained += exchange(candidates, proposed, block.start, block.stop, weights, totals, room, choices)
        if gained <= _LEAST_GAIN * n_possible:
            break
    return choices


def _parts(rows: slice, n_parts: int) -> list[slice]:
    parts = row_slices(rows.stop - rows.start, n_parts)
    return [slice(rows.start + part.start, rows.start + part.stop) for part in parts]


def _longest(rows: SparseRows) -> int:
    return max(1, int(np.diff(rows.indptr).max(initial=0)))
