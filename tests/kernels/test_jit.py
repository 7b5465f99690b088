"""Kernels, helpers and generic helpers, and what is loaded with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
from numba.core import event

from labeltree.kernels.jit import generic, inlined, kernel

MODULE = """
import numpy as np
from labeltree.kernels.jit import kernel

@kernel
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result

@kernel
def double(values):
    return values * 2
"""
# numba.np.arraymath stands for all that Numba can compile; it imports scipy.linalg.
RUN = """
import sys
import numpy as np
import sums
assert sums.total(np.arange(4.0)) == 6.0
print(len(sums.total.stats.cache_hits), "numba.np.arraymath" in sys.modules)
"""


class Circle(NamedTuple):
    radius: float


class Square(NamedTuple):
    side: float


@inlined
def add(number, other):
    return number + other


@kernel
def add_three(number):
    return add(number, 1) + add(0, 2)


@kernel
def call_kernel(number):
    return add_three(number)


@generic
def area(shape):
    """Each has its own."""


@area.of(Circle)
def _area_circle(shape):
    return 3.0 * shape.radius**2


@area.of(Square)
def _area_square(shape):
    return shape.side**2


@kernel
def twice_the_area(shape):
    return 2.0 * area(shape)


def run(folder: Path, code: str, cache: Path, **environment: str) -> list[str]:
    environment = {"PATH": "", "LABELTREE_KERNELS": str(cache), "PYTHONPATH": str(folder)} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_second_process_loads_the_machine_code_alone(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)
    assert run(tmp_path, RUN, tmp_path / "cache") == ["0", "True"]
    assert run(tmp_path, RUN, tmp_path / "cache") == ["1", "False"]


def test_after_loading_other_kernels_can_still_be_compiled(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(MODULE)
    run(tmp_path, RUN, tmp_path / "cache")
    compile_another = RUN + "print(*sums.double(np.arange(3)))\nprint(sums.total(np.arange(4)))"
    assert run(tmp_path, compile_another, tmp_path / "cache") == ["1", "False", "0", "2", "4", "6.0"]


def test_a_helper_works_from_kernels_and_from_python() -> None:
    assert add_three(4) == 7
    assert add(1, 2) == 3


def test_a_kernel_works_from_kernels_and_from_python() -> None:
    assert call_kernel(4) == 7
    assert add_three(4) == 7


def test_a_generic_helper_is_chosen_by_its_first_argument() -> None:
    assert twice_the_area(Circle(2.0)) == 24.0
    assert twice_the_area(Square(2.0)) == 8.0


def test_a_helper_is_compiled_once_for_all_numbers() -> None:
    """Numba would compile it for each literal number that a kernel calls it with."""

    @inlined
    def scale(values, factor):
        return values[0] * factor

    def scale_often(values):
        return scale(values, 2) + scale(values, 3) + scale(values, 4)

    heard: list[str] = []

    class Listener(event.Listener):
        def on_start(self, happening: event.Event) -> None:
            heard.append(happening.data["dispatcher"].py_func.__name__)

        def on_end(self, happening: event.Event) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        assert numba.njit(scale_often)(np.ones(1)) == 9.0
    assert heard.count("scale") == 1
