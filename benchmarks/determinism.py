"""Whether training gives the same file, and prediction the same answers, wherever memory happens to lie.

    python -m benchmarks.determinism [--runs 20] [--points flat-sparse-hsm,kmeans-dense]

Each run is a process of its own that trains all points of the contract grid (benchmarks/grid.py) twice on
generated data: with one to three threads, another PYTHONHASHSEED, and a heap that random allocations shuffle
before, between and while training. Compiled loops may choose their instructions by the distance of two
arrays; their results must not show it.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import labeltree
from benchmarks.generate import Shape, generate
from benchmarks.grid import GRID, Point, write_small_tree
from labeltree.data.rows import SparseRows

# In a flat tree more siblings than a vector of the processor holds, and arrays of them that may lie close.
SHAPE = Shape(
    n_documents=200, n_labels=16, n_features=200, labels_per_document=2.0, features_per_document=12.0
)
N_TEST, N_DENSE, K = 40, 5, 5
_ROUNDS = 2  # a heap is the more scattered the longer it is in use
_MOST_KEPT, _LARGEST_BITS = 500, 12  # pieces of memory; bits of the number of their bytes

_malloc, _free = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
_malloc.argtypes, _malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
_free.argtypes, _free.restype = [ctypes.c_void_p], None


class Heap:
    """Memory that is taken and given back at random, so that the next arrays lie elsewhere.

    Not by arrays of NumPy, which keeps the memory of small ones for itself.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kept: list[int] = []
        self._lock = threading.Lock()

    def shuffle(self, *_: Any) -> None:
        """In the heap of the calling thread; arguments are ignored, so that it may be a callback."""
        with self._lock:
            largest = 1 << self._random.randrange(5, _LARGEST_BITS)
            for _ in range(self._random.randrange(_MOST_KEPT)):
                self._kept.append(_malloc(self._random.randrange(1, largest)))
            self._random.shuffle(self._kept)
            self._give_back(self._random.randrange(_MOST_KEPT))

    def _give_back(self, n_kept: int) -> None:
        for address in self._kept[n_kept:]:
            _free(address)
        del self._kept[n_kept:]

    def close(self) -> None:
        self._give_back(0)


class Data:
    """The rows of all points, as text and as vectors."""

    def __init__(self, folder: Path) -> None:
        drawn = generate(SHAPE, N_TEST)
        self.train, self.test = drawn.X, drawn.X_test
        self.labels = [f"label{label}" for label in range(SHAPE.n_labels)]
        indptr, ids = drawn.Y.indptr, drawn.Y.indices
        self.Y = [[self.labels[id] for id in ids[start:end]] for start, end in itertools.pairwise(indptr)]
        self.tree_file = write_small_tree(folder / "labels.tree", self.labels)

    def digests(self, point: Point, threads: int, heap: Heap, folder: Path) -> list[str]:
        """Of the model file of a point, and of what the model predicts."""
        heap.shuffle()
        X, X_test = (_given(rows, point.features) for rows in (self.train, self.test))
        parameters = point.parameters(self.tree_file)
        model = labeltree.train(X, self.Y, threads=threads, callback=heap.shuffle, **parameters)
        path = folder / "determinism.labeltree"
        model.save(path)
        answers = [
            *model.predict_arrays(X_test, k=K, threads=threads),
            *model.predict_arrays(X_test, k=K, search="beam", threads=threads),
            model.probability(X_test, self.labels, threads=threads),
            *(array for i in range(3) for array in model.predict_arrays(_row(X_test, i), k=K)),
        ]
        content = b"".join(np.ascontiguousarray(array).tobytes() for array in answers)
        return [hashlib.sha256(part).hexdigest()[:16] for part in (path.read_bytes(), content)]


def _given(rows: SparseRows, features: str) -> Any:
    """Rows as the features take them; vectors beside texts are sums of random ones."""
    if features == "vectors":
        return rows
    if features == "text":
        return _texts(rows)
    of_columns = np.random.default_rng(0).normal(size=(rows.n_columns, N_DENSE))
    sums = np.zeros((rows.n_rows, N_DENSE))
    np.add.at(sums, np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), of_columns[rows.indices])
    return [_texts(rows), sums]


def _texts(rows: SparseRows) -> list[str]:
    words = [f"word{column}" for column in rows.indices]
    return [" ".join(words[start:end]) for start, end in itertools.pairwise(rows.indptr)]


def _row(X: Any, i: int) -> Any:
    if isinstance(X, list):
        is_pair = not isinstance(X[0], str)
        return [part[i : i + 1] for part in X] if is_pair else X[i : i + 1]
    part = slice(X.indptr[i], X.indptr[i + 1])
    indptr = np.array([0, part.stop - part.start], np.int64)
    return SparseRows(indptr, X.indices[part], X.values[part], X.n_columns)


def run(points: Sequence[Point], seed: int, threads: int) -> Iterator[tuple[str, list[str]]]:
    """The digests of each point, on a heap of this seed."""
    heap = Heap(seed)
    with tempfile.TemporaryDirectory() as name:
        data = Data(Path(name))
        for point in itertools.chain(*[points] * _ROUNDS):
            yield point.name, data.digests(point, threads, heap, Path(name))
    heap.close()


def run_elsewhere(points: Sequence[Point], seed: int, threads: int) -> list[tuple[str, list[str]]]:
    """:func:`run` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.determinism", "--seed", str(seed), "--threads", str(threads)]
    command += ["--points", ",".join(point.name for point in points)]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(answer.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description="Train all points of the contract grid on shuffled heaps.")
    parser.add_argument("--runs", type=int, default=20, help="processes")
    parser.add_argument("--points", default="", help="parts of the points' names, separated by commas")
    parser.add_argument("--seed", type=int, help="make the run of this seed only, and print its digests")
    parser.add_argument("--threads", type=int, default=1, help="of that run")
    options = parser.parse_args()
    points = [point for point in GRID if any(part in point.name for part in options.points.split(","))]
    if options.seed is not None:
        print(json.dumps(list(run(points, options.seed, options.threads))))
        return 0
    found: dict[str, list[set[str]]] = {point.name: [set(), set()] for point in points}
    for seed in range(options.runs):
        for name, digests in run_elsewhere(points, seed, 1 + seed % 3):
            for kept, digest in zip(found[name], digests, strict=True):
                kept.add(digest)
        print(f"run {seed + 1} of {options.runs} done", file=sys.stderr, flush=True)
    print(f"{'point':<40}  files  predictions")
    for name, (files, predictions) in found.items():
        print(f"{name:<40}  {len(files):>5}  {len(predictions):>11}")
    n_bad = sum(max(map(len, digests)) > 1 for digests in found.values())
    print(f"{len(found) - n_bad} of {len(found)} points gave one file and one answer in {options.runs} runs")
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
