"""What the host gathers for a device: the first two neighbours of each row.

They lie side by side, so that one line of the cache is read of most rows.  The first and the last
one join no more: on R-MAT, meshes, grids and random graphs both leave less than a thousandth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, interrupted, kernel, share

Array = np.ndarray[Any, Any]

LINE = 16  # words between the counters of two members, so that they share no cache line


@kernel
def _gather(team: Team, indptr: Array, indices: Array, lo: int, none: Any, two: Array,
            counts: Array) -> None:  # fmt: skip
    """Without branches: half would be mispredicted, which takes longer than reading the memory."""
    first, stop = share(team, two.size // 2)
    sent, last = np.int64(0), np.int64(indices.size) - 1
    for i in range(first, stop):
        if interrupted(team, i):
            return
        begin = np.int64(indptr[lo + i])
        degree = np.int64(indptr[lo + i + 1]) - begin
        one, other = indices[min(begin, last)], indices[min(begin + 1, last)]
        two[2 * i] = one if degree > 0 else none
        two[2 * i + 1] = none if degree < 2 else other if degree == 2 else ~other
        sent += min(degree, np.int64(2))
    counts[team.me * LINE] = sent


def no_vertex(kind: Any) -> int:
    """The number that stands for a missing neighbour; other numbers below 0 are ~vertex."""
    return int(np.iinfo(kind).min)


def gather_two(view: Any, lo: int, two: Array, team: Any) -> int:
    """Write two neighbours of each row from `lo` on, ~second if there are more; their number."""
    counts = np.zeros(team.size * LINE, np.int64)
    none = two.dtype.type(no_vertex(two.dtype))
    team.run(_gather, view.indptr, view.indices, lo, none, two, counts)
    return int(counts.sum())
