"""The first and the last neighbour of each row, gathered on the host for a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import Team, crew, interrupted, kernel, share

Array = np.ndarray[Any, Any]

LINE = 16  # words between the counters of two members, so that they share no cache line


@kernel
def _gather(team: Team, indptr: Array, indices: Array, lo: int, none: Any, ends: Array,
            counts: Array) -> None:  # fmt: skip
    first, stop = share(team, ends.size // 2)
    sent = 0
    for i in range(first, stop):
        if interrupted(team, i):
            return
        begin, end = np.int64(indptr[lo + i]), np.int64(indptr[lo + i + 1])
        ends[2 * i] = none
        ends[2 * i + 1] = none
        if begin < end:
            ends[2 * i] = indices[begin]
            sent += 1
        if end - begin > 1:
            last = np.int64(indices[end - 1])
            ends[2 * i + 1] = last if end - begin == 2 else ~last
            sent += 1
    counts[team.rank * LINE] = sent


def no_vertex(kind: Any) -> int:
    """What stands for a neighbour that is not there; the other numbers below 0 are ~vertex."""
    return int(np.iinfo(kind).min)


def gather_ends(view: Any, lo: int, ends: Array, threads: int | None) -> int:
    """The two neighbours of the rows from `lo` on, and how many there are.

    The second is ~vertex where the row has more than these two.
    """
    team = crew(threads, work=2 * ends.size)
    counts = np.zeros(team.size * LINE, np.int64)
    none = ends.dtype.type(no_vertex(ends.dtype))
    team.run(_gather, view.indptr, view.indices, lo, none, ends, counts)
    return int(counts.sum())
