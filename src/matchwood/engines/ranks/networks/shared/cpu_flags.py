"""Flags of ranks that share memory: the number of the last meeting that each of them came to.

A flag is raised by a release and seen by an acquire.  So what a rank wrote before it raised its
flag is there for all who see it, and what it read before was read in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import back_off, device, kernel, load_acquire, store_release

Array = np.ndarray[Any, Any]

LINE = 8  # words of a flag: each has a cache line of its own
ABSENT, PRESENT, DIFFERENT = range(3)


@device
def _looked(flags: Array, heads: Array, number: int, looks: int) -> int:
    for other in range(heads.shape[0]):
        while load_acquire(flags, other * LINE) < number:
            looks -= 1
            if looks < 0:
                return ABSENT
            back_off(0)
    for other in range(1, heads.shape[0]):
        if heads[other, 0] != heads[0, 0]:
            return DIFFERENT
    return PRESENT


@kernel
def come(team: Any, flags: Array, heads: Array, rank: int, number: int, looks: int) -> int:
    """Raise the flag of this rank, then look for the others; see `present`."""
    store_release(flags, rank * LINE, number)
    return _looked(flags, heads, number, looks)


@kernel
def present(team: Any, flags: Array, heads: Array, number: int, looks: int) -> int:
    """Whether all flags are up; after so many looks at one that is not, the answer is ABSENT.

    `heads` has a row for each rank, whose first word says what the rank came for.  DIFFERENT
    where these are not the same.
    """
    return _looked(flags, heads, number, looks)
