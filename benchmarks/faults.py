"""Does a training that is ended, starved or damaged go on to the same bytes, or say clearly why not?

    python -m benchmarks.faults [SECTION ...] [--data NAME] [--kills 20] [--worker-kills 10] [--seed 1]

`process`: `labeltree train --work-dir` is killed (SIGKILL) at random moments of its usual duration, and run
again. `worker`: of `labeltree train --workers 2`, a worker is killed at a random moment; it goes on. `disk`:
the work dir is on a tmpfs that is too small, then large enough; needs root on Linux. `damage`: files of a
work dir are cut off, or a bit is flipped, or they are exchanged for something else.

Each line says what was done and how it ended; the end counts as good if the model has the bytes of one that
was trained undisturbed in memory, or if the error names the file or the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.bars import verdict
from benchmarks.datasets import MissingData, data_file

_LONGEST = 600.0  # seconds of a command: none may hang
_MEGABYTES = (1, 4, 6, 8, 10, 12, 14, 18, 24, 100)  # of disks that are too small, or just not
_AMPLE = "2g"


class Outcome(NamedTuple):
    what: str
    end: str
    is_good: bool


class Training:
    """One command, its usual duration, and the digest of the model that it should make."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.data, self.folder = data, folder
        self.model, self.work = folder / "model.labeltree", folder / "work"
        self.run_once("--threads", "1")  # whatever is compiled or cached is there afterwards
        self.expected = self.digest()
        began = time.perf_counter()
        self.run_once("--threads", "1", "--work-dir", str(self.work))
        self.seconds = time.perf_counter() - began
        if self.digest() != self.expected:
            sys.exit("even undisturbed, the model with a work dir has other bytes")

    def start(self, *options: str) -> subprocess.Popen[str]:
        self.model.unlink(missing_ok=True)
        return labeltree("train", str(self.data), "-o", str(self.model), "--quiet", *options)

    def run_once(self, *options: str) -> None:
        code, errors = finish(self.start(*options))
        if code:
            sys.exit(f"an undisturbed training has failed: {errors}")

    def digest(self) -> str:
        return hashlib.sha256(self.model.read_bytes()).hexdigest() if self.model.is_file() else ""

    def parts(self) -> list[Path]:
        return sorted(self.work.glob("*.part")) if self.work.is_dir() else []

    def outcome(self, what: str, process: subprocess.Popen[str], expected_error: str = "") -> Outcome:
        """How a process ends: with the right bytes or, where one is expected, with an error of one line."""
        code, errors = finish(process)
        if code == 0:
            is_same = self.digest() == self.expected
            return Outcome(what, "same bytes" if is_same else "OTHER BYTES", is_same and not expected_error)
        is_clear = bool(expected_error) and expected_error in errors and "Traceback" not in errors
        told = (errors.strip().splitlines() or [""])[-1].replace(f"{self.folder}/", "")
        return Outcome(what, f"exit code {code}: {told[:110]}", is_clear)

    def clear(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)


