"""Memory at an address, calls to an address, and the futex: how a thread of Linux sleeps and wakes.

A function may be called without knowing its type, as libffi does: on both processors the first few
integers and pointers are in registers, the first eight floating-point numbers are in others, and
all further arguments lie on the stack in words of 64 bits, in their order.  Words that a function
does not have as arguments do no harm there.

A futex is a word of 32 bits.  A thread sleeps on it as long as it has the value that the thread
saw; another thread changes the word and then wakes the sleepers.  The system compares the word
after the sleeper has been put on its list, so no wake is lost.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from matchwood.engines.cpu.atomics import atomic_cas, load_relaxed
from matchwood.engines.cpu.compiled import device

# The number of the system call, and of registers for integers
FUTEX, REGISTERS = {"x86_64": (202, 6), "aarch64": (98, 8)}.get(platform.machine(), (0, 2))
SUPPORTED = sys.platform == "linux" and sys.byteorder == "little" and FUTEX > 0
FLOATS = 8  # registers for floating-point numbers
MOST_WORDS = 256  # of arguments that are integers or pointers, or do not fit into registers
PRIVATE = 128  # the word is not shared with other processes
WAIT, WAKE, WAIT_BITSET, WAKE_BITSET = (PRIVATE + code for code in (0, 1, 9, 10))
ALL = 2**31 - 1

_WORD = types.Array(types.int64, 1, "C")
_syscall = types.ExternalFunction("syscall", types.int64(*[types.int64] * 7))


@intrinsic
def words_at(typingctx: Any, address: Any, count: Any) -> Any:
    """The `count` words of 64 bits at an address, as an array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(_WORD)(context, builder)
        word = ir.IntType(64)
        arrayobj.populate_array(
            made,
            data=builder.inttoptr(args[0], word.as_pointer()),
            shape=[args[1]],
            strides=[word(8)],
            itemsize=word(8),
            meminfo=None,
        )
        return made._getvalue()

    return _WORD(types.int64, types.int64), codegen


@intrinsic
def call_at(typingctx: Any, function: Any, rank: Any, floats: Any, integers: Any) -> Any:
    """Call a kernel: returns Numba's status, and the address of what was raised.

    All are addresses but for `rank`, which stands for the first of the integers.
    """
    word, double, address = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        result, raised = (builder.alloca(address) for _ in range(2))
        builder.store(address(None), raised)
        rest = _loaded(builder, word, args[3], MOST_WORDS)[1:]
        doubles = _loaded(builder, double, args[2], FLOATS)
        inside = REGISTERS - 3  # in registers, as are result, raised and rank
        kinds = [
            *2 * [address.as_pointer()], *(1 + inside) * [word], *FLOATS * [double],
            *(len(rest) - inside) * [word],
        ]  # fmt: skip
        values = [result, raised, args[1], *rest[:inside], *doubles, *rest[inside:]]
        kind = ir.FunctionType(ir.IntType(32), kinds)
        status = builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)
        where = builder.ptrtoint(builder.load(raised), word)
        pair = [builder.sext(status, word), where]
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(types.int64, 2)(*[types.int64] * 4), codegen


def _loaded(builder: Any, kind: Any, address: Any, count: int) -> list[Any]:
    start = builder.inttoptr(address, kind.as_pointer())
    return [builder.load(builder.gep(start, [ir.IntType(32)(k)])) for k in range(count)]


@device
def change(words: np.ndarray[Any, Any], index: int, by: int) -> int:
    """Add to a word, with acquire and release order; returns the value before."""
    before = load_relaxed(words, index)
    while True:
        seen = atomic_cas(words, index, before, before + by)
        if seen == before:
            return before
        before = seen


@device
def sleep_on(word: int, seen: int, bits: int) -> None:
    """Sleep until a wake with one of these bits, unless the word at this address has changed."""
    _syscall(FUTEX, word, WAIT_BITSET, seen, 0, 0, bits)


@device
def sleep_at_most(word: int, seen: int, seconds: int) -> None:
    """Sleep until a wake, a signal, or the end of the time at the address `seconds`."""
    _syscall(FUTEX, word, WAIT, seen, seconds, 0, 0)


@device
def wake_those(word: int, bits: int) -> None:
    """Wake all that sleep on the word with one of these bits."""
    _syscall(FUTEX, word, WAKE_BITSET, ALL, 0, 0, bits)


@device
def wake_all(word: int) -> None:
    """Wake all that sleep on the word."""
    _syscall(FUTEX, word, WAKE, ALL, 0, 0, 0)
