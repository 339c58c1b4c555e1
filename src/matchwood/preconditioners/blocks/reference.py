"""2x2 blocks of a matrix from the definition: entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def blocks(
    view: Any, place: Array, position: Array, members: Array, *, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """As in cpu.py: every entry of the matrix goes to the block in which it lies, if any."""
    pairs = members.shape[0]
    dl, d, du = (np.zeros((pairs, 2, 2), view.data.dtype) for _ in range(3))
    for k, (_, second) in enumerate(members.tolist()):
        if second < 0:
            d[k, 1, 1] = 1  # a dummy unknown
    for v in range(view.n):
        k, i = int(place[v]), int(members[place[v], 1] == v)
        for e in range(int(view.indptr[v]), int(view.indptr[v + 1])):
            w = int(view.indices[e])
            there, c = int(place[w]), int(members[place[w], 1] == w)
            if there == k:
                d[k, i, c] = view.data[e]
            elif there == k - 1 and position[k] > 1:
                dl[k, i, c] = view.data[e]
            elif there == k + 1 and position[there] > 1:
                du[k, i, c] = view.data[e]
    return dl, d, du
