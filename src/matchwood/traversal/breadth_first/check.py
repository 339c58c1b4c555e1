"""Is this the breadth-first search from these sources?  Decided without searching.

Four rules, each checked for all arcs at once, in linear time:

1. the sources alone have level 0, and they are their own parents; what is not reached has level
   and parent -1;
2. no arc leads from a vertex of level l to one that is unreached or of a level above l + 1
   (so levels are not too large; with a limit, arcs out of the last level do not count);
3. the parent of every other vertex is of the level before and has an arc to it
   (so levels are not too small);
4. no smaller vertex of the level before has an arc to it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import answers, arguments, calls, engines
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
        Arrays or lists of integers.  Of a `BFS` the number of rounds is checked as well.  With a
        DistributedGraph they are DistributedVectors, and all ranks raise the same error.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError
        If it cannot be an answer: level or parent do not hold integers.

    Notes
    -----
    Runs where `A` lives; arrays of the answer that live elsewhere are moved there.  Two passes over
    every arc, and memory for a few arrays of n.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(3)
    >>> matchwood.check.check_bfs(A, 0, matchwood.bfs(A, 0))
    >>> matchwood.check.check_bfs(A, 0, ([0, 1, 1], [0, 0, 0]))
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: bfs: parent of 2 is 0, but there is no arc 0 -> 2
    """
    caller = "check_bfs"
    calls.agreed(A, lambda: arguments.flag(caller, "directed", directed))
    call = calls.enter(A, caller)
    if call.engine == "ranks":
        call.load_check(__package__).check_search(
            A, sources, result, functools.partial(_unpacked, caller), depth_limit, directed
        )
        return
    G = call.graph
    n = G.n
    start = _sources(caller, sources, n, G.engine)
    limit = n if depth_limit is None else arguments.count(caller, "depth_limit", depth_limit)
    level, parent = (
        answers.integers(caller, "bfs", name, value, (n,), G.engine)
        for name, value in zip(("level", "parent"), _unpacked(caller, result), strict=True)
    )
    _check_ends(level, parent, start, min(limit, n))
    view = G.directed_pattern() if directed else G.undirected_pattern()
    _check_arcs(view, level, parent, min(limit, n))
    if hasattr(result, "rounds"):
        rounds = answers.whole(caller, "rounds", result.rounds)
        last = max(0, int(level.max())) if n else 0
        if rounds != last:
            raise CheckFailed(f"bfs: rounds is {rounds}, but the largest level is {last}")


def is_bfs(
    A: Any,
    sources: Any,
    result: Any,
    *,
    depth_limit: int | None = None,
    directed: bool = True,
) -> bool:
    """Whether `result` is what `bfs` promises; `check_bfs` says where it is not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.traversal import is_bfs
    >>> A = matchwood.generators.path(3)
    >>> is_bfs(A, 1, ([1, 0, 1], [1, 1, 1])), is_bfs(A, 0, ([1, 0, 1], [1, 1, 1]))
    (True, False)
    """
    return answers.holds(check_bfs, A, sources, result, depth_limit=depth_limit, directed=directed)


def _sources(caller: str, sources: Any, n: int, place: str) -> Any:
    """Marks at the sources."""
    given = np.atleast_1d(np.asarray(engines.moved(sources, "cpu")))
    if given.size == 0:
        given = np.empty(0, np.int64)
    given = arguments.integers(caller, "sources", given, low=0, high=n - 1)
    marks = np.zeros(n, bool)
    marks[given] = True
    return engines.moved(marks, place)


def _unpacked(caller: str, result: Any) -> tuple[Any, Any]:
    if hasattr(result, "level") and hasattr(result, "parent"):
        return result.level, result.parent
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        kind = type(result).__name__
        raise TypeError(f"{caller}: result must be a BFS or (level, parent), got {kind}")
    return result[0], result[1]


def _check_ends(level: Any, parent: Any, start: Any, limit: int) -> None:
    xp = answers.module(level)
    at = answers.first((level == 0) != start)
    if at is not None:
        what = "is a source, not of level 0" if start[at] else "has level 0 but is no source"
        raise CheckFailed(f"bfs: vertex {at} {what}")
    at = answers.first(start & (parent != xp.arange(level.size)))
    if at is not None:
        raise CheckFailed(f"bfs: source {at} is not its own parent")
    lost = (level == -1) & (parent == -1)
    at = answers.first(~lost & ((level < 0) | (level > limit) | (parent < 0)))
    if at is not None:
        raise CheckFailed(f"bfs: vertex {at} has level {level[at]} and parent {parent[at]}")


def _check_arcs(view: Any, level: Any, parent: Any, limit: int) -> None:
    """Check rules 2 to 4; a fault of the levels is raised before one of the parents."""
    n = view.n
    xp = answers.module(level)
    joined = xp.zeros(n, bool)  # has an arc from its parent
    smaller = None
    for _, u, v in answers.arcs(view):
        here, there, chosen = level[u], level[v], parent[v]
        at = answers.first((here >= 0) & (here < limit) & ((there < 0) | (there > here + 1)))
        if at is not None:
            raise CheckFailed(
                f"bfs: arc {u[at]} -> {v[at]} leads from level {here[at]} to level {there[at]}"
            )
        joined[v[u == chosen]] = True
        if smaller is None:
            at = answers.first((there > 0) & (here == there - 1) & (u < chosen))
            smaller = None if at is None else (int(v[at]), int(chosen[at]), int(u[at]))
    inner = level > 0
    before = level[xp.where(inner & (parent < n), parent, 0)] if n else level
    at = answers.first(inner & ((parent >= n) | (before != level - 1)))
    if at is not None:
        raise CheckFailed(f"bfs: parent {parent[at]} of {at} is not of the level before")
    if smaller is not None:
        i, chosen, other = smaller
        raise CheckFailed(f"bfs: parent of {i} is {chosen}, but {other} is smaller and as near")
    at = answers.first(inner & ~joined)
    if at is not None:
        raise CheckFailed(
            f"bfs: parent of {at} is {parent[at]}, but there is no arc {parent[at]} -> {at}"
        )
