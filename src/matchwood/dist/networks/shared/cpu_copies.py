"""Runs of bytes that are copied by the threads of a rank.

What another rank has written is in the caches of its cores.  One thread fetches 2 to 3 GB a second
from there, several as many times as much.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import crew, kernel, share

Array = np.ndarray[Any, Any]

ALONE_BYTES = 1 << 17  # so few are copied by the calling thread: others would come too late
WIDEST = 8  # bytes of the widest element


class Copy(NamedTuple):
    """Runs to copy, all in bytes: of each where it begins, where it goes, and its length."""

    source: Array
    into: Array
    runs: list[tuple[int, int, int]]


@kernel
def _copy(
    team: Any, source: Array, into: Array, runs: Array, source2: Array, into2: Array, runs2: Array
) -> None:  # fmt: skip
    """Every member its share of each run; a run is in elements."""
    for k in range(runs.shape[0]):
        lo, hi = share(team, runs[k, 2])
        old = source[runs[k, 0] + lo : runs[k, 0] + hi]
        new = into[runs[k, 1] + lo : runs[k, 1] + hi]
        for i in range(old.size):
            new[i] = old[i]
    for k in range(runs2.shape[0]):
        lo, hi = share(team, runs2[k, 2])
        old = source2[runs2[k, 0] + lo : runs2[k, 0] + hi]
        new = into2[runs2[k, 1] + lo : runs2[k, 1] + hi]
        for i in range(old.size):
            new[i] = old[i]


def copy(threads: int, itemsize: int, first: Copy, second: Copy | None = None) -> None:
    """Copy these runs.  They begin and end with elements of that size, and so do the arrays."""
    both = [first] if second is None else [first, second]
    total = 0 if threads == 1 else sum(length for each in both for _, _, length in each.runs)
    if total < ALONE_BYTES:
        for source, into, runs in both:
            for begin, to, length in runs:
                into[to : to + length] = source[begin : begin + length]
        return
    unit = min(itemsize & -itemsize, WIDEST)
    kind = np.dtype(f"u{unit}")
    given: list[Array] = []
    for source, into, runs in (first, second or Copy(first.source, first.into, [])):
        listed = np.array(runs, np.int64).reshape(-1, 3) // unit
        given += [source.view(kind), into.view(kind), listed]
    crew(threads, work=total).run(_copy, *given)
