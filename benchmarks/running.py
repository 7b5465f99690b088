"""One run of one tool on one data set: train, predict in batches and row by row, each in its own process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import labeltree
from benchmarks import worker
from benchmarks.environments import environment, last_line
from benchmarks.preparing import Prepared, prepare
from benchmarks.watching import watch
from labeltree.metrics import calibration_error, evaluate

K = 5
THREAD_VARIABLES = ("OMP", "OPENBLAS", "MKL", "RAYON")
EXITED = "exit code"  # in the message of a process that ended by itself
TRAINING_FAILED = f"train: {EXITED}"  # how the message of a run without a model begins


class RunError(Exception):
    """A tool failed; the message says how, in one line."""


class Tool(NamedTuple):
    """One variant of a tool's file."""

    name: str
    path: Path
    module: ModuleType
    settings: dict[str, Any]
    fingerprint: str  # changes with what the tool does here: old runs are not mistaken for new ones

    @property
    def stands_in_for(self) -> str | None:
        """The variant that this one is only for: it counts where training of that one fails by itself."""
        found: str | None = getattr(self.module, "STANDS_IN", {}).get(self.name)
        return found

    @property
    def most_labels(self) -> float:
        """How many labels a data set may have that the tool is meant for."""
        most: float = getattr(self.module, "MOST_LABELS", float("inf"))
        return most

    def predicts(self, prepared: Prepared) -> tuple[str, ...]:
        """The kinds of input that it takes and this data set has."""
        text_only = self.name in getattr(self.module, "TEXT_ONLY", ())
        kinds = (kind for kind in self.module.PREDICTS if not (text_only and kind == "vectors"))
        return tuple(kind for kind in kinds if kind == "vectors" or prepared.is_text)


def discover(folder: Path) -> dict[str, Tool]:
    """Every variant of every tool of a folder, by name, labeltree first."""
    tools = {}
    for path in sorted(folder.glob("[!_]*.py"), key=lambda path: (path.stem != "labeltree", path.stem)):
        module = worker.load_tool(path)
        for name, settings in module.VARIANTS.items():
            tools[name] = Tool(name, path, module, settings, fingerprint(path, module, settings))
    return tools


def fingerprint(path: Path, module: ModuleType, settings: dict[str, Any]) -> str:
    """A digest of the tool's file and settings; for labeltree itself of its source too.

    A line `VARIANTS["name"] = ...`, `STANDS_IN["name"] = ...` or `NOTE += ...` adds a variant without
    touching what the others are: it is left out.
    """
    additions = (b'VARIANTS["', b'STANDS_IN["', b"NOTE += ")
    lines = path.read_bytes().splitlines(keepends=True)
    source = b"".join(line for line in lines if not line.startswith(additions))
    digest = hashlib.sha256(source + json.dumps(settings).encode())
    if module.PACKAGE == "labeltree":
        for file in source_files():
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def source_files() -> list[Path]:
    """Those of labeltree."""
    return sorted(Path(labeltree.__file__).parent.rglob("*.py"))


