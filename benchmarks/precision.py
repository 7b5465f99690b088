"""What the bytes of a model cost against the 32-bit numbers it was trained with: accuracy and probabilities.

    python -m benchmarks.precision [--data NAME,NAME] [--rows 2000]

Trains with the defaults, then gives both sets of parameters the same test rows; labels are scored in 64 bits.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import TEXT_SETS, MissingData, data_file
from labeltree.build import build_tree
from labeltree.config import Config
from labeltree.data.rows import LabelRows, SparseRows
from labeltree.metrics import precision_at
from labeltree.model import Model
from labeltree.nodes.dense import DenseParameters, fit_dense
from labeltree.nodes.quantized import quantize
from labeltree.parallel import Pool
from labeltree.training import read_training_data
from labeltree.tree import LabelTree

K = 5
ROWS_AT_A_TIME = 250


def top_labels(
    tree: LabelTree, parameters: DenseParameters, X: SparseRows
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The K most probable labels of each row and their probabilities, from those of all nodes."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix((X.values.astype(float), X.indices, X.indptr), shape=(X.n_rows, X.n_columns))
    weights = parameters.weights.T.astype(float)
    ids, probabilities = [], []
    for start in range(0, X.n_rows, ROWS_AT_A_TIME):
        hidden = rows[start : start + ROWS_AT_A_TIME] @ parameters.embedding.astype(float)
        node_log = -np.logaddexp(0.0, -(hidden @ weights + parameters.bias))
        for node in np.flatnonzero(tree.n_children):  # parents stand before their children
            first = tree.first_child[node]
            node_log[:, first : first + tree.n_children[node]] += node_log[:, [node]]
        label_log = node_log[:, tree.leaf_of_label]
        best = np.argsort(-label_log, axis=1, kind="stable")[:, :K]
        ids.append(best)
        probabilities.append(np.exp(np.take_along_axis(label_log, best, axis=1)))
    return np.concatenate(ids), np.concatenate(probabilities)


def first_rows(X: SparseRows, Y: LabelRows, n: int) -> tuple[SparseRows, LabelRows]:
    x_end, y_end = X.indptr[min(n, X.n_rows)], Y.indptr[min(n, X.n_rows)]
    return (
        SparseRows(X.indptr[: n + 1], X.indices[:x_end], X.values[:x_end], X.n_columns),
        LabelRows(Y.indptr[: n + 1], Y.indices[:y_end], Y.n_labels),
    )


def measure(name: str, n_rows: int) -> str:
    config = Config()
    data = read_training_data(str(data_file(name, "train")), None, config, "auto", False)
    weight = np.ones(data.X.n_rows, np.float32)
    with Pool() as pool:
        tree = build_tree(config, data.X, data.Y, data.labels.strings(), pool, config.seed, None)
        trained = fit_dense(
            data.X, data.Y, tree, config, weight=weight, seed=config.seed, pool=pool, report=lambda _: None
        )
    kept = quantize(trained)
    counts = np.bincount(data.Y.indices, minlength=len(data.labels))
    model = Model(config, data.features, data.labels, counts, data.X.n_rows, [(tree, kept)])
    X, Y = first_rows(*model.read(data_file(name, "test"))[:2], n_rows)
    found = {}
    for bits, parameters in ((32, trained), (8, kept.floats())):
        ids, probabilities = top_labels(tree, parameters, X)
        scores = "/".join(f"{100 * precision_at(ids, Y, k):.2f}" for k in (1, 3, 5))
        size = sum(array.nbytes for array in (trained if bits == 32 else kept)) / 1e6
        found[bits] = (ids, probabilities, f"{bits} bits {scores} ({size:.1f} MB)")
    moved = np.abs(found[8][1] / found[32][1] - 1.0)
    same = 100 * np.mean(found[8][0][:, 0] == found[32][0][:, 0])
    return (
        f"- {name}: P@1/3/5 {found[32][2]}, {found[8][2]}; same first label in {same:.2f} % of "
        f"{X.n_rows} rows; "
        f"probabilities differ by {100 * np.median(moved):.2f} % (median), "
        f"{100 * np.percentile(moved, 95):.2f} % (95th percentile)"
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
