"""What a second Dask worker saves, and what Dask costs with one: wall times, so the machine must be quiet.

    python -m benchmarks.workers --data wordnet-hypernyms

Trains in memory with one thread, on one worker and on two, in turn; each in a process of its own, with
kernels that are compiled. Prints, of the best of all repeats, the whole time (without starting the cluster)
and that of the stage in which nodes are trained, and whether the model is the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.datasets import data_file

BARS = {"two workers": 1.6, "overhead of one": 1.15}
_IN_MEMORY = 0


class Times(NamedTuple):
    total: float
    nodes: float  # of the stage in which they are trained
    digest: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="wordnet-hypernyms")
    parser.add_argument("--preset", default=None, help="instead of the defaults")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one is not None:
        print(json.dumps(_train(chosen.data, chosen.preset, chosen.one)))
        return
    found: dict[int, list[Times]] = {workers: [] for workers in (_IN_MEMORY, 1, 2)}
    for _ in range(chosen.repeats):
        for workers, times in found.items():
            times.append(_run(chosen.data, chosen.preset, workers))
    _report(found)


def _run(data: str, preset: str | None, workers: int) -> Times:
    command = [sys.executable, "-m", "benchmarks.workers", "--data", data, "--one", str(workers)]
    command += [] if preset is None else ["--preset", preset]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Times(*json.loads(done.stdout.splitlines()[-1]))


def _train(data: str, preset: str | None, workers: int) -> Times:
    import labeltree
    from labeltree.cli.steps import cluster_of

    source = str(data_file(data, "train"))
    stages: dict[str, float] = {}

    def hear(progress: Any) -> None:
        stages.setdefault(progress.stage, time.perf_counter())
        if progress.stage == "train":
            stages["trained"] = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder, cluster_of(workers or None, None) as client:
        means = {} if client is None else {"work_dir": Path(folder) / "work", "client": client}
        if client is not None:
            client.run(_load)  # kernels are loaded, as they are in a worker that has trained before
        began = time.perf_counter()
        model = labeltree.train(source, preset=preset, threads=1, callback=hear, **means)
        total = time.perf_counter() - began
        model.save(Path(folder) / "model")
        digest = hashlib.sha256((Path(folder) / "model").read_bytes()).hexdigest()
    return Times(total, stages["trained"] - stages["train"], digest)


def _load() -> None:
    import labeltree

    labeltree.train(["a b", "b c", "c d"], [["x"], ["y"], ["z"]], threads=1)


def _report(found: dict[int, list[Times]]) -> None:
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, best of {len(found[1])}")
    best = {
        workers: [min(column) for column in zip(*times, strict=True)][:2] for workers, times in found.items()
    }
    for workers, (total, nodes) in best.items():
        what = f"{workers} workers" if workers else "in memory, one thread"
        print(f"{what:24} {total:7.2f} s, nodes {nodes:7.2f} s")
    for part, name in enumerate(("total", "nodes")):
        faster, overhead = best[1][part] / best[2][part], best[1][part] / best[_IN_MEMORY][part]
        print(
            f"{name}: two workers {faster:.2f} times as fast as one (bar: {BARS['two workers']}), "
            f"one worker {overhead:.2f} times the time in memory (bar: {BARS['overhead of one']})"
        )
    print("same bytes:", len({times.digest for own in found.values() for times in own}) == 1)


if __name__ == "__main__":
    main()
