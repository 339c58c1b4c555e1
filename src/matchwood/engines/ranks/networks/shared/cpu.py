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
from matchwood.engines.cpu.compiled import routine
from matchwood.engines.cpu.mailboxes import words_at

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
