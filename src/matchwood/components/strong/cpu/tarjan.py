"""Tarjan's algorithm ([1] in ../__init__.py) without recursion; each arc is read once.

`low[v]` is 0 where v is not seen yet, DONE where its component is known, and else the number of
the earliest vertex known to be reachable from v that is still open.  DONE is more than every
number, so an arc into a finished component changes nothing, without a test for it.

The way from the root to the current vertex is path[0 : depth]; beside it `edge`, where to go on in
each row, with the highest bit set where the vertex is known to reach an earlier one.  Vertices left
behind, whose component is open, lie at the other end of `path`: one array serves both, since no
vertex is in both.  A vertex that is a component by itself is never put there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.strong.cpu.steps import Arcs, arcs_of
from matchwood.engines.cpu import crew, device, interrupted, kernel, stopping
from matchwood.engines.cpu.hints import select

Array = np.ndarray[Any, Any]


@device
def tarjan(team: Any, arcs: Arcs, low: Array, edge: Array, path: Array, parent: Array) -> None:
    """parent[v] = the smallest vertex of v's component, where low[v] == 0; elsewhere it is DONE."""
    indptr, indices = arcs
    unsigned = low.dtype.type
    zero, one = unsigned(0), unsigned(1)
    done = unsigned(-1)
    lowered = np.uint64(1) << np.uint64(8 * low.itemsize - 1)
    size = np.uint64(path.size)
    bottom = size  # path[bottom:] are the vertices left behind
    clock = zero
    for root in range(size):
        if interrupted(team, np.int64(root)):
            return
        if low[root] != zero:
            continue
        depth = np.uint64(0)
        v = unsigned(root)
        clock += one
        first = mine = clock  # the number of v, 0 once it is no root; what is to become low[v]
        low[v] = mine
        k = np.uint64(indptr[v])
        end = np.uint64(indptr[v + one])
        while True:
            while k < end:
                w = indices[k]
                k += np.uint64(1)
                there = low[w]
                if there == zero:
                    low[v] = mine
                    path[depth] = v
                    edge[depth] = k | (lowered if mine != first else np.uint64(0))
                    depth += np.uint64(1)
                    v = w
                    clock += one
                    first = mine = clock
                    low[v] = mine
                    k = np.uint64(indptr[v])
                    end = np.uint64(indptr[v + one])
                    if interrupted(team, np.int64(clock)):
                        return
                else:
                    mine = min(mine, there)
            if mine == first:
                # no vertex before v is reached: v and what was left behind since are a component
                least = v
                if bottom < size and low[path[bottom]] >= first:
                    top = bottom
                    while top < size and low[path[top]] >= first:
                        least = min(least, path[top])
                        top += np.uint64(1)
                    for i in range(bottom, top):
                        parent[path[i]] = least
                        low[path[i]] = done
                    bottom = top
                parent[v] = least
                low[v] = done
                if depth == np.uint64(0):
                    break
                depth -= np.uint64(1)
                v = path[depth]
                mine = low[v]
                k = np.uint64(edge[depth])
                first = zero if (k & lowered) != np.uint64(0) else mine
            else:
                low[v] = mine
                bottom -= np.uint64(1)
                path[bottom] = v
                depth -= np.uint64(1)
                v = path[depth]
                there = low[v]
                k = np.uint64(edge[depth])
                first = zero if (k & lowered) != np.uint64(0) or mine < there else there
                mine = min(there, mine)
            k &= ~lowered
            end = np.uint64(indptr[v + one])


@kernel
def _serial(
    team: Any, arcs: Arcs, low: Array, edge: Array, path: Array, parent: Array, count: Array
) -> None:
    """Label all by one member.  Labels replace the parents, from the first vertex on: the smallest
    of a component is visited before the others, so its label is there already.
    """
    low[:] = 0
    tarjan(team, arcs, low, edge, path, parent)
    if stopping(team):
        return
    number = parent.dtype.type(0)
    for v in range(np.uint64(parent.size)):
        up = parent[v]
        parent[v] = select(up == v, number, parent[up])
        number += parent.dtype.type(up == v)
    count[0] = number


def label_alone(view: Any) -> tuple[int, Array, int]:
    """How many components there are, the component of each vertex, and rounds: one."""
    arcs, n = arcs_of(view), view.n
    labels, count = np.empty(n, view.indptr.dtype), np.zeros(1, np.int64)
    kind = arcs.indices.dtype
    team = crew(1, work=view.nnz + n)
    team.run(_serial, arcs, *np.empty((3, n), kind), labels.view(kind), count)
    return int(count[0]), labels, 1
