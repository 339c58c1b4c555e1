"""The two starts and the sweeps on a team.  The rule: __init__.py.

Every pass reads one array and writes another, each member its own rows, with a barrier between
passes; so there are no races, and the result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Team,
    advance,
    barrier,
    crew,
    expect,
    interrupted,
    kernel,
    share_rows,
)

Array = np.ndarray[Any, Any]


@kernel
def _improve(
    team: Team, indptr: Array, indices: Array, weights: Array, mate: Array, sweeps: int,
    from_matching: bool, own: Array, y: Array, need: Array,
) -> None:  # fmt: skip
    """`own` becomes the weight of each vertex's edge in the matching; vertices are unsigned."""
    no_mate = ~mate.dtype.type(0)
    lo, hi = share_rows(team, indptr)
    lo, hi = np.uint64(lo), np.uint64(hi)
    expect(team, mate.size * sweeps)
    for v in range(lo, hi):
        heaviest, mine = 0.0, 0.0
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
            w = np.float64(weights[k])
            heaviest = max(heaviest, w)
            mine = w if indices[k] == mate[v] else mine
        own[v] = mine
        y[v] = mine if from_matching else heaviest / 2
        if interrupted(team, np.int64(v)):
            return
    if from_matching:
        if barrier(team):
            return
        for v in range(lo, hi):
            missing = 0.0
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
                missing = max(missing, np.float64(weights[k]) - y[v] - y[indices[k]])
            need[v] = missing / 2
            if interrupted(team, np.int64(v)):
                return
        if barrier(team):
            return
        for v in range(lo, hi):
            y[v] += need[v]
    for _ in range(sweeps):
        if barrier(team):
            return
        for v in range(lo, hi):
            needed = 0.0
            for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
                lack = np.float64(weights[k]) - y[indices[k]]
                needed = max(needed, 0.0 if indices[k] == mate[v] else lack)
            need[v] = needed
            if interrupted(team, np.int64(v)):
                return
        if barrier(team):
            return
        for v in range(lo, hi):
            new = need[v]
            if mate[v] != no_mate:
                new += max(0.0, own[v] - new - need[mate[v]]) / 2
            y[v] = (y[v] + new) / 2
        advance(team, np.int64(hi - lo))


def improve(
    view: Any, mate: Array, sweeps: int, from_matching: bool, threads: int | None = None
) -> Array:
    """A dual solution, from one of the starts."""
    unsigned = f"u{view.indices.dtype.itemsize}"
    own, y, need = np.empty(view.n), np.empty(view.n), np.empty(view.n)
    crew(threads, work=(sweeps + 2) * view.nnz).run(
        _improve, view.indptr.view(unsigned), view.indices.view(unsigned), view.data,
        mate.view(unsigned), sweeps, from_matching, own, y, need,
    )  # fmt: skip
    return y
