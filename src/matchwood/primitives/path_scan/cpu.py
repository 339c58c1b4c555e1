"""Path scans on a team.  What they are: __init__.py.

A link holds the direction too: links[2 v + side] is 2 w + (the side of w that leads on from v), or
~v where there is no neighbour.  So a walk need not find out which neighbour it came from.

Doubling: every member owns a range of vertices and two copies of the state take turns.
Splitters: cpu_splitters.py.

Cycles show up as vertices that never reach an end.  They are cut in the links, and the scan is run
again.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_min,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    share,
)
from matchwood.engines.cpu.hints import converted, natural

Array = np.ndarray[Any, Any]

_LINE = 16  # words of a member's counts, which share no cache line with another member's


@device
def add(a: Any, b: Any) -> Any:
    return a + b


@device
def minimum(a: Any, b: Any) -> Any:
    return a if a <= b else b


@device
def maximum(a: Any, b: Any) -> Any:
    return a if a >= b else b


@kernel
def _orient(team: Team, table: Array, links: Array, bad: Array) -> None:
    """Links from the table.  bad[0] becomes the smallest slot that breaks a rule."""
    n = links.size // 2
    lo, hi = share(team, n)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        one, other = np.int64(table[2 * v]), np.int64(table[2 * v + 1])
        for side in range(2):
            w = one if side == 0 else other
            link = np.int64(~v)
            if w != -1:
                if w < -1 or w >= n or w == v or one == other:
                    atomic_min(bad, 0, 2 * v + side)
                    return
                w = natural(w)
                if table[2 * w] == v:
                    link = 2 * w + 1
                elif table[2 * w + 1] == v:
                    link = 2 * w
                else:
                    atomic_min(bad, 0, 2 * v + side)
                    return
            links[2 * v + side] = link


@device
def _changed(tally: Array, turn: int) -> int:
    total = 0
    for rank in range(tally.shape[0]):
        total += tally[rank, turn]
    return total


def compiled(op: Any) -> Any:
    """The operation as kernels can call it.

    Kernels with one of the user's own are compiled again in each process: its code is not kept,
    since a change of it would not be noticed.
    """
    if isinstance(op, str):
        return {"add": add, "minimum": minimum, "maximum": maximum}[op]
    return op if isinstance(op, numba.core.dispatcher.Dispatcher) else device(op)


@functools.lru_cache(maxsize=64)
def doubling_with(op_of_user: Any) -> Any:
    """The kernel of doubling for an operation."""
    op = compiled(op_of_user)

    @kernel
    def _double(
        team: Team, links: Array, values: Array, until_still: bool, to: Array, total: Array,
        next_to: Array, next_total: Array, tally: Array, result: Array,
    ) -> None:  # fmt: skip
        """Algorithm 3.  Ends when the number of sides that have reached no end stops falling: the
        rest are cycles.  `until_still`: when no value on a cycle changes, for an idempotent `op`;
        then every window covers its cycle.  result: (which copy is last, sides left, rounds)."""
        n = values.size
        lo, hi = share(team, n)
        for v in range(natural(lo), hi):
            if interrupted(team, v):
                return
            for slot in range(2 * v, 2 * v + 2):
                to[slot] = links[slot]
                total[slot] = values[v]
        if barrier(team):
            return
        turn, left = 0, np.int64(-1)
        while True:
            count = 0
            for v in range(natural(lo), hi):
                if interrupted(team, v):
                    return
                for slot in range(natural(2 * v), 2 * v + 2):
                    ahead = np.int64(to[slot])
                    mine = total[slot]
                    if ahead >= 0:
                        ahead = natural(ahead)
                        combined = converted(op(mine, total[ahead]), mine)
                        ahead = np.int64(to[ahead])
                        if ahead >= 0:
                            count += 1 if not until_still or combined != mine else 0
                        mine = combined
                    next_to[slot] = ahead
                    next_total[slot] = mine
            tally[team.rank, turn % 3] = count
            if barrier(team):
                return
            turn += 1
            to, next_to = next_to, to
            total, next_total = next_total, total
            count = _changed(tally, (turn - 1) % 3)
            if count == 0 or (count == left and not until_still):
                left = count
                break
            left = count
        if team.rank == 0:
            result[0], result[1], result[2] = turn % 2, left, turn

    return _double


def run_doubling(
    links: Array, values: Array, op: Any, until_still: bool, threads: int | None
) -> tuple[Array, Array, Array]:
    """Where the sides have come to, their values, and (copy, sides left, rounds)."""
    n = values.size
    to, other_to = np.empty_like(links), np.empty_like(links)
    total, other_total = np.empty(2 * n, values.dtype), np.empty(2 * n, values.dtype)
    team = crew(threads, work=16 * n)
    result, tally = np.zeros(3, np.int64), np.zeros((team.size, _LINE), np.int64)
    team.run(
        doubling_with(op), links, values, until_still, to, total, other_to, other_total, tally,
        result,
    )  # fmt: skip
    return (other_to, other_total, result) if result[0] else (to, total, result)


def doubling(
    links: Array, values: Array, op: Any, threads: int | None
) -> tuple[Array, Array, Array]:
    """Ends and values of all sides, and the smallest vertices of cycles, if there are any."""
    n = values.size
    to, total, result = run_doubling(links, values, op, False, threads)
    if result[1] == 0:
        return ~to, total, np.empty(0, np.int64)
    on_cycle = (to >= 0).reshape(n, 2)[:, 0]
    names = np.arange(n, dtype=links.dtype)
    _, least, _ = run_doubling(links, names, "minimum", True, threads)
    return to, total, np.flatnonzero(on_cycle & (np.minimum(least[0::2], least[1::2]) == names))


def cut_links(links: Array, smallest: Array) -> Array:
    """The links without those between each of `smallest` and its larger neighbour."""
    links = links.copy()
    pairs = links.reshape(-1, 2)
    side = (pairs[smallest] >> 1).argmax(axis=1)
    there = pairs[smallest, side].astype(np.int64)  # 2 w + the side of w that leads on
    links[2 * smallest + side] = ~smallest
    links[there ^ 1] = ~(there >> 1)
    return links


def path_scan(
    table: Array, values: Array, op: Any, *, method: str, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """See matchwood.primitives.path_scan."""
    from matchwood.primitives.path_scan import fault  # not at the top: kernels depend on that
    from matchwood.primitives.path_scan.cpu_splitters import splitters

    n, kind = values.size, table.dtype
    links = np.empty(2 * n, np.int32 if n < 1 << 30 else np.int64)
    bad = np.full(1, np.iinfo(np.int64).max)
    flat = np.ascontiguousarray(table).reshape(-1)
    crew(threads, work=4 * n).run(_orient, flat, links, bad)
    if bad[0] < 2 * n:
        raise fault(table, int(bad[0]))
    run = doubling if method == "doubling" else splitters
    values = np.ascontiguousarray(values)
    ends, reduced, smallest = run(links, values, op, threads)
    cycle = np.zeros(n, bool)
    if smallest.size:
        ends, reduced, _ = run(cut_links(links, smallest), values, op, threads)
        cut = np.zeros(n, bool)
        cut[smallest] = True
        cycle = cut[np.minimum(ends[0::2], ends[1::2])]
    return ends.astype(kind, copy=False).reshape(n, 2), reduced.reshape(n, 2), cycle
