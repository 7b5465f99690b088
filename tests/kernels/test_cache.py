"""Machine code is compiled once per machine; whatever happens to its files costs time, never more."""

from __future__ import annotations

import errno
import io
import logging
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import labeltree
from labeltree.kernels import cache
from labeltree.kernels.jit import kernel

MODULE = """
from labeltree.kernels.jit import kernel

@kernel
def double(number):
    return 2 * number
"""
SCRIPT = """
from doubling import double
from labeltree.kernels import cache
print(double(21), *cache.compiled)
"""
FOUND, COMPILED = "42", "42 double"  # what it prints


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kernel that no other folder has."""
    path = tmp_path_factory.mktemp("module") / "doubling.py"
    path.write_text(MODULE)
    return path


def start(module: Path, folder: Path, **environment: str) -> subprocess.Popen:
    environment = {"PATH": "", "PYTHONPATH": str(module.parent), cache.ENVIRONMENT: str(folder)} | environment
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


def output(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*-*") if path.is_file()]


@pytest.fixture(scope="module")
def warm(module: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of one kernel."""
    folder = tmp_path_factory.mktemp("kernels")
    assert output(start(module, folder)) == COMPILED
    assert len(files(folder)) == 1
    return folder


@pytest.fixture
def folder(warm: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(warm, tmp_path / "copy")
    return tmp_path / "copy"


def test_code_is_used_again(module: Path, folder: Path) -> None:
    assert output(start(module, folder)) == FOUND


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_damaged_code_is_compiled_again_and_overwritten(
    module: Path, folder: Path, content: bytes | None
) -> None:
    (path,) = files(folder)
    good = path.read_bytes()
    path.write_bytes(good[:-100] if content is None else content)
    assert output(start(module, folder)) == COMPILED
    assert output(start(module, folder)) == FOUND
    assert len(files(folder)) == 1


@pytest.mark.skipif(cache.fcntl is None, reason="Windows: each compiles for itself")
def test_processes_that_start_together_compile_once(module: Path, tmp_path: Path) -> None:
    processes = [start(module, tmp_path / "kernels") for _ in range(3)]
    assert sorted(map(output, processes)) == [FOUND, FOUND, COMPILED]


def test_an_edited_helper_is_compiled_again(tmp_path: Path) -> None:
    """Helpers are in other files than the kernels that they become part of."""
    copy = tmp_path / "labeltree"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(labeltree.__file__).parent, copy, ignore=ignore)
    helper, caller = copy / "kernels" / "my_helper.py", copy / "kernels" / "my_kernel.py"
    helper.write_text("from labeltree.kernels.jit import inlined\n@inlined\ndef f(x):\n    return x + 1\n")
    caller.write_text(
        "from labeltree.kernels.jit import kernel\nfrom labeltree.kernels.my_helper import f\n"
        "@kernel\ndef g(x):\n    return f(x)\n"
    )
    environment = {"PATH": "", "PYTHONPATH": str(tmp_path), cache.ENVIRONMENT: str(tmp_path / "kernels")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python itself would not see a change within a second
    command = [sys.executable, "-c", "from labeltree.kernels.my_kernel import g; print(g(1))"]
    assert subprocess.check_output(command, env=environment) == b"2\n"
    helper.write_text(helper.read_text().replace("x + 1", "x + 9"))
    assert subprocess.check_output(command, env=environment) == b"10\n"


SHAPES = """
from labeltree.kernels.jit import generic, kernel, kernel_of

@generic
def area(shape):
    pass

@kernel
def twice(shape):
    return 2 * area(shape)

def make(shape):
    @kernel_of(shape)
    def thrice():
        return 3 * area(shape)
    return thrice
"""
SQUARE = """
from typing import NamedTuple
from shapes import area

class Square(NamedTuple):
    side: int

@area.of(Square)
def square(shape):
    return shape.side**2
"""


def test_an_edited_body_is_compiled_again(tmp_path: Path) -> None:
    """What kernels do for a type may be in another file than they are, also if a closure holds its value."""
    (tmp_path / "shapes.py").write_text(SHAPES)
    path = os.pathsep.join([str(tmp_path), str(Path(labeltree.__file__).parents[1])])
    environment = {"PATH": "", "PYTHONPATH": path, cache.ENVIRONMENT: str(tmp_path / "kernels")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    script = "import square, shapes; s = square.Square(5); print(shapes.twice(s), shapes.make(s)())"
    for body, expected in (("side**2", b"50 75\n"), ("side + 1", b"12 18\n")):
        (tmp_path / "square.py").write_text(SQUARE.replace("side**2", body))
        assert subprocess.check_output([sys.executable, "-c", script], env=environment) == expected
        assert subprocess.check_output([sys.executable, "-c", script], env=environment) == expected


def test_a_folder_that_cannot_be_written_is_used(module: Path, folder: Path) -> None:
    """Not even the superuser can write where a file stands for the folder that is written to."""
    (folder.parent / "file").write_text("")
    readable = {cache.ENVIRONMENT: str(folder.parent / "file"), "NUMBA_CACHE_DIR": str(folder)}
    assert output(start(module, folder, **readable)) == FOUND


def test_a_full_disk_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    monkeypatch.setattr(cache, "_write", fail)
    cache._warn_once.cache_clear()

    @kernel
    def total(values):
        return values.sum()

    with caplog.at_level(logging.WARNING, "labeltree"):
        assert total(np.ones(3)) == 3.0
        assert total(np.ones(3, np.float32)) == 3.0
    assert len(caplog.records) == 1
    assert cache.ENVIRONMENT in caplog.text
    assert files(tmp_path) == []


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        cache._write(tmp_path / "version" / "total-0", b"code")
    assert list((tmp_path / "version").iterdir()) == []


def test_kernels_of_other_settings_have_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.registry import cpu_target

    code = cache.MachineCode(test_code_is_used_again)
    name = code._name("()", cpu_target.target_context)
    monkeypatch.setattr("numba.core.config.BOUNDSCHECK", 1)
    assert code._name("()", cpu_target.target_context) != name


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no owners of this kind")
class TestFoldersOfUsers:
    """Code is executed, so it is only taken from where nobody else can put it."""

    @pytest.fixture(autouse=True)
    def _temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def own(self, tmp_path: Path) -> Path:
        return tmp_path / f"labeltree-kernels-{os.getuid()}"

    @pytest.mark.parametrize("umask", [0o002, 0o022])
    def test_they_are_private_and_made_only_to_write(self, umask: int, tmp_path: Path) -> None:
        roots = [self.own(tmp_path), tmp_path / "cache" / "labeltree" / "kernels"]
        assert set(roots) <= {folder.parent for folder in cache.folders()}
        assert not any(root.exists() for root in roots)
        before = os.umask(umask)
        try:
            for root in roots:
                cache._write(root / cache.version() / "total-0", b"code")
                assert root.stat().st_mode & 0o777 == 0o700
        finally:
            os.umask(before)
        assert set(roots) <= {folder.parent for folder in cache.folders()}

    def test_one_that_others_can_write_is_not_used(self, tmp_path: Path) -> None:
        self.own(tmp_path).mkdir()
        self.own(tmp_path).chmod(0o777)
        assert self.own(tmp_path) not in [folder.parent for folder in cache.folders()]

    def test_one_whose_version_others_can_write_is_not_used(self, tmp_path: Path) -> None:
        version = self.own(tmp_path) / cache.version()
        version.mkdir(parents=True, mode=0o700)
        version.chmod(0o777)
        assert version not in cache.folders()

    def test_a_link_is_not_used(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        self.own(tmp_path).symlink_to(tmp_path / "elsewhere")
        assert self.own(tmp_path) not in [folder.parent for folder in cache.folders()]

    def test_one_of_somebody_else_is_not_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        theirs = self.own(tmp_path)
        theirs.mkdir(mode=0o700)
        monkeypatch.setattr(os, "lstat", lambda path: os.stat_result((0o40700, 0, 0, 1, 4711, 0, 0, 0, 0, 0)))
        assert theirs not in [folder.parent for folder in cache.folders()]

    def test_without_a_home_there_is_still_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "/dev/null")
        assert [folder.parent for folder in cache.folders()][-1] == self.own(tmp_path)


def test_code_of_versions_that_nobody_uses_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, used, other = tmp_path / ("0" * 16), tmp_path / ("1" * 16), tmp_path / "something else"
    for path in (old, used, other):
        path.mkdir()
    for path in (old, other):
        os.utime(path, (0, time.time() - 100 * 86_400))
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    monkeypatch.setattr(cache._Turn, "_file", None)

    @kernel
    def negative(value):
        return -value

    assert negative(1) == -1
    assert {path.name for path in tmp_path.iterdir()} == {used.name, other.name, cache.version()}


class TestAnnouncing:
    def compile_two(self) -> None:
        @kernel
        def halve(value):
            return value / 2

        assert halve(4) == halve(4.0) == 2

    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
        monkeypatch.setattr(cache, "when_compiling", cache.announce)
        monkeypatch.setattr(cache, "_has_begun", False)

    def test_to_the_log_alone(
        self, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with caplog.at_level(logging.INFO, "labeltree"):
            self.compile_two()
        assert [record.getMessage() for record in caplog.records] == [cache.NOTICE]
        assert capsys.readouterr() == ("", "")

    def test_to_a_terminal(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        self.compile_two()
        assert capsys.readouterr() == ("", cache.NOTICE + "\n")

    def test_to_a_notebook(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
        self.compile_two()
        assert capsys.readouterr() == ("", cache.NOTICE + "\n")

    def test_a_closed_stream_does_no_harm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        closed = io.StringIO()
        closed.close()
        monkeypatch.setattr(sys, "stderr", closed)
        self.compile_two()


def test_threads_that_compile_one_kernel_leave_no_turn_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_only", tmp_path)
    begun: list[str] = []
    ended: list[int] = []
    wait_for, end = cache._Turn.wait_for, cache._Turn.end
    monkeypatch.setattr(cache._Turn, "wait_for", lambda name: begun.append(name) or wait_for(name))
    monkeypatch.setattr(cache._Turn, "end", lambda turn: ended.append(1) or end(turn))

    @kernel
    def triple(value):
        return 3 * value

    values = [dtype(1) for dtype in (np.int8, np.int16, np.int32, np.int64, np.float32, np.float64)]
    with ThreadPoolExecutor(len(values)) as pool:
        assert list(pool.map(triple, values)) == [3] * len(values)
    assert len(begun) == len(ended) == len(values)
