"""What a member does at its mailbox, and what the calling thread does to send it to work.

A mailbox is a few words of one member.  Its word STATE has three flags:

    POSTED   the caller has a kernel for the member.  Who takes the flag away decides: the member
             (it begins), or the caller (cancelled: the member never begins)
    CALLED   there are tasks in Python: the member leaves the loop for them
    ASLEEP   the member sleeps, or is about to: who sets another flag must wake it

All changes of STATE read and write it in one step.  So either the member sees a flag before it
sleeps, or who sets the flag sees ASLEEP.  The members sleep on one word, the bell, each with one
of 32 bits of its own (more members share bits, and then some wake for nothing): one system call
wakes those of a team.

A record is what one run of a kernel needs; it belongs to the caller.  A member touches it between
taking POSTED and counting LEFT down.  OVER is 1 whenever no member has anything to do with it.

The first part of this file has what is needed for that: memory at an address, calls to an address,
and the futex, by which a thread of Linux sleeps and wakes.  A function may be called without
knowing its type, as libffi does: on both processors the first few integers and pointers are in
registers, the first eight floating-point numbers are in others, and all further arguments lie on
the stack in words of 64 bits, in their order.  More words than the function has arguments do no
harm there.  A futex is a word of 32 bits.  A thread sleeps on it as long as it has the value that
the thread saw; another thread changes the word and then wakes the sleepers.  The system compares
the word after the sleeper has been put on its list, so no wake is lost.
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

from matchwood.engines.cpu.atomics import atomic_cas, load_acquire, load_relaxed, store_release
from matchwood.engines.cpu.compiled import device, holding, kernel
from matchwood.engines.cpu.team import STOP, WORDS, idle

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

_LINE = 16  # words: 128 bytes, so that nobody else's data lies in the same cache line

# A mailbox
STATE = _LINE
RECORD = _LINE + 1  # address of the record
NUMBER = _LINE + 2
BIT = _LINE + 3  # the member's bit at the bell
LOOKS = _LINE + 4  # how often it looks at its mailbox after a kernel before it sleeps
MAILBOX_WORDS = 3 * _LINE
POSTED, CALLED, ASLEEP = 1, 2, 4  # flags of STATE

# A record
FUNCTION = 0  # address of the kernel
LEFT = _LINE  # members that have not ended
OVER = _LINE + 1
STATUS = _LINE + 2  # Numba's, of the first member that raised an exception
DETAIL = _LINE + 3  # address of that exception
REALS = 2 * _LINE  # arguments in registers for floating-point numbers
SLOTS = 3 * _LINE  # all other arguments
TEAM_WORDS = SLOTS + 6  # before it: number, size; owner, parent, elements, bytes of an element
VALUES = SLOTS + MOST_WORDS  # values from which `start` fills the slots

FINE = (0, -2)  # Numba's status where nothing was raised
HEAD = object.__basicsize__ // 8  # words of an object before its own fields


# Memory and calls at an address, sleep and wake


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
def call_at(typingctx: Any, function: Any, me: Any, floats: Any, integers: Any) -> Any:
    """Call a kernel: returns Numba's status, and the address of what was raised.

    All are addresses but for `me`, which stands for the first of the integers.
    """
    word, double, address = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        result, raised = (builder.alloca(address) for _ in range(2))
        builder.store(address(None), raised)
        rest = _loaded(builder, word, args[3], MOST_WORDS)[1:]
        doubles = _loaded(builder, double, args[2], FLOATS)
        inside = REGISTERS - 3  # in registers, as are result, raised and me
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
    _syscall(FUTEX, word, WAKE, ALL, 0, 0, 0)


# What members do


@kernel
def attend(mailbox: Any, bell: Any) -> None:
    """Run kernels until there are tasks in Python."""
    looks = 0
    while True:
        state = load_acquire(mailbox, STATE)
        if state & POSTED:
            if atomic_cas(mailbox, STATE, state, state - POSTED) == state:
                _work(words_at(mailbox[RECORD], TEAM_WORDS + 1), mailbox[NUMBER])
                looks = 0
        elif state & CALLED:
            if atomic_cas(mailbox, STATE, state, state - CALLED) == state:
                return
        elif looks < mailbox[LOOKS]:
            looks = idle(looks)
        else:
            rung = load_acquire(bell, 0)
            if atomic_cas(mailbox, STATE, state, state + ASLEEP) == state:
                sleep_on(bell.ctypes.data, rung, mailbox[BIT])
                change(mailbox, STATE, -ASLEEP)


@device
def _work(record: Any, me: int) -> None:
    start = record.ctypes.data
    status, detail = call_at(record[FUNCTION], me, start + 8 * REALS, start + 8 * SLOTS)
    if status not in FINE:
        if atomic_cas(record, STATUS, 0, status) == 0:
            record[DETAIL] = detail
        store_release(words_at(record[TEAM_WORDS], WORDS), STOP, 1)
    _end(record)


@device
def _end(record: Any) -> None:
    """Count a member down.  Only the last one touches the record after that, and only once."""
    over = record.ctypes.data + 8 * OVER
    if change(record, LEFT, -1) == 1:
        store_release(record, OVER, 1)
        wake_all(over)  # an address is all it needs: the record may be gone by now


@holding
def start(plan: Any, record: Any, mailboxes: Any, bell: Any, most_looks: int) -> None:
    """Fill in the record and send it to the members at these mailboxes (addresses), in order.

    For each value the plan has the number of dimensions (-1: it is no array) and its first slot.
    For an array the value is the address of the Python object.  It is read here, so this runs with
    the interpreter's lock held: another thread cannot change the shape meanwhile.
    """
    for k in range(plan.shape[0]):
        dimensions, slot = plan[k, 0], plan[k, 1]
        if dimensions < 0:
            record[slot] = record[VALUES + k]
        else:
            _unpack(record[VALUES + k], dimensions, record, slot)
    record[LEFT] = mailboxes.size
    record[OVER] = 0
    bits = 0
    for me in range(mailboxes.size):
        mailbox = words_at(mailboxes[me], MAILBOX_WORDS)
        mailbox[RECORD] = record.ctypes.data
        mailbox[NUMBER] = me
        mailbox[LOOKS] = most_looks
        if _flag(mailbox, POSTED) & ASLEEP:
            bits |= mailbox[BIT]
    _ring(bell, bits)


@device
def _unpack(address: int, dimensions: int, record: Any, slot: int) -> None:
    """The slots of an array: elements, (bytes of each), data, shape, strides; no owner, no parent.

    NumPy's object has data, the number of dimensions, the address of the shape and that of the
    strides.  These fields are public: extensions in C read them without a function call.
    """
    fields = words_at(address, HEAD + 4)
    shape = words_at(fields[HEAD + 2], dimensions)
    strides = words_at(fields[HEAD + 3], dimensions)
    elements = 1
    for k in range(dimensions):
        elements *= shape[k]
        record[slot + 5 + k] = shape[k]
        record[slot + 5 + dimensions + k] = strides[k]
    record[slot + 2] = elements
    record[slot + 4] = fields[HEAD]


@device
def _flag(mailbox: Any, flag: int) -> int:
    """Set a flag; returns the state before."""
    state = load_acquire(mailbox, STATE)
    while True:
        seen = atomic_cas(mailbox, STATE, state, state | flag)
        if seen == state:
            return state
        state = seen


@device
def _ring(bell: Any, bits: int) -> None:
    if bits != 0:
        change(bell, 0, 1)
        wake_those(bell.ctypes.data, bits)


@kernel
def call(mailbox: Any, bell: Any) -> None:
    """Notify a member that there are tasks in Python."""
    if _flag(mailbox, CALLED) & ASLEEP:
        _ring(bell, mailbox[BIT])


@kernel
def wait(record: Any, seconds: Any) -> bool:
    """True when the run is over.  Sleeps at most `seconds`; a signal ends the sleep."""
    if load_acquire(record, OVER) == 0:
        sleep_at_most(record.ctypes.data + 8 * OVER, 0, seconds.ctypes.data)
    return load_acquire(record, OVER) == 1


@kernel
def cancel(record: Any, mailboxes: Any) -> None:
    """Stop the members that have begun; the others never begin."""
    if load_acquire(record, OVER) == 1:
        return  # over, or not started
    store_release(words_at(record[TEAM_WORDS], WORDS), STOP, 1)
    for me in range(mailboxes.size):
        mailbox = words_at(mailboxes[me], MAILBOX_WORDS)
        state = load_acquire(mailbox, STATE)
        while state & POSTED:
            seen = atomic_cas(mailbox, STATE, state, state - POSTED)
            if seen == state:
                _end(record)
                break
            state = seen
