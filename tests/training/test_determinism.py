"""The same seed gives the same bytes wherever arrays lie in memory: ``benchmarks.determinism`` in short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import determinism
from benchmarks.grid import GRID
from labeltree.kernels.arithmetic import sum_rows
from labeltree.kernels.dense.parts import move_row
from labeltree.kernels.sparse.methods import _softmax

POINTS = ["text-flat-sparse-hsm-batch-1", "text-kmeans-sparse-plt-batch-1"]
FAR = 1 << 12  # bytes: no loop handles as much at once


@pytest.mark.parametrize("name", POINTS)
def test_one_file_on_shuffled_heaps(name: str, tmp_path: Path) -> None:
    (point,) = (point for point in GRID if point.name == name)
    data, found = determinism.Data(tmp_path), set[tuple[str, ...]]()
    for seed in range(6):
        heap = determinism.Heap(seed)
        found.add(tuple(data.digests(point, 1 + seed % 3, heap, tmp_path)))
        heap.close()
    assert len(found) == 1


def neighbours(
    read: NDArray[np.float32], n_written: int, distance: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A copy of an array, and one to write to that begins so many bytes behind its end."""
    room = np.zeros(read.nbytes + distance + 4 * n_written, np.uint8)
    copy = room[: read.nbytes].view(np.float32).reshape(read.shape)
    copy[:] = read
    return copy, room[read.nbytes + distance :].view(np.float32)


def sum_few(n: int) -> Callable[..., None]:
    def run(rows: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        coefficients = np.linspace(0.1, 2.3, n, dtype=np.float32)
        sources = np.arange(len(rows) - n, len(rows), dtype=np.int32)  # the last ones: they are the nearest
        sum_rows(coefficients, 0, sources, 0, n, rows, out.reshape(1, -1), 0)

    return run


def move(rows: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    out[:] = np.linspace(-1.1, 1.3, len(out), dtype=np.float32)
    move_row(out.reshape(1, -1), 0, np.float32(0.9), np.float32(0.37), rows, len(rows) - 1)


def softmax(rows: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    _softmax(rows[-1], np.ones(len(out), np.float32), out)


LOOPS: dict[str, Callable[..., None]] = {f"sum of {n}": sum_few(n) for n in (1, 2, 3, 4, 7)}
LOOPS |= {"move": move, "softmax": softmax}


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_do_not_show_how_near_arrays_are(loop: str) -> None:
    random = np.random.default_rng(1)
    for n_columns in (4, 16, 21, 48, 63, 64, 100):
        rows = random.normal(size=(9, n_columns)).astype(np.float32)
        found = set()
        for distance in (0, 4, 32, 60, 128, 252, FAR):
            read, out = neighbours(rows, n_columns, distance)
            LOOPS[loop](read, out)
            found.add(out.tobytes())
        assert len(found) == 1, f"{n_columns} columns"
