"""Where entries go: one pass of arithmetic over a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel, share

Array = np.ndarray[Any, Any]


@kernel
def _routes(
    team: Any, grid: Any, u: Array, v: Array, to: Array, rows: Array, columns: Array
) -> None:
    """The rank that keeps (u, v), and the positions there; see dist.grid."""
    R, C = np.uint64(grid.R), np.uint64(grid.C)
    p = R * C
    lo, hi = share(team, u.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        place = np.uint64(u[k]) // p
        stripe = np.uint64(u[k]) - place * p
        row = stripe // C
        rows[k] = place * C + (stripe - row * C)
        place = np.uint64(v[k]) // p
        stripe = np.uint64(v[k]) - place * p
        above = stripe // C
        columns[k] = place * R + above
        to[k] = row * C + (stripe - above * C)


def routes(
    grid: Any, u: Array, v: Array, out: tuple[Array, Array, Array], threads: int | None
) -> None:
    """Rank, row position and column position of every entry, into the arrays of `out`."""
    crew(threads, work=u.size).run(_routes, grid, u, v, *out)


@kernel
def _tally(team: Any, to: Array, counts: Array) -> None:
    mine = counts[team.rank]
    lo, hi = share(team, to.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        mine[to[k]] += 1


def tally(to: Array, ranks: int, threads: int | None) -> Array:
    """How many entries go to each rank."""
    team = crew(threads, work=to.size)
    counts = np.zeros((team.size, ranks), np.int64)
    team.run(_tally, to, counts)
    return counts.sum(axis=0)
