"""Atomic operations on one element of a NumPy array, for kernels that share memory.

Numba has none of its own, so each is an intrinsic that emits the LLVM instruction.  The index is
taken as it is: no wrap-around of negative values, and a bounds check only where Numba makes one
(NUMBA_BOUNDSCHECK=1).

Which one to use:

    atomic_add, atomic_min, atomic_max, atomic_or   return the old value; relaxed: they order no
                                                    other accesses
    atomic_cas(a, i, old, new)                      returns the old value; acquire and release
    atomic_exchange(a, i, new)                      returns the old value; acquire and release
    load_relaxed, store_relaxed                     a racing access that orders no others
    load_acquire, store_release                     a racing access that publishes other writes
    relax_core()                                    inside a loop that waits: leaves the core to
                                                    its other hardware thread for a moment

Everything written before a `store_release` is visible to a thread that reads that value by
`load_acquire`.  On x86 plain accesses often behave so by chance; on Arm they do not.
"""

from __future__ import annotations

import platform
from typing import Any

from matchwood.engines.cpu.compiled import Later, intrinsic

ir, types, cgutils, config = map(
    Later, ("llvmlite.ir", "numba.core.types", "numba.core.cgutils", "numba.core.config")
)


def _element(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(
        context, builder, array_type, view, [index], wraparound=False,
        boundscheck=config.BOUNDSCHECK == 1,
    )  # fmt: skip


def _as_integer(context: Any, builder: Any, value_type: Any, pointer: Any) -> tuple[Any, Any]:
    """The integer type as wide as `value_type`, and `pointer` to it: LLVM needs integers."""
    width = context.get_abi_sizeof(context.get_data_type(value_type)) * 8
    integer = ir.IntType(width)
    return integer, builder.bitcast(pointer, integer.as_pointer())


def _size(context: Any, value_type: Any) -> int:
    return int(context.get_abi_sizeof(context.get_data_type(value_type)))


def _read_modify_write(integer: str, unsigned: str, floating: str | None) -> Any:
    """An intrinsic f(array, index, value) -> old value, for one `atomicrmw` operation."""

    @intrinsic
    def operation(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        kind = array.dtype
        if isinstance(kind, types.Float):
            name = floating
        elif isinstance(kind, types.Integer):
            name = integer if kind.signed else unsigned
        else:
            name = None
        if name is None:
            return None
        signature = kind(array, types.intp, kind)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element(context, builder, signature.args[0], args[0], args[1])
            return builder.atomic_rmw(name, pointer, args[2], "monotonic")

        return signature, codegen

    return operation


atomic_add = _read_modify_write("add", "add", "fadd")
atomic_min = _read_modify_write("min", "umin", "fmin")
atomic_max = _read_modify_write("max", "umax", "fmax")
atomic_or = _read_modify_write("or", "or", None)


@intrinsic
def atomic_cas(typingctx: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
    kind = array.dtype
    signature = kind(array, types.intp, kind, kind)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature.args[0], args[0], args[1])
        integer, pointer = _as_integer(context, builder, kind, pointer)
        old = builder.bitcast(args[2], integer)
        new = builder.bitcast(args[3], integer)
        pair = builder.cmpxchg(pointer, old, new, "acq_rel", "acquire")
        return builder.bitcast(builder.extract_value(pair, 0), context.get_data_type(kind))

    return signature, codegen


@intrinsic
def atomic_exchange(typingctx: Any, array: Any, index: Any, new: Any) -> Any:
    kind = array.dtype
    signature = kind(array, types.intp, kind)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature.args[0], args[0], args[1])
        integer, pointer = _as_integer(context, builder, kind, pointer)
        before = builder.atomic_rmw("xchg", pointer, builder.bitcast(args[2], integer), "acq_rel")
        return builder.bitcast(before, context.get_data_type(kind))

    return signature, codegen


def _load(ordering: str) -> Any:
    @intrinsic
    def load(typingctx: Any, array: Any, index: Any) -> Any:
        kind = array.dtype
        signature = kind(array, types.intp)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element(context, builder, signature.args[0], args[0], args[1])
            integer, pointer = _as_integer(context, builder, kind, pointer)
            value = builder.load_atomic(pointer, ordering, _size(context, kind), typ=integer)
            return builder.bitcast(value, context.get_data_type(kind))

        return signature, codegen

    return load


def _store(ordering: str) -> Any:
    @intrinsic
    def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        kind = array.dtype
        signature = types.void(array, types.intp, kind)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element(context, builder, signature.args[0], args[0], args[1])
            integer, pointer = _as_integer(context, builder, kind, pointer)
            value = builder.bitcast(args[2], integer)
            builder.store_atomic(value, pointer, ordering, _size(context, kind))
            return context.get_dummy_value()

        return signature, codegen

    return store


load_relaxed = _load("monotonic")
load_acquire = _load("acquire")
store_relaxed = _store("monotonic")
store_release = _store("release")


@intrinsic
def relax_core(typingctx: Any) -> Any:
    """The processor's hint for a waiting loop; does nothing where there is no such hint."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        machine = platform.machine().lower()
        if machine in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
            builder.call(hint, [])
        elif machine in ("aarch64", "arm64"):
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [word])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.aarch64.hint")
            builder.call(hint, [word(1)])  # 1 is "yield"
        return context.get_dummy_value()

    return types.void(), codegen
