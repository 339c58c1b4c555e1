"""Path scans on a team.  What they are: __init__.py.

A link holds the direction too: links[2 v + side] is 2 w + (the side of w that leads on from v), or
~v where there is no neighbour.  So a walk need not find out which neighbour it came from.

Doubling: every member owns a range of vertices and two copies of the state take turns.
Splitters: walks between sampled vertices, further below.

Cycles show up as vertices that never reach an end.  They are cut in the links, and the scan is run
again.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Team,
    atomic_min,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
)
from matchwood.engines.cpu.compiled import is_compiled
from matchwood.engines.cpu.hints import converted, natural, prefetch
from matchwood.primitives.path_scan import fault

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


@functools.lru_cache(maxsize=64)
def _compiled(op: Any) -> Any:
    """The operation as kernels can call it.

    Kernels with one of the user's own are compiled again in each process: its code is not kept,
    since a change of it would not be noticed.
    """
    if isinstance(op, str):
        return {"add": add, "minimum": minimum, "maximum": maximum}[op]
    return op if is_compiled(op) else device(op)


@kernel
def _double(
    team: Team, links: Array, values: Array, until_still: bool, to: Array, total: Array,
    next_to: Array, next_total: Array, tally: Array, result: Array, op: Any,
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
        tally[team.me, turn % 3] = count
        if barrier(team):
            return
        turn += 1
        to, next_to = next_to, to
        total, next_total = next_total, total
        count = 0
        for member in range(team.size):
            count += tally[member, (turn - 1) % 3]
        if count == 0 or (count == left and not until_still):
            left = count
            break
        left = count
    if team.me == 0:
        result[0], result[1], result[2] = turn % 2, left, turn


def _run_doubling(
    links: Array, values: Array, op: Any, until_still: bool, threads: int | None
) -> tuple[Array, Array, Array]:
    """The slots that the sides have reached, their values, and (copy, sides left, rounds)."""
    n = values.size
    to, other_to = np.empty_like(links), np.empty_like(links)
    total, other_total = np.empty(2 * n, values.dtype), np.empty(2 * n, values.dtype)
    team = crew(threads, work=16 * n)
    result, tally = np.zeros(3, np.int64), np.zeros((team.size, _LINE), np.int64)
    team.run(
        _double, links, values, until_still, to, total, other_to, other_total, tally, result,
        _compiled(op),
    )  # fmt: skip
    return (other_to, other_total, result) if result[0] else (to, total, result)


def doubling(
    links: Array, values: Array, op: Any, threads: int | None
) -> tuple[Array, Array, Array]:
    """Ends and values of all sides, and the smallest vertices of cycles, if there are any."""
    n = values.size
    to, total, result = _run_doubling(links, values, op, False, threads)
    if result[1] == 0:
        return ~to, total, np.empty(0, np.int64)
    on_cycle = (to >= 0).reshape(n, 2)[:, 0]
    names = np.arange(n, dtype=links.dtype)
    _, least, _ = _run_doubling(links, names, "minimum", True, threads)
    return to, total, np.flatnonzero(on_cycle & (np.minimum(least[0::2], least[1::2]) == names))


# Splitters, the work-efficient scan.  Sampled vertices ("nodes") cut long paths into stretches:
#
#     walk_stretches   from each node, both ways, to the next node or end: the sum of the stretch
#     rank             one member follows the short list of nodes from the ends of their paths
#     distribute       from each node and end, both ways: all vertices of the stretch get the result
#                      of what lies behind it
#
# A stretch is walked from both sides, since its two results start from opposite ends.  No two walks
# write the same word: the one from the left writes the left sides.  The walks of linear forests
# leave marks instead (forests/cpu/splitters.py), from which positions follow, but no other scan.
# To order the vertices by them and to scan in that order took 1.5 times as long for a path in order
# and 2.4 times for pairs (1 million vertices, bench/primitives/path_scan.py).

SPACING = 1024  # vertices per node, on average
CHUNK = 4096  # walks or vertices that a thread takes at a time
UNKNOWN = -(1 << 31)  # a slot of a node without a result; results are above -2^30, or need 64 bits
UNREACHED = -1  # in `ends`: no walk has reached the vertex
ON_CYCLE = -2  # in `ends`: the vertex is known to be on a cycle


@kernel
def _walk_stretches(
    team: Team, links: Array, values: Array, nodes: Array, number: Array, to: Array,
    total: Array, least: Array, op: Any,
) -> None:  # fmt: skip
    """to[slot]: the slot at which the next node is entered, or ~end; total[slot]: the values
    on the way there, that of the node or end included; least[slot]: their smallest vertex."""
    chunk = next_chunk(team, to.size, 8)
    while chunk >= 0:
        for slot in range(natural(chunk), min(chunk + 8, to.size)):
            at = natural(np.int64(links[2 * natural(np.int64(nodes[slot // 2])) + slot % 2]))
            v = natural(at >> 1)
            mine, smallest, steps = values[v], v, 0
            while True:
                steps += 1
                if interrupted(team, steps):
                    return
                node, ahead = np.int64(number[v]), np.int64(links[at])
                if node >= 0:
                    to[slot] = 2 * node + (1 - (at & 1))
                    break
                if ahead < 0:
                    to[slot] = ahead
                    break
                at = natural(ahead)
                v = natural(at >> 1)
                mine = converted(op(mine, values[v]), mine)
                smallest = min(smallest, v)
            total[slot] = mine
            least[slot] = smallest
        chunk = next_chunk(team, to.size, 8)


@kernel
def _rank(
    team: Team, nodes: Array, to: Array, total: Array, least: Array, end: Array, behind: Array,
    op: Any,
) -> None:  # fmt: skip
    """end[slot], behind[slot]: the end of the path on that side of a node, and all values up to
    it.  On a cycle `end` becomes ~(its smallest vertex)."""
    for k in range(to.size):
        end[k] = UNKNOWN
    for first in range(to.size):
        if interrupted(team, first):
            return
        if to[first] >= 0:
            continue
        last, value = ~to[first], total[first]
        slot: Any = np.int64(first)
        while True:
            end[slot], behind[slot] = last, value
            slot = np.int64(to[natural(slot ^ 1)])  # the next node's slot that leads here
            if slot < 0:
                break
            slot = natural(slot)
            value = converted(op(total[slot], value), value)
    for first in range(to.size):
        if end[first] != UNKNOWN:
            continue
        smallest: Any = np.int64(nodes[first // 2])
        slot = np.int64(first)
        while True:
            smallest = min(smallest, np.int64(least[natural(slot)]))
            slot = np.int64(to[natural(slot)]) ^ 1
            if slot == first:
                break
        while True:
            end[slot] = end[slot ^ 1] = ~smallest
            slot = np.int64(to[natural(slot)]) ^ 1
            if slot == first:
                break


@kernel
def _distribute(
    team: Team, links: Array, values: Array, nodes: Array, number: Array, end: Array,
    behind: Array, ends: Array, reduced: Array, smallest: Array, op: Any,
) -> None:  # fmt: skip
    n = values.size
    slots = 2 * nodes.size
    all_walks = slots + n
    chunk = next_chunk(team, all_walks, CHUNK)
    while chunk >= 0:
        for walk in range(natural(chunk), min(chunk + CHUNK, all_walks)):
            if walk < slots:  # leave through `walk`, with what is behind on the other side
                v = natural(np.int64(nodes[walk // 2]))
                mine, last, side = values[v], np.int64(end[walk ^ 1]), walk % 2
                if last < 0:  # a cycle
                    if ~last == v or walk % 2 == 0:
                        store_relaxed(smallest, ~last, np.uint8(1))
                    ends[2 * v + side] = ON_CYCLE
                    continue
                mine = converted(op(mine, behind[walk ^ 1]), mine)
                ends[2 * v + 1 - side], reduced[2 * v + 1 - side] = last, mine
            else:
                v = natural(walk - slots)
                one, other = links[2 * v], links[2 * v + 1]
                if one >= 0 and other >= 0:
                    continue
                mine, last = values[v], np.int64(v)
                side = 0 if one >= 0 else 1  # the one that leads on
                ends[2 * v + 1 - side], reduced[2 * v + 1 - side] = last, mine
                if one < 0 and other < 0:
                    ends[2 * v + side], reduced[2 * v + side] = last, mine
                    continue
            at, steps = np.int64(links[2 * v + side]), 0
            while at >= 0:
                steps += 1
                if interrupted(team, steps):
                    return
                at = natural(at)
                v = natural(at >> 1)
                ahead = np.int64(links[at])
                prefetch(values, ahead >> 1)
                if number[v] >= 0:
                    break
                mine = converted(op(values[v], mine), mine)
                back = natural(at ^ 1)
                ends[back], reduced[back] = last, mine
                at = ahead
        chunk = next_chunk(team, all_walks, CHUNK)
    if barrier(team):
        return
    # What no walk has reached are cycles.  One member or several walk round each of them.
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(natural(chunk), min(chunk + CHUNK, n)):
            if load_relaxed(ends, 2 * v) != UNREACHED or number[v] >= 0:
                continue
            least, at, steps, with_node = np.int64(v), np.int64(links[2 * v]), 0, False
            while True:
                steps += 1
                if interrupted(team, steps):
                    return
                at = natural(at)
                w = natural(at >> 1)
                if number[w] >= 0:  # a cycle with a node was seen by `_rank`
                    with_node = True
                    break
                store_relaxed(ends, 2 * w, ends.dtype.type(ON_CYCLE))
                if w == v:
                    break
                least = min(least, w)
                at = np.int64(links[at])
            if not with_node:
                store_relaxed(smallest, least, np.uint8(1))
        chunk = next_chunk(team, n, CHUNK)


def splitters(
    links: Array, values: Array, op: Any, threads: int | None
) -> tuple[Array, Array, Array]:
    """Ends and values of all sides, and the smallest vertices of cycles, if there are any."""
    n = values.size
    nodes = np.unique(np.random.default_rng(0).integers(0, max(n, 1), n // SPACING))
    nodes = nodes[(links.reshape(n, 2)[nodes] >= 0).all(axis=1)].astype(links.dtype)
    number = np.full(n, -1, links.dtype)
    number[nodes] = np.arange(nodes.size)
    slots = 2 * nodes.size
    to, least, end = (np.empty(slots, links.dtype) for _ in range(3))
    total, behind = np.empty(slots, values.dtype), np.empty(slots, values.dtype)
    op = _compiled(op)
    team = crew(threads, work=8 * n)
    if slots:
        team.run(_walk_stretches, links, values, nodes, number, to, total, least, op)
        crew(1, work=4 * slots).run(_rank, nodes, to, total, least, end, behind, op)
    ends, reduced = np.full(2 * n, UNREACHED, links.dtype), np.empty(2 * n, values.dtype)
    smallest = np.zeros(n, np.uint8)
    team.run(_distribute, links, values, nodes, number, end, behind, ends, reduced, smallest, op)
    return ends, reduced, np.flatnonzero(smallest)


def _cut_links(links: Array, smallest: Array) -> Array:
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
        ends, reduced, _ = run(_cut_links(links, smallest), values, op, threads)
        cut = np.zeros(n, bool)
        cut[smallest] = True
        cycle = cut[np.minimum(ends[0::2], ends[1::2])]
    return ends.astype(kind, copy=False).reshape(n, 2), reduced.reshape(n, 2), cycle
