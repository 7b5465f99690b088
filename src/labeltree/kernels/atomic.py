"""What LLVM can and Numba has no words for: atomic integers, barriers, prefetching, bits and bytes.

Atomic integers are for kernels whose threads work on one batch together: a round trip through a thread pool
costs some 30 µs, a barrier between running kernels well under one, so threads pay even for small batches.
"""

from __future__ import annotations

import sys

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


def pointer_to(context, builder, array_type, array, index):
    value = context.make_array(array_type)(context, builder, array)
    return builder.gep(value.data, [index])


@intrinsic
def atomic_add(typing_context, array, index, amount):
    """``array[index] += amount``, seen by all threads at once; returns the value before."""

    def generate(context, builder, signature, arguments):
        pointer = pointer_to(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def atomic_load(typing_context, array, index):
    """``array[index]`` as the other threads last wrote it."""

    def generate(context, builder, signature, arguments):
        pointer = pointer_to(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(array, types.int64), generate


@intrinsic
def yield_thread(typing_context):
    """Let another thread have the CPU: waiting for a thread that is not running would be endless spinning."""

    def generate(context, builder, signature, arguments):
        function_type = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(builder.module, function_type, _YIELD)
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def bits_as_float(typing_context, bits):
    """The float32 whose bits are those of the int32."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def prefetch(typing_context, array, index):
    """Have the cache line of ``array[index]`` (in C order) brought near; it need not exist."""

    def generate(context, builder, signature, arguments):
        pointer = pointer_to(context, builder, signature.args[0], arguments[0], arguments[1])
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], function_type)
        builder.call(function, [address, flag(0), flag(3), flag(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def read_word(typing_context, array, index):
    """The 8 bytes from ``array[index]`` on as one number; all of them must exist, wherever they begin."""

    def generate(context, builder, signature, arguments):
        pointer = pointer_to(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(array, types.int64), generate


@intrinsic
def count_ones(typing_context, word):
    """How many bits are set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest_one(typing_context, word):
    """The place of the lowest bit that is set; 64 where none is."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate
