"""Hints that kernels give the compiler: facts, types, and which memory is needed next.

Numba counts a negative index from the end, and so compares every signed index with 0.  In a loop
over neighbours that costs up to half the time (SpMV on R-MAT: 10.5 against 6.2 ms).
Three remedies, in the order of preference: loop over ``range(part.size)`` of a slice
``part = a[lo:hi]``; index with ``np.uint64``; or say that a number is not negative with `natural`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu.compiled import Later, device, external, intrinsic

ir, types, cgutils = map(Later, ("llvmlite.ir", "numba.core.types", "numba.core.cgutils"))


def assembly(
    builder: Any, kind: Any, line: str, constraint: str, *args: Any, side_effect: bool
) -> Any:
    """A line of assembly in a kernel; for the bodies of intrinsics."""
    return builder.call(ir.InlineAsm(kind, line, constraint, side_effect=side_effect), args)


@intrinsic
def natural(typingctx: Any, number: Any) -> Any:
    """The same signed integer, with the promise that it is not negative."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
        assume = builder.module.declare_intrinsic("llvm.assume", (), kind)
        builder.call(assume, [builder.icmp_signed(">=", args[0], args[0].type(0))])
        return args[0]

    return number(number), codegen


@intrinsic
def converted(typingctx: Any, number: Any, example: Any) -> Any:
    """`number` in the type of `example`; Numba's own sums and products widen."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], signature.args[1])

    return example(number, example), codegen


@intrinsic
def with_item(typingctx: Any, items: Any, place: Any, item: Any) -> Any:
    """A copy of a tuple (all items of one type) with items[place] replaced."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slots = cgutils.alloca_once_value(builder, args[0])
        index = builder.trunc(args[1], ir.IntType(32))
        builder.store(args[2], builder.gep(slots, [ir.IntType(32)(0), index]))
        return builder.load(slots)

    return items(items, types.intp, items.dtype), codegen


@intrinsic
def select(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
    """x or y, both of one type, without a branch: for conditions that cannot be predicted.

    LLVM often compiles ``x if condition else y`` to a branch.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    return x(types.boolean, x, x), codegen


@intrinsic
def opaque(typingctx: Any, word: Any) -> Any:
    """The same integer, of which the compiler knows nothing any more.

    A comparison turned into 0 or 1 stays a number then.  From `select`, LLVM may still make a
    branch: a merge of two sorted arrays took 8.9 ns an element so, and 4.5 ns with this.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(args[0].type, [args[0].type])
        return assembly(builder, kind, "", "=r,0", args[0], side_effect=False)

    return word(word), codegen


def _prefetch(write: int) -> Any:
    """An intrinsic that says to the processor which memory is needed next."""

    def hint(typingctx: Any, array: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = cgutils.get_item_pointer(
                context, builder, signature.args[0], view, [args[1]], wraparound=False
            )
            byte_pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
            call = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], kind)
            keep, is_data = word(3), word(1)
            builder.call(call, [builder.bitcast(pointer, byte_pointer), word(write), keep, is_data])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen

    return intrinsic(hint)


prefetch = _prefetch(0)  # (array, index) is read soon; an index past the end does no harm
prefetch_write = _prefetch(1)  # (array, index) is written soon; likewise


@intrinsic
def count_ones(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), codegen


@intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Place of the lowest bit that is set in a word; the word must not be 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(True))

    return word(word), codegen


@intrinsic
def leading_zeros(typingctx: Any, word: Any) -> Any:
    """Bits above the highest one that is set in a word; the word must not be 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.IntType(1)(True))

    return word(word), codegen


@intrinsic
def rotated(typingctx: Any, word: Any, left: Any) -> Any:
    """A uint32 rotated to the left by LLVM's own function: Numba's shifts work in 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        kind = ir.FunctionType(word, [word] * 3)
        turn = builder.module.declare_intrinsic("llvm.fshl", [word], kind)
        return builder.call(turn, [args[0], args[0], args[1]])

    return types.uint32(types.uint32, types.uint32), codegen


# The C library's: those of `math` and NumPy would need Numba where kernels run.
_ldexp = external("ldexp", "float64", "float64", "intc")
_ilogb = external("ilogb", "intc", "float64")


@device
def ldexp(x: Any, by: int) -> Any:
    """x * 2**by."""
    return _ldexp(np.float64(x), np.int32(by))


@device
def exponent(x: Any) -> Any:
    """As ``math.frexp(x)[1]`` for x > 0: x < 2**exponent, and no smaller power of two."""
    return np.int64(_ilogb(x)) + 1 if 0.0 < x < np.inf else np.int64(0)


@device
def _moves(mask: Any, kept: Any, by: int) -> Any:
    """(the bits of a mask that move by `by` places when its ones are put together, the mask after
    that, what the next step needs); see Warren, Hacker's Delight, 7-4.
    """
    odd = kept ^ (kept << np.uint64(1))
    for shift in (2, 4, 8, 16, 32):
        odd ^= odd << np.uint64(shift)
    move = odd & mask
    return move, (mask ^ move) | (move >> np.uint64(by)), kept & ~odd


@device
def _apart(bits: Any, move: Any, by: int) -> Any:
    return (bits & ~move) | ((bits << np.uint64(by)) & move)


def _deposit(bits: Any, mask: Any) -> Any:
    if bits == np.uint64(0):
        return bits
    one, left, kept = _moves(mask, ~mask << np.uint64(1), 1)
    two, left, kept = _moves(left, kept, 2)
    four, left, kept = _moves(left, kept, 4)
    eight, left, kept = _moves(left, kept, 8)
    sixteen, left, kept = _moves(left, kept, 16)
    bits = _apart(bits, _moves(left, kept, 32)[0], 32)
    bits = _apart(_apart(bits, sixteen, 16), eight, 8)
    return _apart(_apart(_apart(bits, four, 4), two, 2), one, 1) & mask


def _extract(bits: Any, mask: Any) -> Any:
    one, found, bits = np.uint64(1), np.uint64(0), bits & mask
    if count_ones(bits) < np.uint64(FEW_BITS):
        while bits != np.uint64(0):
            found |= one << count_ones(mask & ((bits & (~bits + one)) - one))
            bits &= bits - one
        return found
    kept = ~mask << one
    for by in (1, 2, 4, 8, 16, 32):
        move, mask, kept = _moves(mask, kept, by)
        bits = (bits & ~move) | ((bits & move) >> np.uint64(by))
    return bits


def _by_instruction(name: str, otherwise: Any) -> Any:
    """An intrinsic on words of 64 bits: an instruction of x86-64 processors, a loop on others."""

    def word(typingctx: Any, bits: Any, mask: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, processor, features = context.codegen().magic_tuple()
            if "+bmi2" not in features or processor in SLOW_BITS:
                return context.compile_internal(builder, otherwise, signature, args)
            wide = ir.IntType(64)
            kind = ir.FunctionType(wide, [wide, wide])
            call = builder.module.declare_intrinsic(f"llvm.x86.bmi.{name}.64", (), kind)
            return builder.call(call, args)

        return types.uint64(types.uint64, types.uint64), codegen

    return intrinsic(word)


FEW_BITS = 8  # fewer set bits are extracted one by one, which is as quick
SLOW_BITS = ("znver1", "znver2")  # processors whose instructions are as slow as the loops
deposited = _by_instruction("pdep", _deposit)  # (bits, mask): lowest bits, to where the mask has 1s
extracted = _by_instruction("pext", _extract)  # (bits, mask): those where the mask has 1s, together
