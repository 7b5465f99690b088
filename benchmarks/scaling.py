"""How training and prediction grow with the numbers of labels and of documents, on generated data.

    python -m benchmarks.scaling [--labels 1e3,1e4,1e5,1e6] [--documents 1e4,1e5,1e6] [--output FOLDER]
                                 [--page docs/scaling.md] [--quick]

First the labels vary with --fixed-documents documents, then the documents with --fixed-labels labels; all
else is that of Amazon-670K (`benchmarks/generate.py` says how documents are drawn), and the parameters are
labeltree's defaults unless given. Training and prediction are processes of their own, with warm kernels.
Each finished run is a line of FOLDER/runs.jsonl: a second start measures only what is missing there. Then
the table, the fitted exponents and the bars are printed (`scaling_page.py`); --page also writes them, with
the plot beside.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.generate import PUBLISHED, DataSet, Shape, generate
from benchmarks.scaling_page import BEAM, SEARCHES, draw_plot, write_page
from benchmarks.worker import peak_bytes
from labeltree.data.rows import LabelRows, SparseRows

N_TEST = 10_000
N_SINGLE = 2_000  # rows predicted one by one
WARM_SHAPE = Shape(1_000, 300, 2_000, 3, 20)  # enough labels for k-means to be compiled
QUICK: dict[str, Any] = {
    "labels": "1e2,1e3", "documents": "5e2,2e3", "fixed_labels": "1e2", "fixed_documents": "2e3",
    "dim": 16, "epochs": 2, "features": "5e3",
}  # fmt: skip


def train_step(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """In a process of its own: generate the data, train on it, save model and test rows."""
    from labeltree.training import Progress, train

    shape = Shape(**run["shape"])
    warm = generate(WARM_SHAPE)
    train(warm.X, _indicator(warm.Y), nodes="dense", epochs=1, threads=run["threads"])
    idle_bytes = peak_bytes()
    began = time.perf_counter()
    data = generate(shape, run["n_test"], run["seed"])
    generate_seconds = time.perf_counter() - began
    data_bytes = sum(array.nbytes for array in (*data.X[:3], *data.Y[:2]))
    Y = _indicator(data.Y)
    ended: dict[str, tuple[float, float, int]] = {}  # each stage's last sign of life

    def watch(progress: Progress) -> None:
        ended[progress.stage] = (time.perf_counter(), time.process_time(), peak_bytes())

    began, began_cpu = time.perf_counter(), time.process_time()
    model = train(
        data.X,
        Y,
        nodes="dense",
        threads=run["threads"],
        seed=run["seed"],
        callback=watch,
        **run["parameters"],
    )
    wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    train_peak_bytes = peak_bytes()
    stages: dict[str, Any] = {}
    before, before_cpu = began, began_cpu
    for stage, (at, at_cpu, peak) in ended.items():
        stages[stage] = {"wall": at - before, "cpu": at_cpu - before_cpu, "peak_bytes": peak}
        before, before_cpu = at, at_cpu
    began = time.perf_counter()
    model.save(folder / "model.labeltree")
    _save_test(data, folder / "test.npz")
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
        "model_bytes": (folder / "model.labeltree").stat().st_size,
        "parameter_bytes": statistics["parameter_bytes"],
        "labels_without_examples": statistics["n_labels_without_examples"],
        "depth_mean": statistics["trees"][0]["depth_mean"],
    }


def predict_step(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """In a process of its own: load the model; k=5, one thread, each search in a batch, then row by row."""
    from labeltree.model import load

    began = time.perf_counter()
    model = load(folder / "model.labeltree")
    results = {"load_seconds": time.perf_counter() - began}
    X, Y = _load_test(folder / "test.npz")
    for search, prefix in SEARCHES.items():
        options = {"search": "beam", "beam": run["beam"]} if search == "beam" else {}
        measured = _predict(model, X, Y, options)
        results |= {f"{prefix}{name}": value for name, value in measured.items()}
    return {**results, "predict_peak_bytes": peak_bytes()}


def _predict(model: Any, X: SparseRows, Y: LabelRows, options: dict[str, Any]) -> dict[str, float]:
    from labeltree.metrics import precision_at

    ids, _ = model.predict_arrays(X, 5, threads=1, **options)  # also warms kernels and caches
    batch = []
    for _ in range(3):
        began = time.thread_time()  # CPU time: other programs on the machine disturb less
        model.predict_arrays(X, 5, threads=1, **options)
        batch.append((time.thread_time() - began) / X.n_rows * 1e6)
    rows = [_row(X, i) for i in range(min(N_SINGLE, X.n_rows))]
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


def _indicator(Y: LabelRows) -> Any:
    from scipy.sparse import csr_matrix

    ones = np.ones(len(Y.indices), np.float32)
    return csr_matrix((ones, Y.indices, Y.indptr), shape=(Y.n_rows, Y.n_labels))


def _row(X: SparseRows, i: int) -> SparseRows:
    part = slice(X.indptr[i], X.indptr[i + 1])
    return SparseRows(X.indptr[i : i + 2] - X.indptr[i], X.indices[part], X.values[part], X.n_columns)


def _save_test(data: DataSet, path: Path) -> None:
    X, Y = data.X_test, data.Y_test
    sizes = np.array([X.n_columns, Y.n_labels])
    np.savez(path, x0=X.indptr, x1=X.indices, x2=X.values, y0=Y.indptr, y1=Y.indices, sizes=sizes)


def _load_test(path: Path) -> tuple[SparseRows, LabelRows]:
    with np.load(path) as arrays:
        n_columns, n_labels = (int(size) for size in arrays["sizes"])
        X = SparseRows(arrays["x0"], arrays["x1"], arrays["x2"], n_columns)
        return X, LabelRows(arrays["y0"], arrays["y1"], n_labels)


def measure(run: dict[str, Any]) -> dict[str, Any]:
    """The run with its results; the model lives in a temporary folder."""
    results = {**run, "load_average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            command = [sys.executable, "-m", "benchmarks.scaling", "--step", step, "--output", folder]
            done = subprocess.run(
                [*command, "--run", json.dumps(run)],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(f"{step} of {_name(run)} failed: {done.stderr[-2000:]}")
            results |= json.loads(done.stdout.splitlines()[-1])
    return results


def _name(run: dict[str, Any]) -> str:
    return f"{run['shape']['n_labels']:,} labels, {run['shape']['n_documents']:,} documents"


def plan_runs(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All runs, small ones first, each once."""
    pairs = {(labels, options.fixed_documents) for labels in options.labels}
    pairs |= {(options.fixed_labels, documents) for documents in options.documents}
    amazon = PUBLISHED["Amazon-670K"]._replace(n_features=options.features)
    parameters = {name: getattr(options, name) for name in ("dim", "epochs") if getattr(options, name)}
    return [
        {
            "shape": amazon._replace(n_labels=n_labels, n_documents=n_documents)._asdict(),
            "parameters": parameters,
            "threads": options.threads,
            "seed": options.seed,
            "n_test": min(N_TEST, n_documents),
            "beam": BEAM,
        }
        for n_labels, n_documents in sorted(pairs, key=lambda pair: pair[0] * 0.1 + pair[1])
    ]


