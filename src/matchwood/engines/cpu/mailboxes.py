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

The first part of this file has what is needed for that: memory at an address, the call of a
kernel's entry (see jit.py), and the futex, by which a thread of Linux sleeps and wakes.  A futex
is a word of 32 bits.  A thread sleeps on it as long as it has the value that the thread saw;
another thread changes the word and then wakes the sleepers.  The system compares the word after the
sleeper has been put on its list, so no wake is lost.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np

from matchwood.engines.cpu.atomics import atomic_cas, load_acquire, load_relaxed, store_release
from matchwood.engines.cpu.compiled import Later, device, external, intrinsic, routine
from matchwood.engines.cpu.team import STOP, WORDS, idle

ir, types, arrayobj = map(Later, ("llvmlite.ir", "numba.core.types", "numba.np.arrayobj"))

FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0)  # number of the system call
SUPPORTED = sys.platform == "linux" and sys.byteorder == "little" and FUTEX > 0
PRIVATE = 128  # the word is not shared with other processes
WAIT, WAKE, WAIT_BITSET, WAKE_BITSET = (PRIVATE + code for code in (0, 1, 9, 10))
ALL = 2**31 - 1

_syscall = external("syscall", *["int64"] * 8)

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
FUNCTION = 0  # address of the kernel's entry
LEFT = _LINE  # members that have not ended
OVER = _LINE + 1
STATUS = _LINE + 2  # Numba's, of the first member that raised an exception
DETAIL = _LINE + 3  # address of that exception
SLOTS = 3 * _LINE  # arguments; in the word before, what the kernel returned
TEAM_WORDS = SLOTS + 2  # before it: number and size

FINE = (0, -2)  # Numba's status where nothing was raised
HEAD = object.__basicsize__ // 8  # words of an object before its own fields


# Memory and calls at an address, sleep and wake


