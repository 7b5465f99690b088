"""What the bytes of a model cost against the 32-bit numbers it was trained with: accuracy and probabilities.

    python -m benchmarks.precision [--data NAME,NAME] [--rows 2000]

Trains dense nodes on words (`--preset fast`), then gives both sets of parameters the same test rows; labels
are scored in 64 bits.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import TEXT_SETS, MissingData, data_file
from labeltree.config import make_config
from labeltree.data.rows import LabelRows, SparseRows, TrainingRows, first_rows
from labeltree.metrics import precision_at
from labeltree.model import Model
from labeltree.nodes.dense.fitting import DenseParameters, fit_dense
from labeltree.nodes.dense.quantized import quantize
from labeltree.nodes.kind import FitInput
from labeltree.parallel import Pool
from labeltree.training.data import read_training_data
from labeltree.tree import LabelTree
from labeltree.trees.builder import TreeInput, build_tree

K = 5
ROWS_AT_A_TIME = 250


def node_logs(tree: LabelTree, parameters: DenseParameters, X: SparseRows) -> NDArray[np.float64]:
    """(n_rows, n_nodes) the logarithms of the probabilities of all nodes."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix((X.values.astype(float), X.indices, X.indptr), shape=(X.n_rows, X.n_columns))
    hidden = rows @ parameters.embedding.astype(float)
    logs = -np.logaddexp(0.0, -(hidden @ parameters.weights.T.astype(float) + parameters.bias))
    for node in np.flatnonzero(tree.n_children):  # parents stand before their children
        first = tree.first_child[node]
        logs[:, first : first + tree.n_children[node]] += logs[:, [node]]
    return logs


def label_logs(tree: LabelTree, parameters: DenseParameters, X: SparseRows) -> NDArray[np.float64]:
    """(n_rows, n_labels) the logarithms of all probabilities."""
    return node_logs(tree, parameters, X)[:, tree.leaf_of_label]


def best_labels(logs: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.argsort(-logs, axis=1, kind="stable")[:, :K]


def measure(name: str, n_rows: int) -> str:
    config = make_config({"nodes": "dense", "arity": 16}, preset="fast")
    data = read_training_data(str(data_file(name, "train")), None, config)
    weight = np.ones(data.X.n_rows, np.float32)
    with Pool() as pool:
        rows = TrainingRows(data.X, data.Y, weight)
        tree = build_tree(TreeInput(rows, data.labels.strings(), config, pool), config.seed)
        trained = fit_dense(FitInput(rows, tree, config, config.seed, pool))
    kept = quantize(trained)
    counts = np.bincount(data.Y.indices, minlength=len(data.labels))
    reader = Model(config, data.features, data.labels, counts, data.X.n_rows, [])  # nothing is asked of it
    X, Y, _ = reader.read(data_file(name, "test"))
    X = first_rows(X, n_rows)
    Y = LabelRows(Y.indptr[: X.n_rows + 1], Y.indices[: Y.indptr[X.n_rows]], Y.n_labels)
    ids: dict[int, list[NDArray[np.int64]]] = {32: [], 8: []}
    moved = []  # of the probabilities of the labels that the trained parameters find
    for start in range(0, X.n_rows, ROWS_AT_A_TIME):
        indptr = X.indptr[start : start + ROWS_AT_A_TIME + 1]
        part = SparseRows(indptr - indptr[0], *(a[indptr[0] : indptr[-1]] for a in X[1:3]), X.n_columns)
        logs = {32: label_logs(tree, trained, part), 8: label_logs(tree, kept.floats(), part)}
        for bits, of_labels in logs.items():
            ids[bits].append(best_labels(of_labels))
        before, after = (np.take_along_axis(logs[bits], ids[32][-1], axis=1) for bits in (32, 8))
        moved.append(np.abs(np.expm1(after - before)))
    shown = []
    for bits, parameters in ((32, trained), (8, kept)):
        found = np.concatenate(ids[bits])
        scores = "/".join(f"{100 * precision_at(found, Y, k):.2f}" for k in (1, 3, 5))
        shown.append(f"{bits} bits {scores} ({sum(array.nbytes for array in parameters) / 1e6:.1f} MB)")
    same = 100 * np.mean(np.concatenate(ids[8])[:, 0] == np.concatenate(ids[32])[:, 0])
    change = np.concatenate(moved)
    return (
        f"- {name}: P@1/3/5 {', '.join(shown)}; same first label in {same:.2f} % of {X.n_rows} rows; "
        f"probabilities differ by {100 * np.median(change):.2f} % (median), "
        f"{100 * np.percentile(change, 95):.2f} % (95th percentile)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=",".join(TEXT_SETS[:4]))
    parser.add_argument("--rows", type=int, default=2000)
    chosen = parser.parse_args()
    for name in chosen.data.split(","):
        try:
            print(measure(name, chosen.rows), flush=True)
        except MissingData as error:
            print(f"- {error}")


if __name__ == "__main__":
    main()
