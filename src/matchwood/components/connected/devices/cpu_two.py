"""The first two neighbours of each row, gathered on the host for a device.

They lie side by side, so that one line of the cache is read of most rows.  The first and the last
one join no more: on R-MAT, meshes, grids and random graphs both leave less than a thousandth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import Team, crew, interrupted, kernel, share

Array = np.ndarray[Any, Any]

LINE = 16  # words between the counters of two members, so that they share no cache line


@kernel
def _gather(team: Team, indptr: Array, indices: Array, lo: int, none: Any, two: Array,
            counts: Array) -> None:  # fmt: skip
    first, stop = share(team, two.size // 2)
    sent = 0
    for i in range(first, stop):
        if interrupted(team, i):
            return
        begin, end = np.int64(indptr[lo + i]), np.int64(indptr[lo + i + 1])
        two[2 * i] = none
        two[2 * i + 1] = none
        if begin < end:
            two[2 * i] = indices[begin]
            sent += 1
        if end - begin > 1:
            second = np.int64(indices[begin + 1])
            two[2 * i + 1] = second if end - begin == 2 else ~second
            sent += 1
    counts[team.rank * LINE] = sent


def no_vertex(kind: Any) -> int:
    """What stands for a neighbour that is not there; the other numbers below 0 are ~vertex."""
    return int(np.iinfo(kind).min)


def gather_two(view: Any, lo: int, two: Array, threads: int | None) -> int:
    """The two neighbours of the rows from `lo` on, and how many there are.

    The second is ~vertex where the row has more than these two.
    """
    team = crew(threads, work=2 * two.size)
    counts = np.zeros(team.size * LINE, np.int64)
    none = two.dtype.type(no_vertex(two.dtype))
    team.run(_gather, view.indptr, view.indices, lo, none, two, counts)
    return int(counts.sum())
