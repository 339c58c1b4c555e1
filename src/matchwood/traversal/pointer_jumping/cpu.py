"""Roots of a forest on a team.  The rule and the paper: __init__.py.

`up` starts as the parents, where a root is its own.  A member goes up from each of its vertices to
the root, then goes the same way again and stores the root in every word that it passes.  So each
vertex is passed a few times at most, however long the ways are.

A cycle is noticed by Brent's rule: remember a vertex, and another one after 1, 2, 4, 8, ... steps;
a way that meets the remembered one again goes in circles.  All vertices on such a way get the word
n, which is no vertex, and a later way that reaches that word stops.

Races.  Members store the root of a vertex, or n where there is none, in words that others read.
Each value is right for the vertex, and the old value leads to the same end: what another member
reads changes the length of its way alone.

Vertices are unsigned in the kernel: Numba tests every signed index for its sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    atomic_min,
    barrier,
    crew,
    device,
    expect,
    interrupted,
    kernel,
    load_relaxed,
    share,
    stopping,
    store_relaxed,
)
from matchwood.traversal.pointer_jumping import has_cycle

Array = np.ndarray[Any, Any]

STEPS_PER_STOP = 1 << 16  # steps of a long way between two checks of the stop word


@device
def _end_of_way(team: Any, up: Array, v: Any) -> Any:
    """The root of v, or n where its way is a cycle or leads to one."""
    nowhere = up.dtype.type(up.size)
    at = remembered = v
    steps = 0
    until = 1
    while True:
        above = load_relaxed(up, at)
        if above in (at, nowhere):
            return above
        at = above
        if at == remembered:
            return nowhere
        steps += 1
        if steps == until:
            remembered = at
            until *= 2
        if steps % STEPS_PER_STOP == 0 and stopping(team):
            return nowhere


@device
def _store_on_way(team: Any, up: Array, v: Any, root: Any) -> None:
    nowhere = up.dtype.type(up.size)
    at = v
    steps = 0
    while True:
        above = load_relaxed(up, at)
        if above in (root, nowhere):
            return
        store_relaxed(up, at, root)
        at = above
        steps += 1
        if steps % STEPS_PER_STOP == 0 and stopping(team):
            return


@kernel
def _climb(team: Any, parent: Array, up: Array, lost: Array) -> None:
    """lost[0] is n before; the smallest vertex without a root afterwards."""
    n = up.size
    lo, hi = share(team, n)
    expect(team, n)
    for v in range(lo, hi):
        up[v] = v if parent[v] < 0 else parent[v]
    if barrier(team):
        return
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        me = up.dtype.type(v)
        above = load_relaxed(up, me)
        if above != n and load_relaxed(up, above) == above:
            continue
        root = _end_of_way(team, up, me)
        _store_on_way(team, up, me, root)
    if barrier(team):
        return
    for v in range(lo, hi):
        if up[v] == n:
            atomic_min(lost, 0, v)
            break
    advance(team, hi - lo)


def roots(parent: Array, *, threads: int | None = None) -> Array:
    """See matchwood.traversal.pointer_jumping.forest_roots."""
    n = parent.size
    up = np.empty(n, np.uint32 if parent.dtype == np.int32 else np.uint64)
    lost = np.full(1, n, np.int64)
    if n:
        crew(threads, work=2 * n).run(_climb, parent, up, lost)
    if lost[0] < n:
        raise has_cycle("forest_roots", int(lost[0]))
    return up.view(parent.dtype)