def labeltree(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "labeltree", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        errors = process.communicate(timeout=_LONGEST)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return -1, f"did not end within {_LONGEST:.0f} s; {process.communicate()[1]}"
    return process.returncode, errors


def kill_processes(training: Training, choose: random.Random, n: int) -> Iterator[Outcome]:
    options = ("--threads", "1", "--work-dir", str(training.work))
    n_killed = 0
    while n_killed < n:
        after = choose.uniform(0.0, training.seconds)
        process = training.start(*options)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
            continue  # it was faster than usual
        process.kill()
        process.communicate()
        n_killed += 1
        what = f"kill {n_killed} after {after:.1f} s: {len(training.parts())} results kept"
        yield training.outcome(what, training.start(*options))
        training.clear()


def kill_workers(training: Training, choose: random.Random, n: int) -> Iterator[Outcome]:
    for number in range(n):
        process = training.start("--threads", "1", "--work-dir", str(training.work), "--workers", "2")
        began = time.perf_counter()
        # Half of them when the first tasks are done, so that some are under way; half whenever that is.
        while process.poll() is None and not (_tasks_done(training) if number % 2 else _workers(process.pid)):
            time.sleep(0.02)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(choose.uniform(0.0, 0.3 * training.seconds))
        workers = _workers(process.pid) if process.poll() is None else []
        what = f"worker {number + 1}: none was left"
        if workers:
            os.kill(choose.choice(workers), signal.SIGKILL)
            seconds, done = time.perf_counter() - began, _tasks_done(training)
            what = f"worker {number + 1} killed after {seconds:.1f} s: {done} tasks done"
        yield training.outcome(what, process)
        training.clear()


def _tasks_done(training: Training) -> int:
    return sum(path.stem.count("-") == 3 for path in training.parts())


def _workers(process: int) -> list[int]:
    """Processes that a process has started by multiprocessing."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and b"multiprocessing.spawn" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def fill_disks(training: Training) -> Iterator[Outcome]:
    if sys.platform != "linux" or os.getuid() != 0:
        yield Outcome("disk full", "not tried: mounting a tmpfs needs root on Linux", True)
        return
    disk = training.folder / "disk"
    disk.mkdir()
    options = ("--threads", "1", "--work-dir", str(disk / "work"))
    for megabytes in _MEGABYTES:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "labeltree", disk]).returncode:
            yield Outcome("disk full", "not tried: a tmpfs cannot be mounted here", True)
            return
        try:
            full = training.outcome(f"disk of {megabytes} MB", training.start(*options), "no space left")
            if full.end == "same bytes":
                yield full._replace(end="same bytes: large enough", is_good=True)
                continue
            yield full
            subprocess.run(["mount", "-o", f"remount,size={_AMPLE}", disk], check=True)
            yield training.outcome("  ... again with room", training.start(*options))
        finally:
            subprocess.run(["umount", disk], check=True)


def damage_files(training: Training, choose: random.Random) -> Iterator[Outcome]:
    """Of a plan whose tasks are done; each damage to a fresh copy."""
    plan, whole = training.work, training.folder / "whole"
    steps = (("plan", str(training.data), "-o", str(plan), "--quiet"), ("work", str(plan)))
    for step in steps:
        code, errors = finish(labeltree(*step))
        if code:
            sys.exit(f"labeltree {step[0]} has failed: {errors}")
    shutil.copytree(plan, whole)
    tasks = sorted(path.name for path in plan.glob("tree-*-*-*.part"))
    merge = ("merge", str(plan), "-o", str(training.model), "--quiet")
    again = (("work", str(plan)), merge)
    for kind, damage in _DAMAGES.items():
        for name, error, redo in (
            (choose.choice(tasks), "1 of", again),
            ("rows.part", "rows.part", ()),
            ("work.json", "work.json", ()),
        ):
            shutil.rmtree(plan)
            shutil.copytree(whole, plan)
            damage(plan / name, choose)
            training.model.unlink(missing_ok=True)
            yield training.outcome(f"{name} {kind}", labeltree(*merge), error)
            for step in redo[:-1]:
                finish(labeltree(*step))
            if redo:
                yield training.outcome("  ... its task done again", labeltree(*redo[-1]))
    training.clear()


def _cut(path: Path, choose: random.Random) -> None:
    os.truncate(path, choose.randrange(path.stat().st_size))


def _flip(path: Path, choose: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[choose.randrange(len(content))] ^= 0x80  # no JSON has a byte beyond 127
    path.write_bytes(content)


def _exchange(path: Path, choose: random.Random) -> None:
    path.write_bytes(choose.randbytes(1000))


_DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "cut off": _cut,
    "with a bit flipped": _flip,
    "exchanged": _exchange,
}


def run_sections(data: Path, sections: list[str], kills: int, worker_kills: int, seed: int) -> bool:
    """Print every outcome; returns whether all are good."""
    outcomes = list[Outcome]()
    with tempfile.TemporaryDirectory() as name:
        training = Training(data, Path(name))
        print(f"{data.name}: {training.seconds:.1f} s undisturbed, sha256 {training.expected[:16]}")
        found: dict[str, Callable[[random.Random], Iterator[Outcome]]] = {
            "process": lambda choose: kill_processes(training, choose, kills),
            "worker": lambda choose: kill_workers(training, choose, worker_kills),
            "disk": lambda choose: fill_disks(training),
            "damage": lambda choose: damage_files(training, choose),
        }
        for section in sections or found:
            for outcome in found[section](random.Random(f"{seed} {section}")):
                outcomes.append(outcome)
                print(f"{outcome.what:50} {outcome.end:60} {verdict(outcome.is_good)}", flush=True)
    n_good = sum(outcome.is_good for outcome in outcomes)
    print(f"{n_good} of {len(outcomes)} good: {verdict(n_good == len(outcomes))}")
    return n_good == len(outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="process, worker, disk, damage")
    parser.add_argument(
        "--data", default="cooking-stackexchange", metavar="NAME", help="default: %(default)s"
    )
    parser.add_argument("--kills", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--worker-kills", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    chosen = parser.parse_args()
    if unknown := {*chosen.sections} - {"process", "worker", "disk", "damage"}:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    try:
        data = data_file(chosen.data, "train")
    except MissingData as error:
        sys.exit(str(error))
    how = (chosen.sections, chosen.kills, chosen.worker_kills, chosen.seed)
    if not run_sections(data, *how):
        sys.exit(1)


if __name__ == "__main__":
    main()
