"""Trainings that the system ends, or starves: `python -m benchmarks.faults` in short."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.small_data import make_toy, write_fasttext

TOY = make_toy(400)
OPTIONS = ("--quiet", "--threads", "1", "--trees", "2", "--arity", "2", "--max-leaves", "2")


class Folder:
    """Data, and a command that trains on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "data.txt").write_text(write_fasttext(TOY))
        self.finish(self.start("expected"))
        self.expected = self.model("expected")

    def start(self, model: str, *options: str) -> subprocess.Popen[str]:
        command = (sys.executable, "-m", "labeltree", "train", "data.txt", "-o", model, *OPTIONS, *options)
        return subprocess.Popen(command, cwd=self.path, stderr=subprocess.PIPE, text=True)

    def finish(self, process: subprocess.Popen[str], code: int = 0) -> str:
        try:
            errors = process.communicate(timeout=120)[1]
        finally:
            process.kill()
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        return errors

    def model(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("faults"))


def test_killed_at_random_moments(folder: Folder) -> None:
    """One after another: each goes on with what those before have left."""
    choose, work = random.Random(1), folder.path / "work"
    seen = 0
    for _ in range(3):
        process = folder.start("killed", "--work-dir", "work")
        while process.poll() is None and len(list(work.glob("*.part"))) <= seen:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(choose.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        seen = len(list(work.glob("*.part")))
        assert seen or (folder.path / "killed").exists()
    folder.finish(folder.start("killed", "--work-dir", "work"))
    assert folder.model("killed") == folder.expected
    assert not work.exists(), "a finished training leaves nothing"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk on which an array finds room, but not all results."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4296k", "labeltree-test", str(disk)]
    if sys.platform != "linux" or os.getuid() != 0 or not shutil.which("mount"):
        pytest.skip("mounting a small disk needs root on Linux")
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk(folder: Folder, small_disk: Path) -> None:
    work = small_disk / "work"
    for filler in (1 << 20, 0):  # no room for an array; then for an array, but not for all results
        (small_disk / "filler").write_bytes(bytes(filler))
        process = folder.start("full", "--work-dir", str(work))
        errors = folder.finish(process, 1)
        assert errors.startswith(f"Error: {work}: no space left")
        assert "what is finished stays there" in errors
        assert not (folder.path / "full").exists()
    finished = {path.name for path in work.glob("*.part")}
    assert {"rows.part", "tree-0-sparse.part"} <= finished
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    folder.finish(folder.start("full", "--work-dir", str(work)))
    assert folder.model("full") == folder.expected


def test_two_at_once(folder: Folder) -> None:
    """Whoever comes second is refused, and the first goes on."""
    first = folder.start("first", "--work-dir", "both")
    while first.poll() is None and not list((folder.path / "both").glob("*.part")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            first.wait(0.02)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        errors = folder.finish(folder.start("second", "--work-dir", "both"), 1)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert "both: another process trains here; wait for it" in errors
    folder.finish(first)
    assert folder.model("first") == folder.expected
