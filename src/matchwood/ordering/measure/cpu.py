"""Bandwidth, profile and wavefronts on a team.  Definitions: __init__.py.

A row at place j is active from its first column f(j) to j.  So wavefront(i) is the number of f(j)
up to i, less the i rows that ended before: one count and one scan.

Squares are added up exactly, the low 32 bits and the rest apart, so that the root is the same
number at any number of threads.

Vertices and places are unsigned in the kernels: Numba tests every signed index for its sign.
Races: members count in `begun` by atomic additions alone; all else that they write is their own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from matchwood.engines.cpu import atomic_add, barrier, crew, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]


@kernel
def _distances(
    team: Any, indptr: Array, indices: Array, place: Array, begun: Array, fronts: bool, sums: Array
) -> None:
    """Each member's largest distance and their sum; begun[i] = rows whose first column is i."""
    lo, hi = share_rows(team, indptr)
    moved = place.size > 0
    widest: Any = np.int64(0)
    total: Any = np.int64(0)
    for u in range(lo, hi):
        if interrupted(team, u):
            return
        at = np.int64(place[u]) if moved else u
        first = at
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            first = min(first, np.int64(place[v]) if moved else np.int64(v))
        widest = max(widest, at - first)
        total += at - first
        if fronts:
            atomic_add(begun, first, 1)
    sums[team.me, 0], sums[team.me, 1] = widest, total


@kernel
def _fronts(team: Any, begun: Array, sums: Array) -> None:
    """The largest wavefront of each member's share, and the sum of squares, low and high."""
    lo, hi = share(team, begun.size)
    total = np.int64(0)
    for i in range(lo, hi):
        total += begun[i]
    sums[team.me, 0] = total
    if barrier(team):
        return
    active = -np.int64(lo)  # rows that ended before lo
    for member in range(team.me):
        active += sums[member, 0]
    widest = low = high = np.int64(0)
    for i in range(lo, hi):
        active += begun[i]
        widest = max(widest, active)
        square = active * active
        low += square & 0xFFFFFFFF
        high += square >> 32
        active -= 1
    sums[team.me, 1], sums[team.me, 2], sums[team.me, 3] = widest, low, high


def measure(
    view: Any, place: Any, which: tuple[str, ...], *, threads: int | None = None
) -> dict[str, Any]:
    team = crew(threads, work=view.nnz + view.n)
    fronts = any(name.endswith("wavefront") for name in which)
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    begun = np.zeros(view.n if fronts else 0, np.int64)
    sums = np.zeros((team.size, 4), np.int64)
    at = np.empty(0, unsigned) if place is None else place.view(unsigned)
    team.run(_distances, view.indptr, view.indices.view(unsigned), at, begun, fronts, sums)
    answers: dict[str, Any] = {"bandwidth": int(sums[:, 0].max()), "profile": int(sums[:, 1].sum())}
    if fronts:
        team.run(_fronts, begun, sums)
        squares = sum(int(low) + (int(high) << 32) for low, high in sums[:, 2:])
        answers["max_wavefront"] = int(sums[:, 1].max())
        answers["rms_wavefront"] = math.sqrt(squares / view.n)
    return {name: answers[name] for name in which}
