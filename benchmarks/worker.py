"""Runs one stage of one tool and reports what it cost: `TOOL'S PYTHON worker.py JOB.json`.

This file runs under the Python of the tool's own environment, so it uses the standard library only. What it
measures is written to the file that the job names: seconds and CPU seconds of each section of the stage (the
tool says where one begins), of single calls, and the memory peak of this very process.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

BATCH_SECONDS, MOST_BATCHES = 2.0, 5  # a batch is repeated while that is cheap; the best counts
ONLINE_SECONDS, MOST_CALLS, REHEARSED_CALLS = 10.0, 1000, 20


class Job:
    """What a tool's functions get: data, settings, where to put the model, and a stopwatch."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.stage: str = description["stage"]  # train, batch or online
        self.kind: str = description["kind"]  # the input of a prediction: text or vectors
        self.settings: dict[str, Any] = description["settings"]  # of the tool's variant
        self.threads: int = description["threads"]
        self.seed: int = description["seed"]
        self.k: int = description["k"]
        self.model: str = description["model"]  # path of the model, for the tool to make: a file or a folder
        self.train: dict[str, str] = description["train"]  # form of the data -> file
        self.test: dict[str, str] = description["test"]
        self.n_features: int = description["n_features"]
        self.n_labels: int = description["n_labels"]
        self.is_text: bool = description["is_text"]  # otherwise the data set has vectors only
        self.sections: dict[str, dict[str, float]] = {}
        self.section_name = ""
        self._began = (0.0, 0.0)

    def section(self, name: str) -> None:
        """From here on time counts as ``name``: "parse", "train", "save", "load"; "" counts for nothing."""
        now = (time.perf_counter(), cpu_seconds())
        if self.section_name:
            spent = self.sections.setdefault(self.section_name, {"wall": 0.0, "cpu": 0.0})
            spent["wall"] += now[0] - self._began[0]
            spent["cpu"] += now[1] - self._began[1]
        self.section_name, self._began = name, now

    def texts(self) -> list[str]:
        """The test rows as text, in order."""
        return Path(self.test["text"]).read_text(encoding="utf-8").split("\n")[:-1]

    def pairs(self) -> list[list[tuple[int, float]]]:
        """The vectors of the test rows as lists of feature and value."""
        import numpy

        arrays = numpy.load(self.test["npz"])
        features = list(zip(arrays["indices"].tolist(), arrays["values"].tolist(), strict=True))
        edges = arrays["indptr"].tolist()
        return [features[start:stop] for start, stop in itertools.pairwise(edges)]

    def matrix(self, part: str) -> Any:
        """The vectors of "train" or "test" as a SciPy CSR matrix, or with "train labels" their indicators."""
        import numpy
        import scipy.sparse

        files = self.test if part == "test" else self.train
        arrays = numpy.load(files["npz"])
        if part == "train labels":
            indptr, indices = arrays["label_indptr"], arrays["label_indices"]
            ones = numpy.ones(len(indices), numpy.float32)
            return scipy.sparse.csr_matrix((ones, indices, indptr), (len(indptr) - 1, self.n_labels))
        indptr = arrays["indptr"]
        shape = (len(indptr) - 1, self.n_features)
        return scipy.sparse.csr_matrix((arrays["values"], arrays["indices"], indptr), shape)


def cpu_seconds() -> float:
    """User and system time of this process, all its threads and its finished children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def peak_bytes() -> int:
    """The largest resident size of this process.

    Not ``ru_maxrss`` where avoidable: it starts at the size of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def load_tool(path: str | Path) -> ModuleType:
    """A tool's file as a module, without its package."""
    spec = importlib.util.spec_from_file_location(f"tool_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def size_bytes(path: str) -> int:
    target = Path(path)
    files = target.rglob("*") if target.is_dir() else [target]
    return sum(file.stat().st_size for file in files if file.is_file())


def train(tool: ModuleType, job: Job) -> dict[str, Any]:
    tool.train(job)
    job.section("")
    return {
        "model_bytes": size_bytes(job.model),
        "version": importlib.metadata.version(tool.PACKAGE),
        "python": sys.version.split()[0],
    }


def batch(tool: ModuleType, job: Job) -> dict[str, Any]:
    """All test rows in one call, repeated while it is cheap: the best time, and what was predicted."""
    predict: Callable[[], Any] = tool.predict_batch(job, job.kind)
    job.section("")
    seconds: list[float] = []
    processor: list[float] = []
    while not seconds or (sum(seconds) < BATCH_SECONDS and len(seconds) < MOST_BATCHES):
        began, began_cpu = time.perf_counter(), cpu_seconds()
        predicted = predict()
        seconds.append(time.perf_counter() - began)
        processor.append(cpu_seconds() - began_cpu)
    rows = [list(row)[: job.k] for row in predicted]
    best = {"seconds": min(seconds), "cpu_seconds": min(processor)}
    measured: dict[str, Any] = {**best, "n_rows": len(rows), "probabilities": None}
    if any(isinstance(entry, tuple) for row in rows for entry in row[:1]):
        measured["probabilities"] = [[float(probability) for _, probability in row] for row in rows]
        rows = [[label for label, _ in row] for row in rows]
    return measured | {"ids": [[int(label) for label in row] for row in rows]}


def online(tool: ModuleType, job: Job) -> dict[str, Any]:
    """One row per call, evenly over the test rows: the distribution of the times of single calls."""
    n_rows, predict = tool.predict_online(job, job.kind)
    job.section("")
    if n_rows == 0:
        return {}
    for call in range(REHEARSED_CALLS):
        predict(call % n_rows)
    n_calls = min(MOST_CALLS, n_rows)
    nanoseconds: list[int] = []
    limit = time.perf_counter() + ONLINE_SECONDS
    for call in range(n_calls):
        row = call * n_rows // n_calls
        began = time.perf_counter_ns()
        predict(row)
        nanoseconds.append(time.perf_counter_ns() - began)
        if time.perf_counter() > limit:
            break
    nanoseconds.sort()
    last = len(nanoseconds) - 1
    return {
        "calls": len(nanoseconds),
        "p50_us": nanoseconds[round(0.50 * last)] / 1e3,
        "p99_us": nanoseconds[round(0.99 * last)] / 1e3,
    }


STAGES = {"train": train, "batch": batch, "online": online}


def main() -> None:
    # The script's folder comes first on the path: there a tool would find our datasets.py instead of its own.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]
    description = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    job = Job(description)
    measured = STAGES[job.stage](load_tool(description["tool"]), job)
    measured |= {"sections": job.sections, "cpu": cpu_seconds(), "peak_bytes": peak_bytes()}
    Path(description["measured"]).write_text(json.dumps(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
