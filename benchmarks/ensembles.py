"""What several trees cost beside one, and what the default search proves.

    python -m benchmarks.ensembles --data wordnet-hypernyms,acl-authors [--trees 3] [-k 5] [--models FOLDER]

For each data set: microseconds per row, in a batch (CPU time, one thread) and row by row (median of wall
times), of a model of one tree and of one of several, and their ratios, whose bar is 4 for three trees;
precision; and for both the share of rows whose labels `--search auto` proves to be the most probable ones,
whose bar is 99 %, and how far its P@k is from the exact search's, whose bar is 0.05. Models are kept in
FOLDER and used again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.datasets import MissingData, both_files
from benchmarks.report import aligned
from benchmarks.scaling.steps import row_of

if TYPE_CHECKING:
    from labeltree.data.rows import SparseRows
    from labeltree.model import Model

N_SINGLE = 1_000  # rows predicted one by one
ROUNDS = 3  # the least time counts
TITLES = (
    "data set", "trees", "batch µs", "ratio", "single µs", "ratio", "P@1/3/5", "proven %",
    "auto's P@k off by",
)  # fmt: skip


class Times(NamedTuple):
    batch: float  # microseconds per row
    single: float


def train_or_load(name: str, trees: int, folder: Path) -> Model:
    from labeltree.model import load
    from labeltree.training.driver import train

    path = folder / f"{name}-{trees}.labeltree"
    if not path.exists():
        train(both_files(name)[0], trees=trees).save(path)
    return load(path)


def measure_times(model: Model, rows: SparseRows, k: int) -> Times:
    """Of the default search."""
    singles = [row_of(rows, i) for i in range(min(N_SINGLE, rows.n_rows))]
    model.predict_arrays(singles[0], k, threads=1)
    batch, single = [], []
    for _ in range(ROUNDS):
        began = time.thread_time()
        model.predict_arrays(rows, k, threads=1)
        batch.append((time.thread_time() - began) / rows.n_rows)
        each = np.empty(len(singles))
        for i, row in enumerate(singles):
            started = time.perf_counter()
            model.predict_arrays(row, k, threads=1)
            each[i] = time.perf_counter() - started
        single.append(float(np.median(each)))
    return Times(1e6 * min(batch), 1e6 * min(single))


def measure(name: str, n_trees: Sequence[int], k: int, folder: Path) -> list[list[str]]:
    """A line of the table for each number of trees."""
    from labeltree.metrics import precision_at

    lines, first = [], None
    for trees in n_trees:
        model = train_or_load(name, trees, folder)
        rows, labels, _ = model.read(both_files(name)[1])
        ids, _, is_exact = model.predict_arrays(rows, k, threads=1, return_exact=True)
        exact, _ = model.predict_arrays(rows, k, threads=1, search="exact")
        ranks = [rank for rank in (1, 3, 5) if rank <= k]
        ours, true = ([100 * precision_at(each, labels, rank) for rank in ranks] for each in (ids, exact))
        times = measure_times(model, rows, k)
        first = first or times
        lines.append([
            name, str(trees), f"{times.batch:.1f}", f"{times.batch / first.batch:.2f}", f"{times.single:.1f}",
            f"{times.single / first.single:.2f}", "/".join(f"{value:.2f}" for value in ours),
            f"{100 * is_exact.mean():.2f}",
            f"{max(abs(a - b) for a, b in zip(ours, true, strict=True)):.3f}",
        ])  # fmt: skip
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="wordnet-hypernyms,acl-authors", help="comma-separated")
    parser.add_argument("--trees", type=int, default=3)
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--models", type=Path, help="a folder to keep the models in")
    chosen = parser.parse_args(argv)
    lines = [list(TITLES)]
    with tempfile.TemporaryDirectory(prefix="labeltree-ensembles-") as temporary:
        folder = chosen.models or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in chosen.data.split(","):
            try:
                lines += measure(name, (1, chosen.trees), chosen.k, folder)
            except MissingData as missing:
                print(missing)
    print(aligned(lines))


if __name__ == "__main__":
    main()
