"""Large arrays in memory or in mapped files: the same to who uses them, and gone at their end."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.work import map_all

from labeltree.errors import DiskFullError, TrainingError
from labeltree.storage import space
from labeltree.storage.space import IN_MEMORY, MappedSpace, Space, anonymous_bytes

MEGABYTE = 1 << 20


@pytest.fixture(params=["memory", "files", "files beyond a limit"])
def room(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Space]:
    if request.param == "memory":
        yield IN_MEMORY
        return
    sizes = map_all(monkeypatch)
    yield MappedSpace(tmp_path, 1 if "limit" in request.param else 0)
    assert sizes
    assert not list(tmp_path.iterdir()), "files have no names"


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("shape", [1, 7, 5000, (3, 5), (700, 2)])
def test_arrays_hold_what_is_written(room: Space, shape: Any, dtype: Any) -> None:
    for make in (room.empty, room.zeros, room.lasting):
        array = make(shape, dtype)
        assert array.dtype == dtype
        assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
        assert array.flags.c_contiguous
        if make == room.zeros:
            assert not array.any()
        array[:] = 3
        others = [room.lasting(9, np.int64), room.empty(9, np.int64)]
        for other in others:
            other[:] = 5
        assert np.all(array == 3), "arrays share nothing"


@pytest.mark.parametrize("shape", [0, (0, 4)])
def test_nothing_is_an_array_too(room: Space, shape: Any) -> None:
    room.lasting(12, np.float64)
    assert room.lasting(shape, np.float32).size == 0
    assert room.kept(np.empty(shape)).shape == np.empty(shape).shape


def test_parts_are_joined_in_their_order_and_let_go(room: Space) -> None:
    parts = [np.arange(3), np.arange(0), np.arange(7, 9)]
    joined = room.joined(parts, np.int32)
    assert joined.dtype == np.int32
    assert joined.tolist() == [0, 1, 2, 7, 8]
    assert not parts


def test_what_is_kept_is_a_copy_where_there_are_files(room: Space) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    kept = room.kept(array)
    assert kept.tolist() == array.tolist()
    assert (kept is array) == (not room.is_on_disk)


def test_small_lasting_arrays_share_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = map_all(monkeypatch)
    room = MappedSpace(tmp_path)
    arrays = [room.lasting(100, np.float64) for _ in range(10)]
    for number, array in enumerate(arrays):
        assert array.ctypes.data % 64 == 0
        array[:] = number
    assert [array[0] for array in arrays] == list(range(10))
    assert sizes == [1 << 12] * 3, "four in each"
    room.lasting(3000, np.uint8)
    assert sizes[3:] == [3000], "what is large has a file of its own"


def test_arrays_beyond_the_memory_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for the work of the moment count as long as they live."""
    monkeypatch.setattr(space, "anonymous_bytes", lambda: 5 * MEGABYTE)
    sizes = list[int]()
    real = space.map_new_file
    monkeypatch.setattr(space, "map_new_file", lambda folder, n: sizes.append(n) or real(folder, n))
    room = MappedSpace(tmp_path, 10 * MEGABYTE)  # of which 4 are left: a tenth is for what is not counted
    first = room.empty(3 * MEGABYTE, np.uint8)
    assert not sizes
    second = room.empty(2 * MEGABYTE, np.uint8)
    assert sizes == [2 * MEGABYTE]
    view = first[5:]
    del first
    gc.collect()
    room.zeros(2 * MEGABYTE, np.uint8)
    assert len(sizes) == 2, "a view keeps the memory"
    del view
    gc.collect()
    third = room.empty(4 * MEGABYTE, np.uint8)
    assert len(sizes) == 2
    room.empty(100, np.uint8)
    assert len(sizes) == 2, "small ones never are"
    assert len(second) + len(third) == 6 * MEGABYTE


def test_an_array_may_be_let_go_while_another_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector may run anywhere: who let the first one go then would wait for the lock for ever."""
    room = MappedSpace(tmp_path, 1 << 40)
    waiting = [room.empty(MEGABYTE, np.uint8)]
    room._in_use = 0  # so that memory is looked at
    monkeypatch.setattr(space, "anonymous_bytes", lambda: waiting.clear() or 0)
    assert room.empty(MEGABYTE, np.uint8).nbytes == MEGABYTE
    assert not waiting


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def full(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(
        DiskFullError, match=r"no space left \(105 MB more .* run the same command again"
    ) as it:
        MappedSpace(tmp_path).lasting(105_000_000, np.uint8)
    assert str(tmp_path) in str(it.value)


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(TrainingError, match=r"/dev/null/x: cannot be written .* choose a folder"):
        MappedSpace("/dev/null/x").lasting(10, np.uint8)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")
def test_memory_is_counted_without_files(tmp_path: Path) -> None:
    before = anonymous_bytes()
    mapped = MappedSpace(tmp_path).lasting(50 * MEGABYTE, np.uint8)
    mapped[:] = 1
    assert anonymous_bytes() - before < 10 * MEGABYTE
    own = np.ones(50 * MEGABYTE, np.uint8)
    assert anonymous_bytes() - before > 40 * MEGABYTE
    del own
