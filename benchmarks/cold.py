"""What the first run on a machine costs: compiling the kernels, and starting where nothing can be written.

    python -m benchmarks.cold compile [--base REVISION] [--repeats 3]
    python -m benchmarks.cold container [--python /usr/bin/python3]

`compile`: `labeltree train`, `labeltree test` and one `predict` from Python, on a small generated file, one
after another with an empty kernel cache and again with what they left: CPU seconds of all processes, the ones
that `train` starts to help included, and wall time. With a base, the same with the source of that revision,
in turns.

`container`: the package is installed with a Python that every user can run, `labeltree warm-up` runs as root,
and then another user, without a home and without a folder to write to but the temporary one, asks a model.
Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import verdict

_ROOT = Path(__file__).parents[1]
_BECOME_PARENT_OF_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_NOBODY = 65534
_PREDICT = "import labeltree; labeltree.load('m.labeltree').predict(['w1 w2 w3'])"
_STEPS: tuple[tuple[str, ...], ...] = (
    ("-m", "labeltree", "train", "train.txt", "-o", "m.labeltree", "--quiet"),
    ("-m", "labeltree", "test", "m.labeltree", "train.txt"),
    ("-c", _PREDICT),
)
LONGEST_WALL, LARGEST_SHARE, LONGEST_START = 15.0, 0.5, 1.5


class Cost(NamedTuple):
    cpu: float
    wall: float


def measure(commands: Sequence[Sequence[str]], folder: Path, environment: dict[str, str]) -> Cost:
    """CPU seconds of the commands and of everything they start, and wall seconds until the last one ends."""
    before, began = _cpu_of_children(), time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    while True:  # helpers that outlive who started them
        try:
            os.wait()
        except ChildProcessError:
            return Cost(_cpu_of_children() - before, wall)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write_data(path: Path) -> None:
    """1,500 rows of 110 labels: enough for every stage, too few to take time."""
    choose = random.Random(1)
    with path.open("w") as file:
        for _ in range(1500):
            label = choose.randrange(100)
            words = (f"w{20 * label + choose.randrange(20)}" for _ in range(10))
            file.write(f"__label__a{label} __label__b{label // 10} {' '.join(words)}\n")


def compare_compiling(base: str | None, repeats: int) -> None:
    if ctypes.CDLL(None).prctl(_BECOME_PARENT_OF_ORPHANS, 1, 0, 0, 0):
        sys.exit("this needs Linux")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder / "train.txt")
        sources = {"present": folder / "present"}  # a copy: its own folder of kernels would be warm
        shutil.copytree(_ROOT / "src", sources["present"], ignore=shutil.ignore_patterns("__pycache__"))
        if base is not None:
            archive = subprocess.run(
                ["git", "archive", base, "src"], cwd=_ROOT, check=True, capture_output=True
            )
            (folder / "base").mkdir()
            subprocess.run(["tar", "-x"], cwd=folder / "base", input=archive.stdout, check=True)
            sources["base"] = folder / "base" / "src"
        best: dict[str, Cost] = {}
        for number in range(repeats):
            for source, path in sources.items():
                cold, warm = _cold_and_warm(path, folder, folder / f"{source}-{number}")
                compiling = Cost(cold.cpu - warm.cpu, cold.wall)
                print(
                    f"{source:8} CPU: cold {cold.cpu:5.1f} s, warm {warm.cpu:4.1f} s, compiling "
                    f"{compiling.cpu:5.1f} s; wall: cold {cold.wall:5.1f} s",
                    flush=True,
                )
                best[source] = Cost(*map(min, compiling, best.get(source, compiling)))
        wall = best["present"].wall
        print(f"wall, best: {wall:.1f} s  bar {LONGEST_WALL:g} s: {verdict(wall <= LONGEST_WALL)}")
        if base is not None:
            share = best["present"].cpu / best["base"].cpu
            print(f"CPU of base, best: {share:.2f}  bar {LARGEST_SHARE}: {verdict(share <= LARGEST_SHARE)}")


def _cold_and_warm(source: Path, folder: Path, kernels: Path) -> tuple[Cost, Cost]:
    environment = {**os.environ, "PYTHONPATH": str(source), "HOME": str(kernels)}
    environment |= {"LABELTREE_KERNELS": str(kernels), "NUMBA_CACHE_DIR": str(kernels)}
    commands = [(sys.executable, *step) for step in _STEPS]
    return measure(commands, folder, environment), measure(commands, folder, environment)


def start_in_container(python: str) -> None:
    if os.getuid() != 0:
        sys.exit("this needs root, to become another user")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_data(folder / "train.txt")
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        command = folder / "venv" / "bin" / "labeltree"
        subprocess.run([folder / "venv" / "bin" / "pip", "install", "--quiet", _ROOT], check=True)
        environment = {"PATH": "/usr/bin:/bin"}
        print(subprocess.check_output([command, "warm-up"], env=environment, text=True).strip())
        train = [command, "train", "train.txt", "-o", "m.labeltree", "--quiet"]
        subprocess.run(train, cwd=folder, env=environment, check=True)
        costs = []
        for _ in range(3):
            before = _cpu_of_children()
            subprocess.run(
                [command, "predict", folder / "m.labeltree", "-"], input=b"w1 w2 w3\n", check=True, cwd="/",
                env=environment, user=_NOBODY, group=_NOBODY, extra_groups=[],
            )  # fmt: skip
            costs.append(_cpu_of_children() - before)
        first = costs[0]
        told = ", ".join(f"{cost:.2f}" for cost in costs)
        print(f"CPU until the answer: {told} s  bar {LONGEST_START} s: {verdict(first <= LONGEST_START)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("section", choices=("compile", "container"))
    parser.add_argument("--base", help="of compile: a revision to compare with")
    parser.add_argument("--repeats", type=int, default=3, help="of compile; default: 3")
    parser.add_argument("--python", default="/usr/bin/python3", help="of container")
    chosen = parser.parse_args()
    if chosen.section == "compile":
        compare_compiling(chosen.base, chosen.repeats)
    else:
        start_in_container(chosen.python)


if __name__ == "__main__":
    main()