@intrinsic
def words_at(typingctx: Any, address: Any, count: Any) -> Any:
    """The `count` words of 64 bits at an address, as an array."""
    kind = types.Array(types.int64, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(kind)(context, builder)
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

    return kind(types.int64, types.int64), codegen


@intrinsic
def call_at(typingctx: Any, function: Any, slots: Any, me: Any) -> Any:
    """Call a kernel's entry: returns Numba's status, and the address of what was raised."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        raised = builder.alloca(word)
        builder.store(word(0), raised)
        kind = ir.FunctionType(ir.IntType(32), [word, word, word.as_pointer()])
        entry = builder.inttoptr(args[0], kind.as_pointer())
        status = builder.call(entry, [args[1], args[2], raised])
        pair = [builder.sext(status, word), builder.load(raised)]
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(types.int64, 2)(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_word(typingctx: Any, function: Any, word: Any) -> Any:
    """Call a function of one word that returns one; of fewer, the word is not looked at."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

    return types.int64(types.int64, types.int64), codegen


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


@routine
def attend(address: int, bell_address: int) -> None:
    """Run kernels until there are tasks in Python."""
    mailbox, bell = words_at(address, MAILBOX_WORDS), words_at(bell_address, 1)
    looks = 0
    while True:
        state = load_acquire(mailbox, STATE)
        if state & POSTED:
            if atomic_cas(mailbox, STATE, state, state - POSTED) == state:
                _work(mailbox[RECORD], mailbox[NUMBER])
                looks = 0
        elif state & CALLED:
            if atomic_cas(mailbox, STATE, state, state - CALLED) == state:
                return
        elif looks < mailbox[LOOKS]:
            looks = idle(looks)
        else:
            rung = load_acquire(bell, 0)
            if atomic_cas(mailbox, STATE, state, state + ASLEEP) == state:
                sleep_on(bell_address, rung, mailbox[BIT])
                change(mailbox, STATE, -ASLEEP)


@device
def _work(address: int, me: int) -> None:
    record = words_at(address, TEAM_WORDS + 1)
    status, detail = call_at(record[FUNCTION], address + 8 * SLOTS, me)
    if status not in FINE:
        if atomic_cas(record, STATUS, 0, status) == 0:
            record[DETAIL] = detail
        store_release(words_at(record[TEAM_WORDS], WORDS), STOP, 1)
    _end(address)


@device
def _end(address: int) -> None:
    """Count a member down.  Only the last one touches the record after that, and only once."""
    record = words_at(address, TEAM_WORDS + 1)
    if change(record, LEFT, -1) == 1:
        store_release(record, OVER, 1)
        wake_all(address + 8 * OVER)  # an address is all it needs: the record may be gone by now


@routine
def fill(plan: int, arrays: int, address: int) -> None:
    _fill(plan, arrays, address)


@device
def _fill(plan_address: int, arrays: int, address: int) -> None:
    """Replace the addresses of NumPy's objects in a record by data, shape and strides.

    The plan has the first slot and the dimensions of each array.  The objects are read here, so
    this runs with the interpreter's lock held: another thread cannot change the shape meanwhile.
    NumPy's object has data, the number of dimensions, the address of the shape and that of the
    strides.  These fields are public: extensions in C read them without a function call.
    """
    plan = words_at(plan_address, 2 * arrays)
    for k in range(arrays):
        dimensions = plan[2 * k + 1]
        slots = words_at(address + 8 * (SLOTS + plan[2 * k]), 1 + 2 * dimensions)
        fields = words_at(slots[0], HEAD + 4)
        shape = words_at(fields[HEAD + 2], dimensions)
        strides = words_at(fields[HEAD + 3], dimensions)
        for d in range(dimensions):
            slots[1 + d] = shape[d]
            slots[1 + dimensions + d] = strides[d]
        slots[0] = fields[HEAD]


@routine
def run(plan: int, arrays: int, address: int, release: int, regain: int) -> int:
    """`fill` a record, and run the kernel as the only member; returns Numba's status.

    `release` and `regain` are Python's functions for the interpreter's lock: the kernel runs
    without it.
    """
    _fill(plan, arrays, address)
    record = words_at(address, TEAM_WORDS + 1)
    thread = call_word(release, 0)
    status, record[DETAIL] = call_at(record[FUNCTION], address + 8 * SLOTS, 0)
    call_word(regain, thread)
    return status


@routine
def start(address: int, boxes_address: int, members: int, bell: int, most_looks: int) -> None:
    """Send the record to the members at these mailboxes (a list of addresses), in order."""
    record, boxes = words_at(address, TEAM_WORDS + 1), words_at(boxes_address, members)
    record[LEFT] = members
    record[OVER] = 0
    bits = 0
    for me in range(members):
        mailbox = words_at(boxes[me], MAILBOX_WORDS)
        mailbox[RECORD] = address
        mailbox[NUMBER] = me
        mailbox[LOOKS] = most_looks
        if _flag(mailbox, POSTED) & ASLEEP:
            bits |= mailbox[BIT]
    _ring(bell, bits)


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
def _ring(bell: int, bits: int) -> None:
    if bits != 0:
        change(words_at(bell, 1), 0, 1)
        wake_those(bell, bits)


@routine
def call(address: int, bell: int) -> None:
    """Notify a member that there are tasks in Python."""
    mailbox = words_at(address, MAILBOX_WORDS)
    if _flag(mailbox, CALLED) & ASLEEP:
        _ring(bell, mailbox[BIT])


@routine
def wait(address: int, seconds: int) -> int:
    """1 when the run is over.  Sleeps at most `seconds` (an address); a signal ends the sleep."""
    record = words_at(address, TEAM_WORDS + 1)
    if load_acquire(record, OVER) == 0:
        sleep_at_most(address + 8 * OVER, 0, seconds)
    return load_acquire(record, OVER)


@routine
def cancel(address: int, boxes_address: int, members: int) -> None:
    """Stop the members that have begun; the others never begin."""
    record, boxes = words_at(address, TEAM_WORDS + 1), words_at(boxes_address, members)
    if load_acquire(record, OVER) == 1:
        return  # over, or not started
    store_release(words_at(record[TEAM_WORDS], WORDS), STOP, 1)
    for me in range(members):
        mailbox = words_at(boxes[me], MAILBOX_WORDS)
        state = load_acquire(mailbox, STATE)
        while state & POSTED:
            seen = atomic_cas(mailbox, STATE, state, state - POSTED)
            if seen == state:
                _end(address)
                break
            state = seen
