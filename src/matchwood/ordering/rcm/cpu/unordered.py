"""The unordered method: a breadth-first search finds the levels, then each has its own thread.

The sizes of the levels say where each begins in the order.  Member k takes levels k, k + size,
k + 2 size, ...: it reads the vertices of its level as soon as they are placed and places their
children, which are the next level, read by the next member in turn.

`placed[l]` says how far level l is filled.  Its one writer publishes it with release after the
children of a parent, its one reader reads it with acquire, so what is read was written before.  A
vertex of level l + 1 is marked only by the member of level l.  No deadlock: the member of the first
level that is not finished has finished all its earlier ones, and its input is complete.

K. I. Karantasis, A. Lenharth, D. Nguyen, M. J. Garzarán, K. Pingali. Parallelization of reordering
algorithms for bandwidth and wavefront reduction. SC 2014. doi:10.1109/SC.2014.80
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    advance,
    back_off,
    fail,
    kernel,
    load_acquire,
    stopping,
    store_release,
)
from matchwood.ordering.rcm.cpu.children import (
    BROKEN,
    FACT,
    FREE,
    ONE,
    PLACED,
    WHOLE,
    Csr,
    Sorter,
    delay,
    own_sorter,
    sort_children,
)
from matchwood.primitives.patterns import not_symmetric
from matchwood.traversal import bfs

Array = np.ndarray[Any, Any]

_LINE = 16  # words between those of two levels in `placed`, which different members read


@kernel
def order_unordered(
    team: Any, csr: Csr, level: Array, mark: Array, queue: Array, bounds: Array, placed: Array,
    sorters: Sorter, delays: Array,
) -> None:  # fmt: skip
    """Place all levels; bounds[l] to bounds[l + 1] are the places of level l."""
    rank = team.rank
    indptr, indices = csr.indptr, csr.indices
    sorter = own_sorter(sorters, rank)
    one = indices.dtype.type(1)
    for mine in range(rank, bounds.size - 2, team.size):
        below = level.dtype.type(mine + 1)
        known = np.uint64(bounds[mine])
        tail = np.uint64(bounds[mine + 1])
        for i in range(np.uint64(bounds[mine]), np.uint64(bounds[mine + 1])):
            checks = 0
            while i >= known:
                known = np.uint64(load_acquire(placed, mine * _LINE))
                if i >= known:
                    if stopping(team):
                        return
                    checks = back_off(checks)
            if i & np.uint64(4095) == np.uint64(0) and stopping(team):
                return
            u = queue[i]
            head = tail
            for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + one])):
                v = indices[k]
                if level[v] == below and mark[v] == FREE:
                    mark[v] = PLACED
                    queue[tail] = v
                    tail += ONE
            sort_children(indptr, queue, head, tail - head, sorter)
            delay(team, delays)
            if tail > head:
                store_release(placed, (mine + 1) * _LINE, np.int64(tail))
        if tail != np.uint64(bounds[mine + 2]):  # the others would wait for the missing ones
            fail(team, BROKEN, np.int64(mine))
            return
        advance(team, bounds[mine + 1] - bounds[mine])


def order(run: Any, start: int, queue: Array, at: int, limit: int) -> None:
    level = bfs(run.graph, start, directed=False, engine="cpu", threads=run.team.size).level
    sizes = np.bincount(level[level >= 0])
    bounds = np.concatenate(([at], at + np.cumsum(sizes), [0]))[: sizes.size + 1]
    bounds = np.append(bounds, bounds[-1])  # an empty level behind the last
    if bounds[-1] > run.n:
        raise not_symmetric(run.caller)
    queue[at] = start
    run.mark[start] = PLACED
    placed = np.repeat(bounds[:-1], _LINE)
    placed[0] = at + 1
    run.team.run(
        order_unordered, run.csr, level, run.mark, queue, bounds, placed,
        run.sorters(run.team.size), run.delays, errors=run.errors,
    )  # fmt: skip
    pairs = np.append(sizes, 0) + np.append(sizes[1:], (0, 0))
    run.facts[FACT.end], run.facts[FACT.levels] = bounds[-1], sizes.size
    run.facts[FACT.width], run.facts[FACT.last] = pairs.max(), bounds[-3]
    run.facts[FACT.code] = WHOLE
