"""The roofs of this machine, for `python -m benchmarks.roofline`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks import roofline_kernels as kernels
from labeltree.nodes.dense.buffers import aligned_zeros


class Machine(NamedTuple):
    """What the roofs are measured with."""

    last_cache: int  # bytes
    l2: int  # bytes
    n_operations: int  # of each measurement
    n_times: int  # the best of so many


def find_machine(quick: bool) -> Machine:
    """This machine; where the system does not tell its caches, usual ones."""
    if quick:
        return Machine(1 << 22, 1 << 18, 10**7, 1)
    return Machine(
        _cache_size("SC_LEVEL3_CACHE_SIZE") or 1 << 25,
        _cache_size("SC_LEVEL2_CACHE_SIZE") or 1 << 20,
        10**9,
        5,
    )


def _cache_size(name: str) -> int:
    """0 where the system does not tell."""
    return max(0, os.sysconf(name)) if name in getattr(os, "sysconf_names", {}) else 0


def fastest(function: Callable[[], Any], n_times: int) -> float:
    return fastest_of([function], n_times)[0]


def fastest_of(functions: Sequence[Callable[[], Any]], n_times: int) -> list[float]:
    """CPU seconds of the best call of each, after one to warm up: a busy machine disturbs it less.

    They take turns, so that a slow second does not fall on one of them alone.
    """
    seconds = np.full((n_times, len(functions)), np.inf)
    for turn in range(-1, n_times):
        for i, function in enumerate(functions):
            began = time.thread_time()
            function()
            if turn >= 0:
                seconds[turn, i] = time.thread_time() - began
    return [max(float(best), 1e-9) for best in seconds.min(axis=0)]


def measure_roofs(machine: Machine) -> dict[str, float]:
    """Of one thread: operations or bytes per second."""
    n, n_times, random = machine.n_operations, machine.n_times, np.random.default_rng(1)
    roofs: dict[str, float] = {}
    for lanes, multiply_add in ((8, kernels.multiply_add_256), (16, kernels.multiply_add_512)):
        rounds = n // (2 * lanes * kernels.CHAINS)
        done = 2 * lanes * kernels.CHAINS * rounds
        roofs[f"fma_{32 * lanes}"] = done / fastest(partial(multiply_add, rounds), n_times)
    far, near = aligned_zeros((1, machine.last_cache)), aligned_zeros((1, machine.l2 // 8))
    far[:], near[:] = 1.0, 1.0
    roofs["memory"] = far.nbytes / fastest(lambda: kernels.read_all(far[0], 1), n_times)
    rounds = max(1, n // near.nbytes)
    roofs["l2"] = rounds * near.nbytes / fastest(lambda: kernels.read_all(near[0], rounds), n_times)
    for row_bytes in (256, 1024):
        matrix = far.reshape(-1, row_bytes // 4)
        rows = random.integers(0, len(matrix), max(1, n // 4 // row_bytes)).astype(np.int32)
        seconds = fastest(partial(kernels.read_rows, matrix, rows), n_times)
        roofs[f"rows_{row_bytes}"] = rows.size * row_bytes / seconds
    hidden = np.ones((1, 256), np.float32)
    for name, dtype in (("floats", np.float32), ("bytes", np.int8)):
        weights = np.ones((16384 // 256 // np.dtype(dtype).itemsize, 256), dtype)  # a third of L1, or half
        rounds, out = max(1, n // (2 * weights.size)), np.empty(len(weights), np.float32)
        seconds = fastest(partial(kernels.score_again, weights, hidden, rounds, out), n_times)
        roofs[name] = 2 * weights.size * rounds / seconds
    return roofs
