"""Tables of addresses: what the kernels take on trust is checked when a table is made."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from labeltree.kernels.addresses import Layout, Matrix
from labeltree.kernels.jit import kernel


class Inner(NamedTuple):
    counts: NDArray[np.int64]
    factor: int


class Group(NamedTuple):
    vector: NDArray[np.float32]
    other: NDArray[np.float32]
    matrix: Matrix[np.int8]
    inner: Inner
    number: int
    rows: NDArray[np.int32]  # given


LAYOUT = Layout(Group, given=("rows",))
read = LAYOUT.reader()


@kernel
def total(table, rows):
    """Each field in another power of ten; those of the matrix by their places."""
    group = read(table, (rows,))
    result = 0.0
    for i in range(len(group.vector)):
        result += group.vector[i] - 2.0 * group.other[i]
    for i in range(group.matrix.shape[0]):
        for j in range(group.matrix.shape[1]):
            result += (10 * i + j) * group.matrix[i, j]
    return result + group.inner.counts[1] * group.inner.factor + 1000.0 * group.number + len(group.rows)


def fields(**other: Any) -> dict[str, Any]:
    return {
        "vector": np.array([0.5, 2.0], np.float32),
        "other": np.array([0.25, 0.5], np.float32),
        "matrix": np.arange(-3, 9, dtype=np.int8).reshape(3, 4),
        "inner": Inner(np.array([7, 11]), 100),
        "number": 3,
    } | other


def test_kernels_find_the_fields() -> None:
    given = fields()
    table = LAYOUT.table(**given)
    assert not table.flags.writeable
    matrix = sum((10 * i + j) * int(given["matrix"][i, j]) for i in range(3) for j in range(4))
    assert total(table, np.zeros(5, np.int32)) == 2.5 - 1.5 + matrix + 1100 + 3000 + 5


def test_fields_are_found_by_their_names_in_any_order() -> None:
    given = fields()
    backwards = dict(reversed(given.items()))
    assert np.array_equal(LAYOUT.table(**backwards), LAYOUT.table(**given))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("vector", np.zeros(3)),
        ("vector", np.zeros(6, np.float32)[::2]),
        ("vector", np.zeros((2, 2), np.float32)),
        ("other", np.float32(1.0)),
        ("matrix", np.zeros(4, np.int8)),
        ("matrix", np.zeros((2, 2, 2), np.int8)),
        ("matrix", np.zeros((2, 3), np.int8).T),
    ],
)
def test_other_arrays_are_refused(name: str, array: Any) -> None:
    with pytest.raises(TypeError, match=rf"Group\.{name} is .* but must be contiguous"):
        LAYOUT.table(**fields(**{name: np.asarray(array)}))


def test_arrays_within_are_checked_too() -> None:
    with pytest.raises(TypeError, match=r"Inner\.counts is int32 of shape"):
        LAYOUT.table(**fields(inner=Inner(np.zeros(2, np.int32), 1)))


def test_given_fields_are_the_last_ones() -> None:
    with pytest.raises(TypeError, match="number are not the last fields of Group"):
        Layout(Group, given=("number",))


@pytest.mark.parametrize("wrong", [{"matrix": None}, {"rows": np.zeros(1, np.int32)}, {"unknown": 1}])
def test_other_fields_are_refused(wrong: dict[str, Any]) -> None:
    given = {name: value for name, value in fields(**wrong).items() if value is not None}
    with pytest.raises(TypeError, match=f"the fields of Group are others: {next(iter(wrong))}"):
        LAYOUT.table(**given)
