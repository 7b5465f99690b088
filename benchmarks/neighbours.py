"""What neighbours cost and what their index loses: time, size, and accuracy against an exact search.

    python -m benchmarks.neighbours [--data NAME,NAME] [--rows 2000] [--times 10]

Times are of one thread's CPU, the best of three. "Exact" is the cosine with every training row over all
columns. With --times the training rows are repeated so often, each entry in three replaced by one of another
row, and the cost is measured again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import ALL_SETS, MissingData, data_file
from labeltree.config import Config
from labeltree.data.formats import Reading
from labeltree.data.rows import Arrays, LabelRows, SparseRows, first_rows, pointers
from labeltree.experts.neighbours import NeighboursExpert
from labeltree.experts.neighbours_index import LENGTHS
from labeltree.features.reading import read_data_set
from labeltree.metrics import precision_at
from labeltree.training.data import read_training_data

N_NEIGHBOURS = 50
ROWS_OF_EXACT = 500  # that are compared with an exact search
RANKS = (1, 3, 5)
_REPLACED = 0.3  # of the entries of repeated rows


class Data(NamedTuple):
    X: SparseRows
    Y: LabelRows
    test_X: SparseRows
    test_Y: LabelRows


def read(name: str, n_rows: int) -> Data:
    """A data set, with the first rows of its test file."""
    data = read_training_data(str(data_file(name, "train")), None, Config())
    test = read_data_set(data.features, data.labels, data_file(name, "test"), Reading(), skip_bad_lines=False)
    return Data(data.X, data.Y, first_rows(data.features.prepared(test.rows), n_rows), test.labels)


def first_labels(labels: LabelRows, n: int) -> LabelRows:
    indptr = labels.indptr[: n + 1]
    return LabelRows(indptr, labels.indices[: indptr[-1]], labels.n_labels)


def repeat_rows(data: Data, times: int) -> Data:
    """As many times the rows, like those of a larger collection; labels as they are."""
    random, X = np.random.default_rng(1), data.X
    indices, values = np.tile(X.indices, times), np.tile(X.values, times)
    rows = np.repeat(np.arange(times * X.n_rows), np.tile(np.diff(X.indptr), times))
    is_replaced = random.random(len(indices)) < _REPLACED
    indices[is_replaced] = random.choice(X.indices, np.count_nonzero(is_replaced))
    keys, first = np.unique(rows * X.n_columns + indices, return_index=True)
    lengths = np.bincount(keys // X.n_columns, minlength=times * X.n_rows)
    columns = (keys % X.n_columns).astype(np.int32)
    many = SparseRows(pointers(lengths), columns, values[first], X.n_columns)
    labels = pointers(np.tile(np.diff(data.Y.indptr), times))
    return data._replace(X=many, Y=LabelRows(labels, np.tile(data.Y.indices, times), data.Y.n_labels))


def build(data: Data) -> NeighboursExpert:
    return NeighboursExpert.build(data.X, data.Y, np.ones(data.X.n_rows, np.float32), N_NEIGHBOURS)


def cpu_seconds(function: Callable[[], object], n_times: int = 3) -> float:
    """The shortest of a few calls."""
    best = np.inf
    for _ in range(n_times):
        began = time.thread_time()
        function()
        best = min(best, time.thread_time() - began)
    return best


def costs(expert: NeighboursExpert, data: Data) -> list[str]:
    """Size and time: cells of the table."""
    rows, index = data.test_X, expert.index
    expert.nonzero(rows[:3])  # compiled
    batch = cpu_seconds(lambda: expert.nonzero(rows[:3])) / rows.n_rows
    few = range(min(500, rows.n_rows))

    def one_by_one() -> None:
        for i in few:
            expert.nonzero((rows.indptr[i : i + 2], rows.indices, rows.values))

    single = cpu_seconds(one_by_one) / len(few)
    postings = LENGTHS[index.column_lengths][rows.indices].sum() / rows.n_rows
    per_row = LENGTHS[index.row_lengths].mean() if len(index.row_lengths) else 0.0
    size = index.index_bytes / len(data.X.indices)
    return [
        f"{data.X.n_rows:,}", f"{size:.2f}", f"{1e6 * batch:.0f}", f"{1e6 * single:.0f}", f"{postings:,.0f}",
        f"{expert.n_candidates} x {per_row:.0f}",
    ]  # fmt: skip


def exact_neighbours(data: Data, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most similar training rows of the first test rows by the cosine, and the cosines."""
    from scipy.sparse import csr_matrix

    def unit(X: SparseRows) -> csr_matrix:
        matrix = csr_matrix((X.values.astype(float), X.indices, X.indptr), shape=(X.n_rows, X.n_columns))
        norm = np.sqrt(matrix.multiply(matrix).sum(axis=1))
        return csr_matrix(matrix.multiply(1.0 / np.maximum(norm, 1e-300)))

    test, train = unit(first_rows(data.test_X, n_rows)), unit(data.X).T.tocsr()
    numbers, cosines = [], []
    for start in range(0, n_rows, 100):
        scores = (test[start : start + 100] @ train).toarray()
        best = np.argpartition(-scores, N_NEIGHBOURS, axis=1)[:, :N_NEIGHBOURS]
        numbers.append(best)
        cosines.append(np.take_along_axis(scores, best, axis=1))
    return np.concatenate(numbers), np.concatenate(cosines)


