"""Tarjan's algorithm without recursion: one depth-first search, each arc looked at once.

`low[v]` is 0 where v is not seen yet, DONE where its component is known, and else the number of
the earliest vertex known to be reachable from v that is still open.  DONE is more than every
number, so an arc into a finished component changes nothing, without a test for it.

The way from the root to the current vertex is path[0 : depth + 1]; beside it `edge`, where to go on
in each row, and `number`, when the vertex was met.  Vertices left behind, whose component is
open, lie at the other end of `path`: one array serves both, since no vertex is in both.  A vertex
that is a component by itself is never put there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import device, interrupted

Array = np.ndarray[Any, Any]


@device
def tarjan(
    team: Any,
    indptr: Array,
    indices: Array,
    low: Array,
    edge: Array,
    number: Array,
    path: Array,
    parent: Array,
) -> int:
    """Components of all vertices with low[v] == 0; the others have DONE there.

    Sets parent[v] to the smallest vertex of the component.  Returns how many components.
    """
    unsigned = low.dtype.type
    zero, one = unsigned(0), unsigned(1)
    done = unsigned(-1)
    bottom = np.uint64(path.size)  # path[bottom:] are the vertices left behind
    clock = zero
    count = 0
    for root in range(np.uint64(low.size)):
        if interrupted(team, np.int64(root)):
            return count
        if low[root] != zero:
            continue
        depth = np.uint64(0)
        v = unsigned(root)
        clock += one
        mine = clock
        low[v] = mine
        path[depth] = v
        number[depth] = mine
        k = np.uint64(indptr[v])
        end = np.uint64(indptr[v + one])
        while True:
            while k < end:
                w = indices[k]
                k += np.uint64(1)
                there = low[w]
                if there == zero:
                    low[v] = mine
                    edge[depth] = k
                    depth += np.uint64(1)
                    v = w
                    clock += one
                    mine = clock
                    low[v] = mine
                    path[depth] = v
                    number[depth] = mine
                    k = np.uint64(indptr[v])
                    end = np.uint64(indptr[v + one])
                    if interrupted(team, np.int64(clock)):
                        return count
                else:
                    mine = min(mine, there)
            first = number[depth]
            if mine == first:
                # nobody before v is reached: v and what was left behind since are a component
                count += 1
                top = bottom
                least = v
                while top < np.uint64(path.size) and low[path[top]] >= first:
                    least = min(least, path[top])
                    top += np.uint64(1)
                for i in range(bottom, top):
                    parent[path[i]] = least
                    low[path[i]] = done
                bottom = top
                parent[v] = least
                low[v] = done
            else:
                low[v] = mine
                bottom -= np.uint64(1)
                path[bottom] = v
            if depth == np.uint64(0):
                break
            depth -= np.uint64(1)
            v = path[depth]
            k = np.uint64(edge[depth])
            end = np.uint64(indptr[v + one])
            mine = min(low[v], mine)
    return count
