"""A work dir holds whole results of one training, for one process at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.work import cut, flip_bit

from labeltree.errors import DiskFullError, TrainingError, WorkDirError
from labeltree.storage.work_dir import WorkDir

KEY = {"labeltree": "1", "config": {"arity": 2, "C": 0.5}, "data": {"file 1": "abc"}}
TENSORS = {"a": np.arange(1000), "b": np.zeros((0, 2), np.float32)}


def exchange(path: Path) -> None:
    path.write_bytes(b"something else" * 100)


@pytest.fixture
def work(tmp_path: Path) -> WorkDir:
    work = WorkDir(tmp_path / "some" / "work")
    work.begin(KEY)
    return work


def test_results_are_read_as_they_were_written(work: WorkDir) -> None:
    assert not work.has("one")
    assert work.read_sound("one") is None
    work.write("one", TENSORS, {"n": 3})
    tensors, what = work.read("one")
    assert what["n"] == 3
    assert tensors.keys() == TENSORS.keys()
    assert all(np.array_equal(tensors[name], TENSORS[name]) for name in TENSORS)
    tensors["a"][:] = 7  # of this process only
    assert np.array_equal(work.read("one")[0]["a"], TENSORS["a"])


@pytest.mark.parametrize("damage", [cut, flip_bit, exchange])
def test_damage_is_found(work: WorkDir, damage: Callable[[Path], None]) -> None:
    work.write("one", TENSORS, {})
    damage(work.path / "one.part")
    assert work.has("one")
    assert work.read_sound("one") is None
    with pytest.raises(WorkDirError, match=r"one.part: cannot be used .* run the command that made it again"):
        work.read("one")
    work.write("one", TENSORS, {})
    assert work.read_sound("one") is not None


def test_the_same_training_goes_on(work: WorkDir) -> None:
    work.write("one", TENSORS, {})
    WorkDir(work.path).begin(KEY)
    assert work.has("one")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"labeltree": "2"}, "labeltree is '1' there and '2' now"),
        ({"config": {"arity": 3, "C": 0.5}}, "(arity is 2 there and 3 now)"),
        ({"data": {"file 1": "abd"}}, "(file 1 is 'abc' there and 'abd' now)"),
        ({"data": {"file 1": "abc", "file 2": "x"}}, "file 2 is None there and 'x' now"),
        ({"data": "in memory"}, "data is {'file 1': 'abc'} there and 'in memory' now"),
        ({"data": {f"file {n}": "x" for n in range(1, 100)}}, "file 13 is None there and 'x' now; ...)"),
    ],
)
def test_another_training_is_refused(work: WorkDir, change: dict[str, Any], told: str) -> None:
    work.write("one", TENSORS, {})
    with pytest.raises(WorkDirError, match="holds the work of another training") as error:
        work.begin(KEY | change)
    assert told in str(error.value)
    assert len(str(error.value)) < 1000
    work.begin(KEY)


def test_a_training_without_results_gives_way(work: WorkDir) -> None:
    """Its data was bad, perhaps, and is mended now."""
    work.begin(KEY | {"data": {"file 1": "mended"}})
    work.write("one", TENSORS, {})
    with pytest.raises(WorkDirError, match="another training"):
        work.begin(KEY)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[]", "another version"),
        (b"{}", "another version"),
        (b'{"format": 99}', "another version"),
    ],
)
def test_a_manifest_of_something_else_is_refused(work: WorkDir, content: bytes, told: str) -> None:
    (work.path / "work.json").write_bytes(content)
    with pytest.raises(WorkDirError, match=told):
        work.begin(KEY)


def test_results_of_nobody_knows_what_are_refused(tmp_path: Path) -> None:
    (tmp_path / "film.part").write_text("half of a download")
    with pytest.raises(WorkDirError, match=r"has results, but no work.json"):
        WorkDir(tmp_path).begin(KEY)
    assert (tmp_path / "film.part").exists()


def test_nobody_else_trains_there(work: WorkDir) -> None:
    with work.alone():
        code = (
            f"from labeltree.storage.work_dir import WorkDir\nwith WorkDir({str(work.path)!r}).alone(): pass"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert found.returncode == 1
        assert "another process trains here" in found.stderr
        with pytest.raises(WorkDirError, match="another process trains here"), WorkDir(work.path).alone():
            pass
    with work.alone():
        pass


def test_a_lock_that_was_removed_is_taken_again(work: WorkDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who held it may remove the folder's files between our opening it and our locking it."""
    from labeltree.storage import work_dir

    real, n_calls = work_dir.lock_file, 0

    def late(descriptor: int) -> bool | None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            (work.path / "lock").unlink()
        return real(descriptor)

    monkeypatch.setattr(work_dir, "lock_file", late)
    with work.alone():
        monkeypatch.undo()
        assert n_calls == 2
        with pytest.raises(WorkDirError, match="another process"), WorkDir(work.path).alone():
            pass


def test_what_was_kept_is_removed_and_nothing_else(work: WorkDir) -> None:
    work.write("one", TENSORS, {})
    (work.path / "mine.txt").write_text("mine")
    work.remove()
    assert [path.name for path in work.path.iterdir()] == ["mine.txt"]
    (work.path / "mine.txt").unlink()
    work.begin(KEY)
    work.remove()
    assert not work.path.exists()
    work.remove()
    assert not work.path.exists()


def test_what_another_process_uses_is_not_removed(work: WorkDir) -> None:
    work.write("one", TENSORS, {})
    with work.alone():
        WorkDir(work.path).remove()
    assert work.has("one")
    assert work.manifest


def test_a_folder_that_cannot_be_made_is_named() -> None:
    work = WorkDir("/dev/null/work")
    with pytest.raises(TrainingError, match="/dev/null/work: cannot be written"), work.alone():
        pass
    with pytest.raises(TrainingError, match=r"/dev/null/work/work.json: cannot be read .* choose another"):
        work.begin(KEY)


def test_a_full_disk_is_named_and_leaves_nothing_half_written(
    work: WorkDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    work.write("one", TENSORS, {"n": 1})
    monkeypatch.setattr(os, "fsync", full)
    for name in ("one", "two"):
        with pytest.raises(DiskFullError, match="no space left; what is finished stays"):
            work.write(name, TENSORS, {"n": 2})
    monkeypatch.undo()
    assert sorted(path.name for path in work.path.iterdir()) == ["one.part", "work.json"]
    assert work.read("one")[1]["n"] == 1


def test_a_file_that_may_not_grow_is_a_full_disk(work: WorkDir) -> None:
    """As it ends for who has a limit on files, or a quota."""
    resource = pytest.importorskip("resource", reason="limits are those of POSIX")
    code = (
        "import resource, numpy as np\n"
        "from labeltree.errors import DiskFullError\n"
        "from labeltree.storage.work_dir import WorkDir\n"
        "from labeltree.storage.space import MappedSpace\n"
        f"work = WorkDir({str(work.path)!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "for action in (lambda: work.write('two', {'a': np.zeros(100_000)}, {}),\n"
        "               lambda: MappedSpace(work.path).lasting(100_000, np.int64)):\n"
        "    try:\n"
        "        action()\n"
        "    except DiskFullError as error:\n"
        "        print(error)\n"
    )
    assert resource
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.stdout.count("no space left") == 2, found.stderr
    assert not work.has("two")
