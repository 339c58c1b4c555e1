"""The steps of a partition, as kernels on the CPU.  The idea: __init__.py.  Races: union_find."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, barrier, device, interrupted, kernel, share
from matchwood.primitives.union_find.cpu import compress, link

Array = np.ndarray[Any, Any]

SAMPLES = 1024  # vertices whose component is read


@kernel
def join_forest(team: Team, other: Array, parent: Array) -> None:
    """Join each vertex with its parent in the forest of another partition."""
    lo, hi = share(team, parent.size)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        if other[v] != v:
            link(parent, parent.dtype.type(v), other[v])


@kernel
def join_two(team: Team, base: int, none: Any, ends: Array, more: Array, parent: Array) -> None:
    """Join base + i with its two neighbours, as cpu_two.py gathers them.

    more[i] becomes 1 where the row has more than these.
    """
    lo, hi = share(team, ends.size // 2)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        u = parent.dtype.type(base + i)
        first, last = ends[2 * i], ends[2 * i + 1]
        if first >= 0:
            link(parent, u, first)
        more[i] = last < 0 and last != none
        if more[i]:
            last = ~last
        if last >= 0:
            link(parent, u, last)


@kernel
def join_rows(
    team: Team, ids: Array, base: int, offsets: Array, first: int, last: int, columns: Array,
    parent: Array,
) -> None:  # fmt: skip
    """Join the rows of a buffer: of ids, or of base, base + 1, ... where there are none."""
    lo, hi = share(team, offsets.size - 1)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        begin = max(np.int64(offsets[i]), np.int64(first)) - first
        end = min(np.int64(offsets[i + 1]), np.int64(last)) - first
        u = ids[i] if ids.size else parent.dtype.type(base + i)
        for k in range(begin, end):
            link(parent, u, columns[k])


@kernel
def flatten(team: Team, parent: Array) -> None:
    """Every vertex directly under its root."""
    lo, hi = share(team, parent.size)
    compress(parent, lo, hi)
    if barrier(team):
        return


@device
def _step(n: int) -> int:
    return max(1, n // SAMPLES)


@kernel
def most_frequent(team: Team, parent: Array, found: Array) -> None:
    """found[0] = the root that most of a sample have, by a vote in one pass.  One member works.

    A wrong guess costs traffic only.
    """
    if team.rank > 0:
        return
    champion, votes = parent[0], 0
    for i in range(0, parent.size, _step(parent.size)):
        if votes == 0:
            champion = parent[i]
        votes += 1 if parent[i] == champion else -1
    found[0] = champion
