"""Is this the breadth-first search from these sources?  Decided without searching.

Four rules, each looked at for all arcs at once, in near-linear time:

1. just the sources have level 0, and they are their own parents;
2. no arc leads from a vertex of level l to one that is unreached or of a level above l + 1
   (so levels are not too large; with a limit, arcs out of the last level do not count);
3. the parent of every other vertex is of the level before and has an arc to it
   (so levels are not too small);
4. no smaller vertex of the level before has an arc to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.errors import CheckFailed


def check_bfs(
    A: Any,
    sources: Any,
    result: Any,
    *,
    depth_limit: int | None = None,
    directed: bool = True,
) -> None:
    """Raise `CheckFailed` unless `result` is what `bfs` promises.

    Parameters
    ----------
    A, sources, depth_limit, directed
        As given to `bfs`.
    result : BFS or (level, parent)

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(3)
    >>> matchwood.check.check_bfs(A, 0, matchwood.bfs(A, 0))
    >>> matchwood.check.check_bfs(A, 0, ([0, 1, 1], [0, 0, 0]))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: bfs: parent of 2 is 0, but there is no arc 0 -> 2
    """
    G = csr.as_graph(A, "check_bfs").on("cpu")
    view = G.directed_pattern() if directed else G.undirected_pattern()
    n = view.n
    level, parent = (np.asarray(engines.moved(x, "cpu"), np.int64) for x in tuple(result)[:2])
    if level.shape != (n,) or parent.shape != (n,):
        raise CheckFailed(f"bfs: level and parent must have {n} elements")
    limit = n if depth_limit is None else depth_limit
    start = np.unique(np.asarray(engines.moved(sources, "cpu"), np.int64))
    _check_ends(level, parent, start, limit)
    u = np.repeat(np.arange(n), np.diff(view.indptr))
    v = view.indices
    _check_levels(level, u, v, limit)
    _check_parents(level, parent, u, v)


def _check_ends(level: Any, parent: Any, start: Any, limit: int) -> None:
    zero = np.flatnonzero(level == 0)
    if not np.array_equal(zero, start):
        bad = int(np.setxor1d(zero, start)[0])
        what = "has level 0 but is no source" if bad in zero else "is a source, not of level 0"
        raise CheckFailed(f"bfs: vertex {bad} {what}")
    wrong = start[parent[start] != start]
    if wrong.size:
        raise CheckFailed(f"bfs: source {wrong[0]} is not its own parent")
    wrong = np.flatnonzero((level < -1) | (level > limit) | ((level < 0) != (parent < 0)))
    if wrong.size:
        i = int(wrong[0])
        raise CheckFailed(f"bfs: vertex {i} has level {level[i]} and parent {parent[i]}")


def _check_levels(level: Any, u: Any, v: Any, limit: int) -> None:
    live = (level[u] >= 0) & (level[u] < limit)
    wrong = np.flatnonzero(live & ((level[v] < 0) | (level[v] > level[u] + 1)))
    if wrong.size:
        i, j = int(u[wrong[0]]), int(v[wrong[0]])
        raise CheckFailed(f"bfs: arc {i} -> {j} leads from level {level[i]} to level {level[j]}")


def _check_parents(level: Any, parent: Any, u: Any, v: Any) -> None:
    n = level.size
    inner = np.flatnonzero(level > 0)
    wrong = inner[(parent[inner] >= n) | (level[parent[inner] % n] != level[inner] - 1)]
    if wrong.size:
        i = int(wrong[0])
        raise CheckFailed(f"bfs: parent {parent[i]} of {i} is not of the level before")
    # the smallest vertex of the level before with an arc to v, for every v
    feeds = (level[v] > 0) & (level[u] == level[v] - 1)
    least = np.full(n, n, np.int64)
    np.minimum.at(least, v[feeds], u[feeds])
    wrong = inner[parent[inner] < least[inner]]
    if wrong.size:
        i = int(wrong[0])
        raise CheckFailed(f"bfs: parent of {i} is {parent[i]}, but there is no arc "
                          f"{parent[i]} -> {i}")  # fmt: skip
    wrong = inner[parent[inner] > least[inner]]
    if wrong.size:
        i = int(wrong[0])
        raise CheckFailed(
            f"bfs: parent of {i} is {parent[i]}, but {least[i]} is smaller and as near"
        )
