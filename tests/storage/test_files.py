"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from labeltree import cli
from labeltree.cli.signals import Terminated, orderly_end
from labeltree.storage import files
from labeltree.storage.files import write_whole

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.labeltree"))[0]
# The command line, stopped where a file is complete but not yet renamed.
SLOW = """
import os, signal, sys, time
from labeltree import cli
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup tests are deaf to it, and so would be this
def fsync(descriptor):
    print("saving", flush=True)
    time.sleep(600)
os.fsync = fsync
sys.exit(cli.main(sys.argv[1:]))
"""


def test_chunks_become_the_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for chunks in ([], [b"one"], [b"one", memoryview(b"two"), b""]):
        write_whole(path, chunks)
        assert path.read_bytes() == b"".join(chunks)
    assert os.listdir(tmp_path) == ["file"]


def test_permissions_and_flushing_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flushed = tmp_path / "file", []
    monkeypatch.setattr(os, "fsync", flushed.append)
    write_whole(path, [b"one"], mode=0o640, durable=False)
    assert (path.read_bytes(), flushed) == (b"one", [])
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o640
    write_whole(path, [b"two"])
    assert len(flushed) == (2 if os.name == "posix" else 1)  # the file, and the name in its folder


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, RuntimeError])
def test_what_fails_leaves_the_old_content(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def chunks() -> Iterator[bytes]:
        yield b"x" * 10_000_000
        raise error

    with pytest.raises(error):
        write_whole(path, chunks())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"a beginning"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=re.escape(f"No space left on device: '{tmp_path / 'file'}'")):
        write_whole(tmp_path / "file", chunks())
    assert not list(tmp_path.iterdir())


def test_a_temporary_name_is_never_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Any, *arguments: Any) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("labeltree.storage.files.os.open", refuse)
    with pytest.raises(PermissionError, match=re.escape(f"Permission denied: '{tmp_path / 'file'}'")):
        write_whole(tmp_path / "file", [b"x"])


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "no" / "file", [b"x"])
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path, [b"x"])


@pytest.mark.skipif(os.name != "posix", reason="links and modes")
def test_links_stay_and_the_mode_is_that_of_the_umask(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_whole(link, [b"new"])
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    (tmp_path / "plain").write_bytes(b"")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.fixture
def saving(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of the command line that is just saving a file into an empty folder."""
    arguments = ["inspect", str(GOLDEN), "--tree", str(tmp_path / "tree.txt")]
    command = [sys.executable, "-c", SLOW, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "saving\n"
        assert len(os.listdir(tmp_path)) == 1
        yield process
        process.kill()


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_process_that_is_asked_to_end_leaves_nothing(
    name: str, saving: subprocess.Popen[str], tmp_path: Path
) -> None:
    number = getattr(signal, name)
    saving.send_signal(number)
    _, errors = saving.communicate()
    assert saving.returncode == 128 + number
    assert errors == "Terminated.\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(
    saving: subprocess.Popen[str], tmp_path: Path
) -> None:
    [left] = os.listdir(tmp_path)
    write_whole(tmp_path / "one", [b"1"])
    assert sorted(os.listdir(tmp_path)) == sorted([left, "one"])
    saving.kill()
    saving.wait()
    write_whole(tmp_path / "two", [b"2"])
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_writers_of_the_same_process_leave_each_other_alone(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"outer"
        write_whole(tmp_path / "inner", [b"inner"])

    write_whole(tmp_path / "outer", chunks())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "outer": "outer",
        "inner": "inner",
    }


def no_lock(descriptor: int, how: int) -> None:
    raise OSError("no locks here")


def without_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where the system itself refuses to remove what is open."""
    monkeypatch.setattr(files, "fcntl", None)


def on_a_file_system_without(monkeypatch: pytest.MonkeyPatch) -> None:
    if files.fcntl is None:
        pytest.skip("this system has no locks at all")
    monkeypatch.setattr(files.fcntl, "flock", no_lock)


@pytest.mark.parametrize(
    ("host", "take_locks"),
    [
        ("", None),  # earlier versions wrote no host at all
        ("elsewhere-", None),
        (f"{files._HOST}-", without_module),
        (f"{files._HOST}-", on_a_file_system_without),
    ],
)
def test_where_locks_may_not_reach_files_are_removed_when_they_are_old(
    host: str,
    take_locks: Callable[[pytest.MonkeyPatch], None] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if take_locks is not None:
        take_locks(monkeypatch)
    left = tmp_path / f".labeltree-{host}0123456789abcdef.tmp"
    left.write_bytes(b"part")
    write_whole(tmp_path / "file", [b"1"])
    assert left.exists()
    os.utime(left, (1e9, 1e9))
    write_whole(tmp_path / "file", [b"2"])
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_an_old_file_that_is_locked_stays(tmp_path: Path) -> None:
    """A writer may wait for its next chunk for more than a day."""

    def chunks() -> Iterator[bytes]:
        [left] = tmp_path.iterdir()
        os.utime(left, (1e9, 1e9))
        write_whole(tmp_path / "other", [b"1"])
        assert left.exists()
        yield b"2"

    write_whole(tmp_path / "file", chunks())
    assert sorted(os.listdir(tmp_path)) == ["file", "other"]


def test_other_files_are_never_removed(tmp_path: Path) -> None:
    names = [".labeltree-notes.tmp", ".labeltree-0123456789abcdef.tmp.txt", "labeltree-0123456789abcdef.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (1e9, 1e9))
    folder = tmp_path / f".labeltree-{files._HOST}-0123456789abcdef.tmp"
    folder.mkdir()
    write_whole(tmp_path / "file", [b"1"])
    assert sorted(os.listdir(tmp_path)) == sorted([*names, folder.name, "file"])


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_a_file_that_is_taken_for_abandoned_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer may come between making the file and locking it: then there is another try."""
    lock, taken = files.fcntl.flock, []

    def late_lock(descriptor: int, how: int) -> None:
        if not taken:
            taken.extend(os.listdir(tmp_path))
            (tmp_path / taken[0]).unlink()
        lock(descriptor, how)

    monkeypatch.setattr(files.fcntl, "flock", late_lock)
    write_whole(tmp_path / "file", [b"1"])
    assert len(taken) == 1
    assert (tmp_path / "file").read_bytes() == b"1"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_handlers_are_set_where_nobody_else_did_and_taken_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with orderly_end():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with pytest.raises(Terminated), orderly_end():
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_command_line_runs_in_other_threads_too(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(cli.main, ["--version"]).result() == 0
    assert capsys.readouterr().out.startswith("labeltree ")