def votes_of(data: Data, numbers: NDArray[np.int64], similarities: NDArray[np.float64]) -> NDArray[np.int64]:
    """The best labels by the votes of these neighbours, as they are defined."""
    best = np.full((len(numbers), RANKS[-1]), -1)
    for i, (rows, shares) in enumerate(zip(numbers, similarities**3, strict=True)):
        votes = np.zeros(data.Y.n_labels)
        for row, share in zip(rows, shares, strict=True):
            if share > 0:
                votes[data.Y.indices[data.Y.indptr[row] : data.Y.indptr[row + 1]]] += share
        best[i] = np.argsort(-votes, kind="stable")[: RANKS[-1]]
    return best


def accuracy(expert: NeighboursExpert, data: Data) -> list[str]:
    """What the index finds of the exact neighbours, and P@k of votes alone: its own, and exact ones."""
    n_rows = min(ROWS_OF_EXACT, data.test_X.n_rows)
    arrays: Arrays = first_rows(data.test_X, n_rows)[:3]
    labels = first_labels(data.test_Y, n_rows)
    found, similarities = expert.similar_rows(arrays, N_NEIGHBOURS)
    exact, cosines = exact_neighbours(data, n_rows)
    recall = np.mean([len(np.intersect1d(a, b)) / N_NEIGHBOURS for a, b in zip(found, exact, strict=True)])
    shown = []
    for best in (votes_of(data, found, similarities), votes_of(data, exact, cosines)):
        shown.append("/".join(f"{100 * precision_at(best, labels, k):.1f}" for k in RANKS))
    return [f"{100 * recall:.0f} %", *shown]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=",".join(ALL_SETS))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--times", type=int, default=0)
    given = parser.parse_args(arguments)
    print("| set | rows | bytes per entry | µs a row | single row | postings | candidates x entries ", end="")
    print("| of the 50 | P@1/3/5 | exact |")
    print("|" + "---|" * 10)
    for name in given.data.split(","):
        try:
            data = read(name, given.rows)
        except MissingData as error:
            print(error)
            continue
        expert = build(data)
        print("| " + " | ".join([name, *costs(expert, data), *accuracy(expert, data)]) + " |", flush=True)
        if given.times > 1:
            many = repeat_rows(data, given.times)
            print("| " + " | ".join([f"{name} x {given.times}", *costs(build(many), many)]) + " | | | |")


if __name__ == "__main__":
    main()
