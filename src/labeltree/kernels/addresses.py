"""Arrays by address: one small table instead of many arguments.

Handing a tuple of ten arrays to a kernel takes about 2 µs, a table of their addresses 0.1: as much as that
is worth for a batch, it is a fifth of the time of a single row. Who makes a table keeps its arrays alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numpy.typing import NDArray

N_COLUMNS = 3  # of a table: address, rows, columns


def address_table(arrays: Iterable[NDArray[Any]], dtypes: Iterable[Any]) -> NDArray[np.int64]:
    """(n_arrays, 3): address, rows and columns (1 for vectors) of contiguous arrays of these types.

    The kernels take the types on trust, so they are checked here.
    """
    entries = []
    for number, (array, dtype) in enumerate(zip(arrays, dtypes, strict=True)):
        if not array.flags.c_contiguous or array.dtype != dtype or array.ndim not in (1, 2):
            raise TypeError(
                f"array {number} is {array.dtype} of shape {array.shape}, "
                f"but must be contiguous {np.dtype(dtype)}"
            )
        entries.append((array.ctypes.data, array.shape[0], array.shape[1] if array.ndim == 2 else 1))
    table = np.array(entries, np.int64)
    table.flags.writeable = False
    return table


def _array_at(table, dtype, n_axes):
    """The type of an array, and what makes one of a row of the table.

    Numba's ``carray`` would do, but takes six times as long to compile, for each type again.
    """
    kind = types.Array(dtype.dtype, n_axes, "C")

    def generate(context, builder, signature, arguments):
        from numba.np.arrayobj import make_array, populate_array  # slow, and for compiling only

        entries = make_array(table)(context, builder, arguments[0])
        first = builder.mul(arguments[1], context.get_constant(types.intp, N_COLUMNS))
        address, *lengths = (
            builder.load(builder.gep(entries.data, [builder.add(first, first.type(i))]))
            for i in range(1 + n_axes)
        )
        n_bytes = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        strides = [context.get_constant(types.intp, n_bytes)]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        array = make_array(kind)(context, builder)
        data = builder.inttoptr(address, array.data.type)
        populate_array(array, data=data, shape=lengths, strides=strides, itemsize=strides[-1], meminfo=None)
        return array._getvalue()

    return kind(table, types.intp, dtype), generate


@intrinsic
def vector_at(typing_context, table, i, dtype):
    """Array ``i`` of an :func:`address_table`."""
    return _array_at(table, dtype, 1)


@intrinsic
def matrix_at(typing_context, table, i, dtype):
    """Array ``i`` of an :func:`address_table`, of two axes."""
    return _array_at(table, dtype, 2)


@intrinsic
def frozen(typing_context, array):
    """The same array, or bytes, as an array that is only read, as batches are: one kind to compile for."""
    kind = types.Array(array.dtype, array.ndim, array.layout, readonly=True)

    def generate(context, builder, signature, arguments):
        return impl_ret_borrowed(context, builder, kind, arguments[0])

    return kind(array), generate


@intrinsic
def borrow(typing_context, group):
    """A tuple whose arrays are not counted when they are handed on: their owner outlives the call.

    Counting is atomic, and in loops over little work it can take most of the time.
    """

    def generate(context, builder, signature, arguments):
        value = arguments[0]
        for i, kind in enumerate(signature.args[0].types):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, builder.extract_value(value, i))
                array.meminfo = cgutils.get_null_value(array.meminfo.type)
                value = builder.insert_value(value, array._getvalue(), i)
        return value

    return group(group), generate
