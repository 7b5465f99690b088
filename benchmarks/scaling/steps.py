"""The steps of `python -m benchmarks.scaling`, each in a process of its own: training, and prediction."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import labeltree.query
from benchmarks.generate import DataSet, Shape, generate
from benchmarks.worker import peak_bytes
from labeltree.data.rows import LabelRows, SparseRows

N_SINGLE = 2_000  # rows predicted one by one
MODEL, TEST_ROWS = "model.labeltree", "test.npz"
BEAM = 10  # width of the beam search that is measured beside the exact one
WARM_SHAPE = Shape(1_000, 300, 2_000, 3, 20)  # enough labels for k-means to be compiled


class Search(NamedTuple):
    """A search that is measured: how it is asked for, and how it is told from the others."""

    name: str
    title: str  # of columns, after what is measured; that of the exact one goes without
    prefix: str  # of fields
    options: dict[str, Any]


EXACT = Search("exact", "", "", {"search": "exact"})
AUTO = Search("auto", " auto", "auto_", {"search": "auto"})
SEARCHES = tuple(
    search
    for search in (EXACT, AUTO, Search("beam", f" beam {BEAM}", "beam_", {"search": "beam", "beam": BEAM}))
    if search.name in labeltree.query.SEARCHES
)


def train_step(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """In a process of its own: generate the data, train on it, save model and test rows."""
    from labeltree.experts.job import Progress
    from labeltree.training.driver import train

    shape = Shape(**run["shape"])
    warm = generate(WARM_SHAPE)
    fixed = {"preset": "fast", "nodes": run["nodes"], "threads": run["threads"]}
    train(warm.X, indicator(warm.Y), **fixed)
    idle_bytes = peak_bytes()
    began = time.perf_counter()
    data = generate(shape, run["n_test"], run["seed"])
    generate_seconds = time.perf_counter() - began
    data_bytes = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
    Y = indicator(data.Y)
    ended: dict[str, tuple[float, float, int]] = {}  # each stage's last sign of life

    def watch(progress: Progress) -> None:
        ended[progress.stage] = (time.perf_counter(), time.process_time(), peak_bytes())

    began, began_cpu = time.perf_counter(), time.process_time()
    model = train(data.X, Y, seed=run["seed"], callback=watch, **fixed, **run["parameters"])
    wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    train_peak_bytes = peak_bytes()
    stages: dict[str, Any] = {}
    before, before_cpu = began, began_cpu
    for stage, (at, at_cpu, peak) in ended.items():
        stages[stage] = {"wall": at - before, "cpu": at_cpu - before_cpu, "peak_bytes": peak}
        before, before_cpu = at, at_cpu
    began = time.perf_counter()
    save_test(data, folder / TEST_ROWS)
    model.save(folder / MODEL)  # last, and completely or not at all: where it is, the step is done
    statistics = model.inspect()
    return {
        "idle_bytes": idle_bytes,
        "generate_seconds": generate_seconds,
        "data_bytes": data_bytes,
        "train_wall_seconds": wall,
        "train_cpu_seconds": cpu,
        "train_peak_bytes": train_peak_bytes,
        "stages": stages,
        "save_seconds": time.perf_counter() - began,
        "model_bytes": (folder / MODEL).stat().st_size,
        "parameter_bytes": statistics["parameter_bytes"],
        "labels_without_examples": statistics["n_labels_without_examples"],
        "depth_mean": statistics["trees"][0]["depth_mean"],
    }


def predict_step(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """In a process of its own: load the model; k=5, one thread, each search in a batch, then row by row."""
    from labeltree.model import load

    began = time.perf_counter()
    model = load(folder / MODEL)
    results = {"load_seconds": time.perf_counter() - began}
    X, Y = load_test(folder / TEST_ROWS)
    for search in SEARCHES:
        measured = _predict(model, X, Y, search.options)
        results |= {f"{search.prefix}{name}": value for name, value in measured.items()}
    return {**results, "predict_peak_bytes": peak_bytes()}


def _predict(model: Any, X: SparseRows, Y: LabelRows, options: dict[str, Any]) -> dict[str, float]:
    from labeltree.metrics import precision_at

    ids, _ = model.predict_arrays(X, 5, threads=1, **options)  # also warms kernels and caches
    batch = []
    for _ in range(3):
        began = time.thread_time()  # CPU time: other programs on the machine disturb less
        model.predict_arrays(X, 5, threads=1, **options)
        batch.append((time.thread_time() - began) / X.n_rows * 1e6)
    rows = [row_of(X, i) for i in range(min(N_SINGLE, X.n_rows))]
    model.predict_arrays(rows[0], 5, threads=1, **options)  # single rows have kernels of their own
    single = np.empty(len(rows))
    for i, row in enumerate(rows):
        began = time.perf_counter()
        model.predict_arrays(row, 5, threads=1, **options)
        single[i] = (time.perf_counter() - began) * 1e6
    return {
        "batch_microseconds": min(batch),
        "single_microseconds": float(np.median(single)),
        "single_microseconds_p99": float(np.percentile(single, 99)),
        **{f"p@{k}": float(precision_at(ids, Y, k)) for k in (1, 3, 5)},
    }


STEPS = {"train": train_step, "predict": predict_step}


def indicator(Y: LabelRows) -> Any:
    from scipy.sparse import csr_matrix

    ones = np.ones(len(Y.indices), np.float32)
    return csr_matrix((ones, Y.indices, Y.indptr), shape=(Y.n_rows, Y.n_labels))


def row_of(X: SparseRows, i: int) -> SparseRows:
    part = slice(X.indptr[i], X.indptr[i + 1])
    return SparseRows(X.indptr[i : i + 2] - X.indptr[i], X.indices[part], X.values[part], X.n_columns)


def save_test(data: DataSet, path: Path) -> None:
    X, Y = data.X_test, data.Y_test
    sizes = np.array([X.n_columns, Y.n_labels])
    np.savez(path, x0=X.indptr, x1=X.indices, x2=X.values, y0=Y.indptr, y1=Y.indices, sizes=sizes)


def load_test(path: Path) -> tuple[SparseRows, LabelRows]:
    with np.load(path) as arrays:
        n_columns, n_labels = (int(size) for size in arrays["sizes"])
        X = SparseRows(arrays["x0"], arrays["x1"], arrays["x2"], n_columns)
        return X, LabelRows(arrays["y0"], arrays["y1"], n_labels)