def find_results(runs: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The results of each run, measured now unless the file has them."""
    lines = path.read_text().splitlines() if path.exists() else []
    known = [json.loads(line) for line in lines]
    results = []
    for run in runs:
        result = next((old for old in known if old.items() >= run.items()), None)
        if result is None:
            print(f"measuring {_name(run)} ...", file=sys.stderr, flush=True)
            result = measure(run)
            with path.open("a") as file:
                file.write(json.dumps(result) + "\n")
        results.append(result)
    return results


def read_sizes(text: str) -> list[int]:
    return [int(float(size)) for size in text.split(",")]


def read_size(text: str) -> int:
    return int(float(text))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=read_sizes, default="1e3,1e4,1e5,1e6")
    parser.add_argument("--documents", type=read_sizes, default="1e4,1e5,1e6")
    parser.add_argument("--fixed-labels", type=read_size, default="1e4", help="while documents vary")
    parser.add_argument("--fixed-documents", type=read_size, default="5e5", help="while labels vary")
    parser.add_argument("--features", type=read_size, default=str(PUBLISHED["Amazon-670K"].n_features))
    parser.add_argument("--dim", type=int, help="instead of labeltree's default")
    parser.add_argument("--epochs", type=int, help="instead of labeltree's default")
    parser.add_argument("--threads", type=int, default=0, help="of training; 0: all CPUs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "labeltree-scaling")
    parser.add_argument("--page", type=Path, help="write the results there too, with the plot beside")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--run", type=json.loads, help=argparse.SUPPRESS)
    if "--quick" in sys.argv:
        parser.set_defaults(**QUICK)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](options.run, options.output)))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    results = find_results(plan_runs(options), options.output / "runs.jsonl")
    target = options.page or options.output / "scaling.md"
    pictures = draw_plot(results, options, target.with_suffix(""))
    page = write_page(results, options, pictures)
    target.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
