"""Flags of ranks that share memory, and copies of large arrays by all threads of a rank.

A flag is the number of the last meeting that its rank entered.  It is raised by a release and read
by an acquire.  So what a rank wrote before it raised its flag is there for all who see it, and what
it read before was read in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    back_off,
    crew,
    device,
    kernel,
    load_acquire,
    share,
    store_release,
)
from matchwood.engines.cpu.atomics import relax_core
from matchwood.engines.cpu.compiled import external, routine
from matchwood.engines.cpu.mailboxes import ALL, FUTEX, SUPPORTED, change, words_at

Array = np.ndarray[Any, Any]

FLAG_WORDS = 8  # words of a flag: each has a cache line of its own
ABSENT, PRESENT, DIFFERENT = range(3)


@device
def _looked(flags: Array, heads: int, ranks: int, words: int, number: int, looks: int) -> int:
    for other in range(ranks):
        while load_acquire(flags, other * FLAG_WORDS) < number:
            looks -= 1
            if looks < 0:
                return ABSENT
            back_off(0)
    first = words_at(heads, ranks * words)
    for other in range(1, ranks):
        if first[other * words] != first[0]:
            return DIFFERENT
    return PRESENT


@routine
def come(flags: int, heads: int, ranks: int, words: int, number: int, looks: int, rank: int) -> int:
    """Raise the flag of this rank, then look for the others; see `present`."""
    raised = words_at(flags, ranks * FLAG_WORDS)
    store_release(raised, rank * FLAG_WORDS, number)
    return _looked(raised, heads, ranks, words, number, looks)


@routine
def present(flags: int, heads: int, ranks: int, words: int, number: int, looks: int) -> int:
    """PRESENT if all flags are up; ABSENT if one is still down after `looks` tests.

    DIFFERENT if the ranks call different operations: the first word of each of the `heads`, which
    are `words` apart.  Flags and heads are addresses.
    """
    return _looked(words_at(flags, ranks * FLAG_WORDS), heads, ranks, words, number, looks)


# Meetings within a kernel
#
# Ranks count themselves in, and the last one writes the number of the meeting, which the others
# wait for: a while awake, then asleep on that word, from which the last one wakes them.  A process
# that is woken runs soon, also where others use the CPUs.  One that only offers its CPU does not.


MEETING_WORDS = 48  # of the memory that ranks share
ARRIVED, PASSED, ASLEEP = 0, 16, 32  # its words: ranks counted, the last number, ranks asleep
AWAKE_LOOKS = 1000  # before a rank sleeps: some 40 us
AWAKE_CROWDED = 20  # the same where ranks share CPUs
DOZES = 4  # before a kernel returns, so that a rank hears of failures within milliseconds
DOZE_NANOSECONDS = 1_000_000  # the longest sleep

if SUPPORTED:
    _WAIT, _WAKE = 0, 1  # on a word that processes share

    _syscall = external("syscall", *["int64"] * 8)

    @device
    def _doze(words: Array, place: int, seen: int) -> None:
        """Sleep until a wake, unless the number has changed; `place` is the address of words."""
        _syscall(FUTEX, place + 8 * PASSED, _WAIT, seen, place + 8 * (PASSED + 1), 0, 0)

    @device
    def _wake(place: int) -> None:
        _syscall(FUTEX, place + 8 * PASSED, _WAKE, ALL, 0, 0, 0)
else:

    @device
    def _doze(words: Array, place: int, seen: int) -> None:
        looks = 0
        while looks < AWAKE_LOOKS and load_acquire(words, PASSED) == seen:
            looks = back_off(looks)

    @device
    def _wake(place: int) -> None:
        pass


@device
def enter_meeting(words: Array, place: int, ranks: int, number: int) -> None:
    """Count this rank in.  Meetings are numbered from 1; `place` is the address of `words`."""
    words[PASSED + 2] = DOZE_NANOSECONDS  # all write the same, behind the seconds, which are 0
    if change(words, ARRIVED, 1) == ranks * number - 1:
        store_release(words, PASSED, number)
        if change(words, ASLEEP, 0) > 0:
            _wake(place)


@device
def all_entered(words: Array, place: int, number: int, crowded: bool) -> bool:
    """Wait until all ranks have entered the meeting; False where that takes milliseconds."""
    looks = dozes = 0
    awake = AWAKE_CROWDED if crowded else AWAKE_LOOKS
    while load_acquire(words, PASSED) < number:
        if looks < awake:
            relax_core()
            looks += 1
            continue
        if dozes == DOZES:
            return False
        # the last rank looks at ASLEEP after it has written the number: it wakes this one, or this
        # one sees the number
        change(words, ASLEEP, 1)
        _doze(words, place, number - 1)
        change(words, ASLEEP, -1)
        dozes += 1
    return True


# Large arrays that are copied by all threads of a rank.

COPIED_BY_TEAM_BYTES = 1 << 21
"""From this size on a team copies.  For less, calling its members takes as long as they save:
with small copies by a team, too, searches and components on ranks became slower."""
WIDEST_BYTES = 8  # the most of a word that a team copies at once


@kernel
def _copy(team: Any, source: Array, into: Array) -> None:
    lo, hi = share(team, source.size)
    old, new = source[lo:hi], into[lo:hi]
    for i in range(old.size):
        new[i] = old[i]


def copy(threads: int, array: Array, into: Array) -> None:
    """Copy an array to `into`, which has as many bytes and begins where its elements could."""
    if threads == 1 or array.nbytes < COPIED_BY_TEAM_BYTES:
        into[:] = array.view(np.uint8)
        return
    kind = np.dtype(f"u{min(array.itemsize & -array.itemsize, WIDEST_BYTES)}")
    crew(threads, work=array.nbytes).run(_copy, array.view(kind), into.view(kind))
