"""The work-efficient path scan on a team.  Links and cycles: cpu.py.

Sampled vertices ("nodes") cut long paths into stretches:

    walk_stretches   from each node, both ways, to the next node or end: the sum of the stretch
    rank             one member follows the short list of nodes from the ends of their paths
    distribute       from each node and end, both ways: all vertices of the stretch get the result
                     of what lies behind it

A stretch is walked from both sides, since its two results start from opposite ends.  No two walks
write the same word: the one from the left writes the left sides.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    Team,
    barrier,
    crew,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    store_relaxed,
)
from matchwood.engines.cpu.hints import converted, natural, prefetch
from matchwood.primitives.path_scan.cpu import compiled

Array = np.ndarray[Any, Any]

SPACING = 1024  # vertices per node, on average
CHUNK = 4096  # walks or vertices that a thread takes at a time
UNKNOWN = -(1 << 31)  # a slot of a node without a result; results are above -2^30, or need 64 bits
UNREACHED = -1  # in `ends`: no walk has come here
ON_CYCLE = -2  # in `ends`: the vertex is known to be on a cycle


@functools.lru_cache(maxsize=64)
def _with(op_of_user: Any) -> tuple[Any, Any, Any]:
    """The three kernels for an operation."""
    op = compiled(op_of_user)

    @kernel
    def _walk_stretches(
        team: Team, links: Array, values: Array, nodes: Array, number: Array, to: Array,
        total: Array, least: Array,
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
        team: Team, nodes: Array, to: Array, total: Array, least: Array, end: Array,
        behind: Array,
    ) -> None:  # fmt: skip
        """end[slot], behind[slot]: the end of the path on that side of a node, and all values up to
        it.  On a cycle `end` becomes ~(its smallest vertex)."""
        if team.rank > 0:
            return
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
        behind: Array, ends: Array, reduced: Array, smallest: Array,
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

    return _walk_stretches, _rank, _distribute


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
    walk_stretches, rank, distribute = _with(op)
    team = crew(threads, work=8 * n)
    if slots:
        team.run(walk_stretches, links, values, nodes, number, to, total, least)
        crew(1, work=4 * slots).run(rank, nodes, to, total, least, end, behind)
    ends, reduced = np.full(2 * n, UNREACHED, links.dtype), np.empty(2 * n, values.dtype)
    smallest = np.zeros(n, np.uint8)
    team.run(
        distribute, links, values, nodes, number, end, behind, ends, reduced, smallest
    )  # fmt: skip
    return ends, reduced, np.flatnonzero(smallest)
