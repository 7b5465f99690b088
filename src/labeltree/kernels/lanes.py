"""Vectors of 16 numbers, as the processor has them.

LLVM makes them of plain loops only where it sees that no array reaches into another one. Inner loops over the
columns of weights are too short to ask for that each time, and those of a fixed length it unrolls and then
leaves as they are: number by number. So these loops say what they mean. Processors with shorter vectors take
several for one of these.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import intrinsic, register_model

from labeltree.kernels.atomic import pointer_to

LANES = 16

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_FUSED = ("contract",)  # a product and a sum may become one instruction


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, data_model_manager, kind):
        super().__init__(data_model_manager, kind, _VECTOR)


def _vector_at(context, builder, array_type, array, index):
    pointer = pointer_to(context, builder, array_type, array, index)
    return builder.bitcast(pointer, _VECTOR.as_pointer())


def _repeat(builder, number):
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.IntType(32)(0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, first, places)


def _check(array):
    """Of another kind of array, other bytes than those that are meant would be read."""
    if array.dtype != types.float32 or array.layout != "C":
        raise TypingError(f"lanes are of float32 arrays in C order, not of {array}")


@intrinsic
def no_lanes(typing_context):
    """All 0."""

    def generate(context, builder, signature, arguments):
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return _lanes(), generate


@intrinsic
def load_lanes(typing_context, array, index):
    """16 float32 from ``array[index]`` (in C order) on; all must exist."""

    def generate(context, builder, signature, arguments):
        return builder.load(_vector_at(context, builder, signature.args[0], *arguments), align=4)

    _check(array)
    return _lanes(array, types.int64), generate


@intrinsic
def store_lanes(typing_context, array, index, lanes):
    """``array[index : index + 16] = lanes``, in C order."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[2], _vector_at(context, builder, signature.args[0], *arguments[:2]), align=4)
        return context.get_dummy_value()

    _check(array)
    return types.void(array, types.int64, _lanes), generate


@intrinsic
def add_scaled(typing_context, lanes, factor, others):
    """``lanes + factor * others``, of float32."""

    def generate(context, builder, signature, arguments):
        lanes, factor, others = arguments
        product = builder.fmul(_repeat(builder, factor), others, flags=_FUSED)
        return builder.fadd(lanes, product, flags=_FUSED)

    return _lanes(_lanes, types.float32, _lanes), generate


@intrinsic
def scaled(typing_context, factor, lanes):
    """``factor * lanes``."""

    def generate(context, builder, signature, arguments):
        return builder.fmul(_repeat(builder, arguments[0]), arguments[1], flags=_FUSED)

    return _lanes(types.float32, _lanes), generate


@intrinsic
def add_sizes(typing_context, lanes, others):
    """``lanes + abs(others)``."""

    def generate(context, builder, signature, arguments):
        bits = ir.VectorType(ir.IntType(32), LANES)
        without_sign = ir.Constant(bits, [0x7FFFFFFF] * LANES)
        sizes = builder.and_(builder.bitcast(arguments[1], bits), without_sign)
        return builder.fadd(arguments[0], builder.bitcast(sizes, _VECTOR))

    return _lanes(_lanes, _lanes), generate


@intrinsic
def sum_lanes(typing_context, lanes):
    """The sum of all 16: halves are added until one number is left."""

    def generate(context, builder, signature, arguments):
        (rest,), place = arguments, ir.IntType(32)
        for n in (LANES >> step for step in range(1, LANES.bit_length())):
            low = ir.Constant(ir.VectorType(place, n), list(range(n)))
            high = ir.Constant(ir.VectorType(place, n), list(range(n, 2 * n)))
            rest = builder.fadd(
                builder.shuffle_vector(rest, rest, low), builder.shuffle_vector(rest, rest, high)
            )
        return builder.extract_element(rest, place(0))

    return types.float32(_lanes), generate
