"""Exclusive scan on a team: each member sums its share, then scans it behind the shares before.

Every member writes its own share of `offsets` and its own words of `sums`.  So no two members write
the same word and no atomics are needed; two barriers are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, barrier, crew, fail, kernel, share, stopping
from matchwood.primitives.scan import does_not_fit

BLOCK = 1 << 16  # elements between two checks of the stop word
_TOO_LARGE = 1  # code of the failure
_SUM, _LEAST, _LINE = 0, 1, 16  # words of a member in `sums`; 16 are two cache lines


@kernel
def _scan(team: Team, counts: Any, offsets: Any, limit: int, sums: Any) -> None:
    """offsets[i + 1] = counts[0] + ... + counts[i]; sums beyond `limit` (and below ~limit) fail."""
    lo, hi = share(team, counts.size)
    total = np.int64(0)
    least = np.int64(0)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        block = counts[start : min(start + BLOCK, hi)]
        for i in range(block.size):
            total += block[i]
            least = min(least, np.int64(block[i]))
    sums[team.me, _SUM] = total
    sums[team.me, _LEAST] = least
    if barrier(team):
        return
    running = np.int64(0)
    whole = np.int64(0)
    least = np.int64(0)
    for me in range(team.size):
        if me < team.me:
            running += sums[me, _SUM]
        whole += sums[me, _SUM]
        least = min(least, sums[me, _LEAST])
    if least == 0 and whole > limit:  # nothing negative: the last sum is the largest
        fail(team, _TOO_LARGE, 0)
        return
    if team.me == 0:
        offsets[0] = 0
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        stop = min(start + BLOCK, hi)
        block, ends = counts[start:stop], offsets[start + 1 : stop + 1]
        if least == 0:
            for i in range(block.size):
                running += block[i]
                ends[i] = running
        else:
            worst = np.int64(0)
            for i in range(block.size):
                running += block[i]
                worst = max(worst, running, ~running)  # ~x = -x - 1, for the limit below
                ends[i] = running
            if worst > limit:
                fail(team, _TOO_LARGE, 0)
                return


def exclusive_scan(
    counts: np.ndarray[Any, Any], *, threads: int | None = None, dtype: Any = None
) -> np.ndarray[Any, Any]:
    counts = np.ascontiguousarray(counts)
    offsets = np.empty(counts.size + 1, counts.dtype if dtype is None else dtype)
    team = crew(threads, work=counts.size)
    sums = np.empty((team.size, _LINE), np.int64)
    limit = int(np.iinfo(offsets.dtype).max)
    errors = {_TOO_LARGE: lambda detail: does_not_fit(offsets.dtype)}
    team.run(_scan, counts, offsets, limit, sums, errors=errors)
    return offsets
