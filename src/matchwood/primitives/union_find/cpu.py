"""Union-find on a team: the device functions `find`, `link`, `compress`, and the host function.

A kernel that joins sets:

    for each edge (u, v) of mine:
        link(parent, u, v)
    if barrier(team): return
    compress(parent, lo, hi)        # each member its share of the vertices: parent[v] = root

`parent` starts as 0, 1, 2, ...  Invariant: parent[v] <= v, with equality at roots only.

Races, all by relaxed atomics, none of which can break the invariant or lose a join:
- `find` reads parents that others change.  What it reads is an ancestor of v, then or earlier, and
  an ancestor once is an ancestor for ever: a parent is only ever replaced by an ancestor.
- `find` halves paths by a store that another member's store or hook may cross.  Only vertices that
  are not roots are stored to, a vertex that is not a root never becomes one again, and every
  value stored is an ancestor.  A crossing store can put back an older, larger ancestor: a longer
  path, not a wrong one.
- `link` hooks by compare-and-swap on the root's own word, from itself to a smaller vertex.  It
  succeeds only while the root is still a root, so no hook overwrites another.
- `compress` runs after a barrier, when there are no more hooks; roots no longer change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_cas,
    barrier,
    crew,
    device,
    fail,
    kernel,
    load_relaxed,
    share,
    stopping,
    store_relaxed,
)
from matchwood.primitives.union_find import end_out_of_range

BLOCK = 1 << 14  # edges between two checks of the stop word
_OUT_OF_RANGE = 1  # code of the failure


@device
def find(parent: Any, v: Any) -> Any:
    """The root of v's tree; halves the path on the way."""
    above = load_relaxed(parent, v)
    grandparent = load_relaxed(parent, above)
    while above != grandparent:
        store_relaxed(parent, v, grandparent)
        v = grandparent
        above = load_relaxed(parent, v)
        grandparent = load_relaxed(parent, above)
    return above


@device
def link(parent: Any, u: Any, v: Any) -> bool:
    """Join the sets of u and v: the larger root is hooked under the smaller.

    True when this call joined them, False when they were one set already.  Over all members, each
    join is counted once, so the number of sets is n minus the number of True.
    """
    a, b = find(parent, u), find(parent, v)
    while a != b:
        high, low = max(a, b), min(a, b)
        if atomic_cas(parent, high, high, low) == high:
            return True
        a, b = find(parent, high), find(parent, low)
    return False


@device
def compress(parent: Any, lo: int, hi: int) -> None:
    """Make parent[v] the root of v for v in lo..hi; no links may run at the same time."""
    for v in range(lo, hi):
        root = load_relaxed(parent, v)
        above = load_relaxed(parent, root)
        if above == root:  # most are below their root: one branch, and an unneeded store would
            continue  # take the cache line from other members
        while above != root:
            root = above
            above = load_relaxed(parent, root)
        store_relaxed(parent, v, root)


@device
def _outside(u: Any, v: Any, n: int) -> bool:
    """Whether an edge has an end that is not in 0 .. n - 1."""
    outside = False
    for k in range(u.size):
        outside |= min(u[k], v[k]) < 0 or max(u[k], v[k]) >= n
    return outside


@kernel
def _join(team: Team, n: int, u: Any, v: Any, parent: Any) -> None:
    lo, hi = share(team, n)
    for i in range(lo, hi):
        parent[i] = i
    first, last = share(team, u.size)
    if _outside(u[first:last], v[first:last], n):
        fail(team, _OUT_OF_RANGE, 0)
    if barrier(team):
        return
    for start in range(first, last, BLOCK):
        if stopping(team):
            return
        us, vs = u[start : min(start + BLOCK, last)], v[start : min(start + BLOCK, last)]
        for k in range(us.size):
            link(parent, us[k], vs[k])
    if barrier(team):
        return
    compress(parent, lo, hi)


def union_find(
    n: int, u: np.ndarray[Any, Any], v: np.ndarray[Any, Any], *, threads: int | None = None
) -> np.ndarray[Any, Any]:
    u, v = np.ascontiguousarray(u), np.ascontiguousarray(v)
    parent = np.empty(n, u.dtype)

    def first_outside(_: int) -> ValueError:
        outside = (np.minimum(u, v) < 0) | (np.maximum(u, v) >= n)
        return end_out_of_range(n, int(outside.argmax()))

    team = crew(threads, work=n + u.size)
    team.run(_join, n, u, v, parent, errors={_OUT_OF_RANGE: first_outside})
    return parent
