"""What a member does at its post, and what the calling thread does to send it to work.

A post is a few words of one member.  Its word STATE has three flags:

    POSTED   the caller has a kernel for the member.  Who takes the flag away decides: the member
             (it begins), or the caller (called off: the member never begins)
    CALLED   there are tasks in Python: the member leaves the loop for them
    ASLEEP   the member sleeps, or is about to: who sets another flag must wake it

All changes of STATE read and write it in one step.  So either the member sees a flag before it
sleeps, or who sets the flag sees ASLEEP.  The members sleep on one word, the bell, each with one
of 32 bits of its own (more members share bits, and then some wake for nothing): one system call
wakes those of a team.

A record is what one run of a kernel needs; it belongs to the caller.  A member touches it between
taking POSTED and counting LEFT down.  OVER is 1 whenever no member has anything to do with it.
"""

from __future__ import annotations

from typing import Any

from matchwood.engines.cpu.atomics import atomic_cas, load_acquire, store_release
from matchwood.engines.cpu.compiled import device, holding, kernel
from matchwood.engines.cpu.native.cpu_words import (
    MOST_WORDS,
    call_at,
    change,
    sleep_at_most,
    sleep_on,
    wake_all,
    wake_those,
    words_at,
)
from matchwood.engines.cpu.team import STOP, WORDS, idle

_LINE = 16  # words; nobody else's data is closer than a line of the cache

# A post
STATE = _LINE
RECORD = _LINE + 1  # address of the record
RANK = _LINE + 2
BIT = _LINE + 3  # the member's bit at the bell
PATIENCE = _LINE + 4  # how often it looks at its post after a kernel before it sleeps
POST_WORDS = 3 * _LINE
POSTED, CALLED, ASLEEP = 1, 2, 4  # flags of STATE

# A record
FUNCTION = 0  # address of the kernel
LEFT = _LINE  # members that have not ended
OVER = _LINE + 1
STATUS = _LINE + 2  # Numba's, of the first member that raised an exception
DETAIL = _LINE + 3  # what it points to
REALS = 2 * _LINE  # arguments in registers for floating-point numbers
SLOTS = 3 * _LINE  # all other arguments
TEAM_WORDS = SLOTS + 6  # before it: rank, size; owner, parent, elements, bytes of an element
VALUES = SLOTS + MOST_WORDS  # what `start` makes the slots of

FINE = (0, -2)  # Numba's status where nothing was raised


@kernel
def attend(post: Any, bell: Any) -> None:
    """Run kernels until there are tasks in Python."""
    looks = 0
    while True:
        state = load_acquire(post, STATE)
        if state & POSTED:
            if atomic_cas(post, STATE, state, state - POSTED) == state:
                _work(words_at(post[RECORD], TEAM_WORDS + 1), post[RANK])
                looks = 0
        elif state & CALLED:
            if atomic_cas(post, STATE, state, state - CALLED) == state:
                return
        elif looks < post[PATIENCE]:
            looks = idle(looks)
        else:
            rung = load_acquire(bell, 0)
            if atomic_cas(post, STATE, state, state + ASLEEP) == state:
                sleep_on(bell.ctypes.data, rung, post[BIT])
                change(post, STATE, -ASLEEP)


@device
def _work(record: Any, rank: int) -> None:
    start = record.ctypes.data
    status, detail = call_at(record[FUNCTION], rank, start + 8 * REALS, start + 8 * SLOTS)
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
def start(plan: Any, record: Any, posts: Any, bell: Any, patience: int) -> None:
    """Fill in the record and send it to the members at these posts (addresses), by their ranks.

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
    record[LEFT] = posts.size
    record[OVER] = 0
    bits = 0
    for rank in range(posts.size):
        post = words_at(posts[rank], POST_WORDS)
        post[RECORD] = record.ctypes.data
        post[RANK] = rank
        post[PATIENCE] = patience
        if _flag(post, POSTED) & ASLEEP:
            bits |= post[BIT]
    _ring(bell, bits)


HEAD = object.__basicsize__ // 8  # words of an object before its own fields


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
def _flag(post: Any, flag: int) -> int:
    """Set a flag; returns the state before."""
    state = load_acquire(post, STATE)
    while True:
        seen = atomic_cas(post, STATE, state, state | flag)
        if seen == state:
            return state
        state = seen


@device
def _ring(bell: Any, bits: int) -> None:
    if bits != 0:
        change(bell, 0, 1)
        wake_those(bell.ctypes.data, bits)


@kernel
def call(post: Any, bell: Any) -> None:
    """Tell a member that there are tasks in Python."""
    if _flag(post, CALLED) & ASLEEP:
        _ring(bell, post[BIT])


@kernel
def wait(record: Any, seconds: Any) -> bool:
    """True when the run is over.  Sleeps at most so long; a signal ends it."""
    if load_acquire(record, OVER) == 0:
        sleep_at_most(record.ctypes.data + 8 * OVER, 0, seconds.ctypes.data)
    return load_acquire(record, OVER) == 1


@kernel
def call_off(record: Any, posts: Any) -> None:
    """Members that have not begun never begin; those that have are told to stop."""
    if load_acquire(record, OVER) == 1:
        return  # over, or not started
    store_release(words_at(record[TEAM_WORDS], WORDS), STOP, 1)
    for rank in range(posts.size):
        post = words_at(posts[rank], POST_WORDS)
        state = load_acquire(post, STATE)
        while state & POSTED:
            seen = atomic_cas(post, STATE, state, state - POSTED)
            if seen == state:
                _end(record)
                break
            state = seen
