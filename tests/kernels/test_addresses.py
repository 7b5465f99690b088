"""Tables of addresses: what the kernels take on trust is checked when a table is made."""

from __future__ import annotations

import numpy as np
import pytest

from labeltree.kernels.addresses import address_table, matrix_at, vector_at
from labeltree.kernels.jit import kernel


@kernel
def total(table):
    vector, matrix = vector_at(table, 0, np.float32), matrix_at(table, 1, np.int8)
    result = 0.0
    for i in range(len(vector)):
        result += vector[i]
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            result += matrix[i, j]
    return result


def test_kernels_find_the_arrays() -> None:
    vector, matrix = np.array([0.5, 2.0], np.float32), np.arange(-3, 9, dtype=np.int8).reshape(3, 4)
    table = address_table([vector, matrix], [np.float32, np.int8])
    assert not table.flags.writeable
    assert total(table) == 2.5 + int(matrix.sum(dtype=np.int64))


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros(6, np.float32)[::2], np.zeros((2, 2, 2), np.float32), np.float32(1.0)]
)
def test_other_arrays_are_refused(array: np.ndarray) -> None:
    with pytest.raises(TypeError, match="array 0 is"):
        address_table([np.asarray(array)], [np.float32])
