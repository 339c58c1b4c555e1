"""The kernel of the backend: breadth-first search in the order in which NetworkX visits nodes."""

from __future__ import annotations

from typing import Any

from matchwood.engines.cpu import interrupted, kernel


@kernel
def queue_order(
    team: Any, indptr: Any, indices: Any, order: Any, parent: Any, layers: Any, limit: int
) -> None:
    """Breadth-first search in the order of a queue that reads each row from its beginning.

    Serial.  `order` begins with the sources, layers[0] of them,
    for which `parent` is already set to themselves; elsewhere it is -1.  layers[d] becomes the
    number of vertices at most d arcs away, layers[-1] the number of layers.
    """
    begin, end, depth = 0, layers[0], 0
    while begin < end and depth < limit:
        last = end
        for i in range(begin, last):
            if interrupted(team, i):
                return
            u = order[i]
            row = indices[indptr[u] : indptr[u + 1]]
            for k in range(row.size):
                v = row[k]
                if parent[v] < 0:
                    parent[v] = u
                    order[end] = v
                    end += 1
        begin = last
        depth += 1
        layers[depth] = end
    if begin == end and depth > 0:  # the last layer was empty
        depth -= 1
    layers[layers.size - 1] = depth + 1
