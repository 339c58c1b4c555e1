"""What verbs tell about vectors that are spread over ranks, without gathering them."""

from __future__ import annotations

from typing import Any


def largest_parts(G: Any, labels: Any, top: int) -> tuple[int, list[tuple[int, int]]]:
    """How many labels have one vertex, and the largest: (label, vertices), the largest first.

    Label k is counted by the owner of vertex k.
    """
    import numpy as np

    own = labels.local.astype(np.int64)
    distinct, counts = np.unique(own, return_counts=True)
    places, counts = G.exchange.packets(distinct, counts)
    sizes = np.bincount(places, weights=counts, minlength=G.grid.owned).astype(np.int64)
    mine = np.argsort(-sizes, kind="stable")[:top]
    found = [(int(G.ids[k]), int(sizes[k])) for k in mine if sizes[k]]
    told = G.comm.objects((int((sizes == 1).sum()), found))
    every = sorted((pair for _, pairs in told for pair in pairs), key=lambda p: (-p[1], p[0]))
    return sum(single for single, _ in told), every[:top]


def highest(G: Any, vector: Any, top: int) -> list[tuple[int, float]]:
    """The vertices of the largest values, (vertex, value), the largest first."""
    import numpy as np

    mine = np.lexsort((G.ids, -vector.local))[:top]
    found = [(int(G.ids[k]), float(vector.local[k])) for k in mine]
    every = sorted((p for part in G.comm.objects(found) for p in part), key=lambda p: (-p[1], p[0]))
    return every[:top]


def level_sizes(G: Any, levels: Any) -> list[int]:
    """How many vertices have each level, from 0 on."""
    import numpy as np

    reached = levels.local[levels.local >= 0]
    deepest = int(reached.max()) if reached.size else -1
    most = int(G.comm.allreduce(np.array([deepest]), "max")[0])
    sizes = np.bincount(reached, minlength=most + 1).astype(np.int64)
    found: list[int] = G.comm.allreduce(sizes, "sum").tolist()
    return found
