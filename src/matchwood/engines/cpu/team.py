"""What a kernel sees of its team: members, barrier, parts of the work, progress, failure.

A kernel is one function that every member runs at the same time, as a CUDA grid runs a kernel:

    @kernel
    def double(team, x):
        lo, hi = share(team, x.size)          # a fixed part of the work for each member
        for i in range(lo, hi):
            x[i] *= 2
        if barrier(team):                     # all of x is doubled after this
            return                            # cancelled, or another member failed
        ...

`barrier`, `next_chunk` and `fail` return whether a kernel must stop (Ctrl-C in the calling thread,
an error in another member).  The rule is: **return when `barrier` returns True**.  Numba leaks
references when a compiled function raises, so stopping is a return value and no exception.  A
kernel allocates nothing; the host gives it its arrays.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu.atomics import (
    atomic_add,
    atomic_cas,
    load_acquire,
    load_relaxed,
    relax_core,
    store_relaxed,
    store_release,
)
from matchwood.engines.cpu.compiled import device, external

# The control words lie 128 bytes apart (two cache lines of 64 bytes, or one of Apple's), so that
# members that spin on one do not slow down those that write another.
_LINE = 16
ARRIVED = 0 * _LINE  # members waiting at the barrier
GENERATION = 1 * _LINE  # barriers passed
STOP = 2 * _LINE  # 0 go on, else return at the next barrier or chunk
CURSOR = 3 * _LINE  # where next_chunk goes on; every barrier sets it to 0
DONE = 4 * _LINE  # progress: steps done
TOTAL = 4 * _LINE + 1  # progress: all steps
FAILURE = 5 * _LINE  # error code, 0 = none
DETAIL = 5 * _LINE + 1  # what the error is about (a vertex, an edge)
WORDS = 6 * _LINE

SPINS = 64  # tests (with relax_core between them) before the core is yielded: 1 to 4 us
YIELDS = 512  # yields of the core before a member sleeps, which saves power
SLEEP_US = 50  # microseconds; this delay is small compared with YIELDS yields


class Team(NamedTuple):
    """One member's handle: its number (`me`), the team's size, and the words all share."""

    me: int
    size: int
    words: np.ndarray[Any, Any]


if sys.platform == "win32":
    _yield_core = external("SwitchToThread", "intc")
    _sleep_ms = external("Sleep", "void", "uint32")

    @device
    def _pause() -> None:
        _sleep_ms(np.uint32(1))
else:
    _yield_core = external("sched_yield", "intc")
    _usleep = external("usleep", "intc", "uint32")

    @device
    def _pause() -> None:
        _usleep(np.uint32(SLEEP_US))


@device
def idle(looks: int) -> int:
    """Wait a moment, without sleeping, after `looks` tests of another thread; returns looks + 1."""
    if looks >= SPINS:
        _yield_core()
    else:
        relax_core()
    return looks + 1


@device
def back_off(looks: int) -> int:
    """As `idle`, but sleeps when the wait takes long."""
    if looks < SPINS + YIELDS:
        return idle(looks)
    _pause()
    return looks + 1


@device
def stopping(team: Team) -> bool:
    """True when the team was cancelled or a member failed: return as soon as possible."""
    return load_relaxed(team.words, STOP) != 0


@device
def interrupted(team: Team, i: int) -> bool:
    """`stopping`, tested only when i is a multiple of 256: for long loops over rows.

    In a skewed graph 256 neighbouring rows may have thousands of entries each, and sorting them
    takes some 20 ms.  4096 rows would take a third of a second, in which Ctrl-C does not work.
    """
    return i & 255 == 0 and stopping(team)


@device
def barrier(team: Team) -> bool:
    """Wait for all members.  True: the team stops, so return at once."""
    words = team.words
    if team.size == 1:
        words[CURSOR] = 0
        return stopping(team)
    generation = load_acquire(words, GENERATION)
    # compare-and-swap instead of add, because it has acquire and release order: what each member
    # wrote before is visible to all members afterwards
    arrived = load_relaxed(words, ARRIVED)
    while True:
        seen = atomic_cas(words, ARRIVED, arrived, arrived + 1)
        if seen == arrived:
            break
        arrived = seen
    if arrived == team.size - 1:
        store_relaxed(words, ARRIVED, 0)
        store_relaxed(words, CURSOR, 0)
        store_release(words, GENERATION, generation + 1)
    else:
        looks = 0
        while load_acquire(words, GENERATION) == generation:
            if stopping(team):
                return True
            looks = back_off(looks)
    return stopping(team)


@device
def share(team: Team, n: int) -> tuple[int, int]:
    """This member's range of 0..n, the same at every call.  Lengths differ by at most one."""
    each, rest = n // team.size, n % team.size
    lo = team.me * each + min(team.me, rest)
    return lo, lo + each + (1 if team.me < rest else 0)


@device
def share_rows(team: Team, indptr: np.ndarray[Any, Any]) -> tuple[int, int]:
    """This member's range of rows, such that all have about the same number of entries."""
    n = indptr.size - 1
    return _row_at(indptr, n, team.me, team.size), _row_at(indptr, n, team.me + 1, team.size)


@device
def _row_at(indptr: np.ndarray[Any, Any], n: int, part: int, parts: int) -> int:
    """First row that belongs to part `part` of `parts`, counting a row as its entries + 1."""
    if part == parts:
        return n
    target = (np.int64(indptr[n]) + n) // parts * part
    lo, hi = 0, n
    while lo < hi:
        middle = (lo + hi) // 2
        if np.int64(indptr[middle]) + middle < target:
            lo = middle + 1
        else:
            hi = middle
    return lo


@device
def next_chunk(team: Team, n: int, size: int) -> int:
    """Start of the next `size` items of 0..n that no member has taken, or -1 when none are left.

    For work whose cost is not known in advance.  The cursor starts again at every barrier, so
    between two barriers there must be only one such loop.  Also -1 when the team stops; the next
    barrier then returns True.
    """
    if stopping(team):
        return -1
    start = atomic_add(team.words, CURSOR, size)
    return start if start < n else -1


@device
def expect(team: Team, total: int) -> None:
    """Announce how many steps `advance` will count."""
    store_relaxed(team.words, TOTAL, total)


@device
def advance(team: Team, steps: int) -> None:
    """Count steps done; the caller's progress callback sees the sum."""
    atomic_add(team.words, DONE, steps)


@device
def fail(team: Team, code: int, detail: int) -> bool:
    """Stop the team with an error code (> 0) that the host turns into an exception.

    The first failure of a run is kept.  Returns True: `return fail(...)` in helper functions.
    """
    if atomic_cas(team.words, FAILURE, 0, code) == 0:
        store_relaxed(team.words, DETAIL, detail)
    store_release(team.words, STOP, 1)
    return True
