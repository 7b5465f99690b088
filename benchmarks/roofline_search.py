"""Prediction for `python -m benchmarks.roofline`: which nodes a search opens, and what its parts take."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks import roofline_kernels as kernels
from benchmarks.precision import ROWS_AT_A_TIME, K, node_logs
from benchmarks.roofline_machine import fastest, fastest_of
from benchmarks.roofline_page import Part, Rates, Work
from labeltree.data.rows import Arrays, SparseRows, pointers, read_only
from labeltree.experts.tree_expert import TreeExpert
from labeltree.nodes import LINKS
from labeltree.nodes.dense.quantized import QuantizedParameters
from labeltree.query import make_query
from labeltree.tree import LabelTree

TURNS = 4  # times as many as elsewhere: parts are differences of short times


def opened_nodes(tree: LabelTree, logs: NDArray[np.float64], k: int) -> list[NDArray[np.int32]]:
    """The inner nodes that exact search opens for each row: all that are as probable as its k-th label.

    Nodes are opened in the order of their probabilities. So when a less probable one is next, all labels more
    probable than it are known, the first k among them, and the search ends.
    """
    of_labels = logs[:, tree.leaf_of_label]
    least = np.full(len(logs), -np.inf)
    if k <= tree.n_labels:
        least = np.partition(of_labels, tree.n_labels - k, axis=1)[:, tree.n_labels - k]
    is_opened = (logs >= least[:, None]) & (tree.n_children > 0)
    return [np.flatnonzero(row).astype(np.int32) for row in is_opened]


def search_work(n_entries: int, n_scored: int, dim: int) -> dict[str, Work]:
    """Of all searched rows; a scale for each vector, an index and a value for each entry, a bias per node."""
    return {
        "query": Work(2 * dim * n_entries, 0, (dim + 12) * n_entries),
        "scores": Work(2 * dim * n_scored, 0, (dim + 8) * n_scored),
        "log-sigmoid": Work(0, 0, 0),
        "queue": Work(0, 0, 0),
    }


def find_opened(search: TreeExpert, X: SparseRows) -> list[NDArray[np.int32]]:
    assert isinstance(search.parameters, QuantizedParameters)
    floats, opened = search.parameters.floats(), []
    for start in range(0, X.n_rows, ROWS_AT_A_TIME):
        indptr = X.indptr[start : start + ROWS_AT_A_TIME + 1]
        part = slice(indptr[0], indptr[-1])
        rows = SparseRows(indptr - indptr[0], X.indices[part], X.values[part], X.n_columns)
        opened += opened_nodes(search.tree, node_logs(search.tree, floats, rows), K)
    return opened


def measure_search(
    search: TreeExpert, X: SparseRows, roofs: dict[str, float], n_times: int
) -> tuple[float, float, list[Part]]:
    """Opened and scored nodes per row, and the parts of searching all rows."""
    tree, opened = search.tree, find_opened(search, X)
    opened_indptr, flat = pointers([len(nodes) for nodes in opened]), np.concatenate(opened)
    # the root's own score is needed too
    scored = np.concatenate(
        [np.zeros(X.n_rows, np.int64)]
        + [np.arange(tree.n_children[node]) + tree.first_child[node] for node in flat]
    ).astype(np.int32)
    arrays: Arrays = (read_only(X.indptr), read_only(X.indices), read_only(X.values))
    ids, probabilities = np.empty((X.n_rows, K), np.int32), np.empty((X.n_rows, K), np.float32)
    link, out = LINKS[search.link].kernel, np.empty(X.n_rows, np.float32)

    def run(with_scores: bool, with_link: bool) -> None:
        kernels.search_parts(search.table, *arrays, opened_indptr, flat, with_scores, with_link, link, out)

    def run_whole() -> None:
        search.topk(arrays, make_query(K), ids, probabilities)

    steps = [partial(run, *how) for how in ((False, False), (True, False), (True, True))]
    seconds = np.diff([0.0, *fastest_of([*steps, run_whole], TURNS * n_times)])
    parameters = search.parameters
    assert isinstance(parameters, QuantizedParameters)
    work = search_work(len(X.indices), len(scored), parameters.embedding.shape[1])
    rates = {
        "query": _read_rate(parameters.embedding, X.indices, n_times),
        "scores": _read_rate(parameters.weights, scored, n_times),
    }
    parts = [
        Part(name, float(taken), done, Rates(roofs["bytes"], roofs["l2"], rates.get(name, roofs["memory"])))
        for (name, done), taken in zip(work.items(), seconds, strict=True)
    ]
    return len(flat) / X.n_rows, len(scored) / X.n_rows, parts


def _read_rate(matrix: NDArray[np.int8], rows: NDArray[np.int32], n_times: int) -> float:
    return matrix.shape[1] * len(rows) / fastest(lambda: kernels.read_rows(matrix, rows), n_times)
