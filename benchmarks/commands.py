"""labeltree's own commands, each as a process of its own that the operating system measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.datasets import data_file
from benchmarks.ways import Way


class Run(NamedTuple):
    output: str
    cpu_seconds: float
    wall_seconds: float


def run(
    *arguments: str,
    environment: dict[str, str] | None = None,
    text: str | None = None,
    start: tuple[str, ...] = ("-m", "labeltree"),
) -> Run:
    """Run a labeltree command in a process of its own, measured by the operating system."""
    command = [sys.executable, *start, *arguments]
    began = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
        tempfile.TemporaryFile("w+") as given,
    ):
        given.write(text or "")
        given.seek(0)
        process = subprocess.Popen(
            command, stdin=given, stdout=out, stderr=errors, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {errors.read()[-2000:]}")
        output = out.read()
    return Run(output, usage.ru_utime + usage.ru_stime, time.perf_counter() - began)


def train(name: str, way: Way, model: Path, *options: str) -> Run:
    """Run `labeltree train` on a data set."""
    return run(*train_command(name, way, model), *options)


def train_command(name: str, way: Way, model: Path) -> tuple[str, ...]:
    return ("train", str(data_file(name, "train")), "-o", str(model), "--quiet", *way.options)


# The operating system's account of a child begins with the size of its parent; the child itself knows better.
TELLS_PEAK = """
from benchmarks.worker import peak_bytes
from labeltree.cli import main
status = main()
print()
print(peak_bytes())
raise SystemExit(status)
"""


def peak_of(*arguments: str) -> int:
    """The largest resident size of the process of a labeltree command."""
    return int(run(*arguments, start=("-c", TELLS_PEAK)).output.splitlines()[-1])


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def test(name: str, model: Path) -> dict[str, Any]:
    """What `labeltree test` says of a model."""
    answer = run("test", str(model), str(data_file(name, "test")), "--json")
    return json.loads(answer.output.splitlines()[-1])
