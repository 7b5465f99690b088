"""Arrays by address: one small table instead of many arguments.

Handing a tuple of ten arrays to a kernel takes about 2 µs, a table of their addresses 0.1: as much as that
is worth for a batch, it is a fifth of the time of a single row. Who makes a table keeps its arrays alive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype, from_dtype
from numpy.typing import NDArray

_N_COLUMNS = 3  # of a table: address, rows, columns; or a number and nothing

Scalar = TypeVar("Scalar", bound=np.generic)
Matrix = np.ndarray[tuple[int, int], np.dtype[Scalar]]  # what a Layout takes for two axes; an NDArray has one


class Layout:
    """A NamedTuple of arrays, whole numbers and other such NamedTuples as a table.

    Who makes a table and who reads it go by its annotations, both of them.
    """

    def __init__(self, kind: Any, given: tuple[str, ...] = ()) -> None:
        """``given`` are the last fields, which are not in the table: who reads it has them."""
        names = kind._fields[: len(kind._fields) - len(given)]
        if kind._fields != names + given:
            raise TypeError(f"{', '.join(given)} are not the last fields of {kind.__name__}")
        hints = get_type_hints(kind)
        self._kind = kind
        self._parts = {name: _part_of(hints[name]) for name in names}

    def table(self, **fields: Any) -> NDArray[np.int64]:
        """(n_rows, 3): address, rows and columns (1 for vectors) of each array; or a number.

        Kernels take the types on trust, so they are checked here.
        """
        table = np.array(list(self._rows(fields)), np.int64)
        table.flags.writeable = False
        return table

    def replaced(self, table: NDArray[np.int64], name: str, array: NDArray[Any]) -> NDArray[np.int64]:
        """The table with another array of the same shape for one of its own fields."""
        place = 0
        for other, part in self._parts.items():
            if other == name:
                break
            place += part.n_rows if isinstance(part, Layout) else 1
        row = _address(f"{self._kind.__name__}.{name}", array, self._parts[name])
        if row[1:] != tuple(table[place, 1:].tolist()):
            raise TypeError(f"{self._kind.__name__}.{name} must have as many entries as before")
        changed = table.copy()
        changed[place] = row
        changed.flags.writeable = False
        return changed

    @property
    def n_rows(self) -> int:
        """Of a table."""
        return sum(part.n_rows if isinstance(part, Layout) else 1 for part in self._parts.values())

    def _rows(self, fields: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
        if fields.keys() != self._parts.keys():
            wrong = ", ".join(sorted(fields.keys() ^ self._parts.keys()))
            raise TypeError(f"the fields of {self._kind.__name__} are others: {wrong}")
        for name, part in self._parts.items():
            if isinstance(part, Layout):
                yield from part._rows(fields[name]._asdict())
            elif isinstance(part, types.Array):
                yield _address(f"{self._kind.__name__}.{name}", fields[name], part)
            else:
                yield int(fields[name]), 0, 0

    def reader(self) -> Any:
        """For kernels: ``read(table, given)`` is the NamedTuple, ``given`` a tuple of the last fields.

        Numba's ``carray`` would do, but takes six times as long to compile, for each array again.
        """

        @intrinsic
        def read(typing_context, table, given):
            def generate(context, builder, signature, arguments):
                from numba.np.arrayobj import make_array  # slow, and for compiling only

                entries = _entries(builder, make_array(table)(context, builder, arguments[0]).data)
                context.nrt.incref(builder, given, arguments[1])
                more = cgutils.unpack_tuple(builder, arguments[1])
                return self._generate(context, builder, signature.return_type, entries, more)

            return self._type(given.types)(table, given), generate

        return read

    def _type(self, given: tuple[Any, ...] = ()) -> Any:
        """Numba's type of what is read."""
        parts = [part._type() if isinstance(part, Layout) else part for part in self._parts.values()]
        return types.BaseTuple.from_types([*parts, *given], self._kind)

    def _generate(self, context, builder, kind, entries, given=()):
        """The value of that type, from the entries of a table, which move on."""
        values = []
        for part in self._parts.values():
            if isinstance(part, Layout):
                values.append(part._generate(context, builder, part._type(), entries))
                continue
            first, *lengths = [next(entries) for _ in range(_N_COLUMNS)]
            is_array = isinstance(part, types.Array)
            values.append(_array_at(context, builder, part, first, lengths) if is_array else first)
        return context.make_tuple(builder, kind, [*values, *given])


def _part_of(hint: Any) -> Any:
    """What an annotation stands for: a Layout, or Numba's type of an array or number."""
    if hint is int:
        return types.int64
    if hasattr(hint, "_fields"):
        return Layout(hint)
    *shape, dtype = get_args(hint)
    # NumPy's own alias has the scalar as its only argument where Python has aliases (3.12).
    scalar = get_args(dtype)[0] if shape else dtype
    return types.Array(from_dtype(np.dtype(scalar)), 2 if shape == [tuple[int, int]] else 1, "C")


def _address(name: str, array: NDArray[Any], kind: Any) -> tuple[int, int, int]:
    dtype = as_dtype(kind.dtype)
    if not array.flags.c_contiguous or array.dtype != dtype or array.ndim != kind.ndim:
        raise TypeError(
            f"{name} is {array.dtype} of shape {array.shape}, "
            f"but must be contiguous {dtype} of {kind.ndim} axes"
        )
    return array.ctypes.data, array.shape[0], array.shape[1] if array.ndim == 2 else 1


def _entries(builder, data):
    """What a table holds, one number after another."""
    for index in itertools.count():
        yield builder.load(builder.gep(data, [cgutils.intp_t(index)]))


def _array_at(context, builder, kind, address, lengths):
    """An array of this type; its memory is somebody else's."""
    from numba.np.arrayobj import make_array, populate_array

    shape = lengths[: kind.ndim]
    strides = [context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(kind)(context, builder)
    data = builder.inttoptr(address, array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None)
    return array._getvalue()


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