class Runner:
    """Runs tools whose environments and data are in the cache folder.

    Data is :class:`~benchmarks.preparing.Prepared` or what has the same sizes, labels and files.
    """

    def __init__(self, cache: Path, timeout: float, toy: Callable[[Path], Any] | None = None) -> None:
        """``toy`` puts a small data set of the same kind into a folder, for rehearsals."""
        self.cache = cache
        self.timeout = timeout
        self.make_toy = toy or make_toy
        self.rehearsed: set[str] = set()

    def run(self, tool: Tool, prepared: Prepared, threads: int, seed: int) -> dict[str, Any]:
        """Everything that is measured, as one flat record."""
        python = environment(tool.module, self.cache)
        if not tool.predicts(prepared):
            raise RunError("takes texts, but this data set has vectors only")
        self._rehearse(tool, python)
        with tempfile.TemporaryDirectory(prefix="labeltree-run-") as folder:
            return self._measure(tool, python, prepared, threads, seed, Path(folder))

    def _rehearse(self, tool: Tool, python: Path) -> None:
        """Run everything once on a toy, unmeasured: byte code, kernels and the disk's cache become warm."""
        if tool.name in self.rehearsed:
            return
        with tempfile.TemporaryDirectory(prefix="labeltree-toy-") as folder:
            toy = self.make_toy(Path(folder))
            try:
                self._measure(tool, python, toy, 1, 1, Path(folder))
            except RunError as error:
                raise RunError(f"rehearsal: {error}") from None
        self.rehearsed.add(tool.name)

    def _measure(
        self, tool: Tool, python: Path, prepared: Prepared, threads: int, seed: int, folder: Path
    ) -> dict[str, Any]:
        description: dict[str, Any] = {
            "tool": str(tool.path),
            "settings": tool.settings,
            "threads": threads,
            "seed": seed,
            "k": K,
            "kind": "",
            "model": str(folder / "model"),
            "train": prepared.files("train", tool.module.READS),
            "test": prepared.files("test", tool.module.READS),
            "n_features": prepared.n_features,
            "n_labels": prepared.n_labels,
            "is_text": prepared.is_text,
        }

        def stage(name: str, kind: str = "") -> dict[str, Any]:
            return self._process(python, {**description, "stage": name, "kind": kind}, folder)

        trained = stage("train")
        record: dict[str, Any] = {
            "version": trained["version"],
            "python": trained["python"],
            "train_wall_s": trained["wall"],
            "train_cpu_s": trained["cpu"],
            "parse_cpu_s": trained["sections"].get("parse", {}).get("cpu"),
            "train_sections": trained["sections"],
            "train_peak_bytes": trained["peak_bytes"],
            "train_peak_anonymous_bytes": trained["peak_anonymous_bytes"],
            "model_bytes": trained["model_bytes"],
            "model_digest": digest_of(folder / "model"),
        }
        for kind in tool.predicts(prepared):
            batch, online = stage("batch", kind), stage("online", kind)
            record |= {
                f"batch_{kind}_us": batch["seconds"] / max(batch["n_rows"], 1) * 1e6,
                f"batch_{kind}_cpu_us": batch["cpu_seconds"] / max(batch["n_rows"], 1) * 1e6,
                f"p50_{kind}_us": online.get("p50_us"),
                f"p99_{kind}_us": online.get("p99_us"),
                f"calls_{kind}": online.get("calls"),
                "load_s": batch["sections"]["load"]["wall"],
                "predict_peak_bytes": batch["peak_bytes"],
                "predict_peak_anonymous_bytes": batch["peak_anonymous_bytes"],
            }
            record |= score(batch["ids"], prepared, batch["probabilities"])
        return record

    def _process(self, python: Path, description: dict[str, Any], folder: Path) -> dict[str, Any]:
        """Run the worker; its measurements, with the wall time of the whole process."""
        measured, job = folder / "measured.json", folder / "job.json"
        measured.unlink(missing_ok=True)
        job.write_text(json.dumps({**description, "measured": str(measured)}), encoding="utf-8")
        # One thread unless the tool is told otherwise: libraries like to start one per core.
        threads = str(description["threads"] if description["stage"] == "train" else 1)
        variables = {**os.environ, **{f"{name}_NUM_THREADS": threads for name in THREAD_VARIABLES}}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip has installed has its bytecode
        if str(python) != sys.executable:
            variables.pop("PYTHONPATH", None)  # our packages are not the tool's
        command = [str(python), worker.__file__, str(job)]
        what = f"{description['stage']} {description['kind']}".strip()
        with (folder / "log.txt").open("w+", encoding="utf-8", errors="replace") as log:
            began = time.perf_counter()
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env=variables,
            )  # fmt: skip
            try:
                status, anonymous = watch(process, self.timeout)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise RunError(f"{what}: stopped after {self.timeout:.0f} s") from None
                raise
            wall = time.perf_counter() - began
            log.seek(0)
            said = log.read()
        if status or not measured.is_file():
            ended = f"signal {-status}" if status < 0 else f"{EXITED} {status}"
            raise RunError(f"{what}: {ended}: {last_line(said)}")
        found = json.loads(measured.read_text(encoding="utf-8"))
        return {**found, "wall": wall, "peak_anonymous_bytes": anonymous}


def digest_of(model: Path) -> str:
    """Of the names and bytes of a model's files: are two models the same?"""
    digest = hashlib.sha256()
    for file in sorted(model.rglob("*")) if model.is_dir() else [model]:
        if file.is_file():
            digest.update(str(file.relative_to(model)).encode())
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:16]


def score(
    ids: list[list[int]], prepared: Prepared, probabilities: list[list[float]] | None = None
) -> dict[str, float]:
    """P@k and PSP@k over all test rows, in percent; a label that only the test rows have is a miss.

    Of tools that give probabilities also the calibration error of the first k, as a number from 0 to 1.
    """
    table = filled(ids, -1, np.int64)
    Y = prepared.test_labels
    scores = evaluate(table, Y, (1, 3, 5), prepared.label_counts, prepared.n_train)
    found = {name: 100 * value for name, value in scores.items() if name.startswith(("p@", "psp@"))}
    if probabilities is not None:
        beside = filled(probabilities, 0.0, np.float64)
        found[f"ece@{K}"] = calibration_error(table, beside, Y, K)
    return found


def filled(rows: Sequence[Sequence[float]], missing: float, dtype: type) -> Any:
    """(n_rows, K) the rows, each filled up with ``missing``."""
    table: Any = np.full((len(rows), K), missing, dtype)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


def make_toy(folder: Path) -> Prepared:
    """A few lines whose words give away their labels; large enough for all that is compiled when needed."""
    for part, n_rows in (("train", 2000), ("test", 40)):
        lines = []
        for i in range(n_rows):
            first, second = i % 200, (5 * i + 1) % 200  # enough labels for several levels of a tree
            others = " ".join(f"word{(37 * i + 11 * j) % 5000}" for j in range(30))  # long label profiles
            lines.append(f"__label__t{first} __label__t{second} a{first} b{second} {others} the\n")
        (folder / f"{part}.txt").write_text("".join(lines), encoding="utf-8")
    return prepare("toy", folder / "train.txt", folder / "test.txt", folder)
