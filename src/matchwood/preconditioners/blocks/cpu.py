"""2x2 blocks of a matrix on a team: each thread writes the blocks of its own pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, interrupted, kernel, share

Array = np.ndarray[Any, Any]


@kernel
def _collect(
    team: Any, indptr: Array, indices: Array, data: Array, place: Array, position: Array,
    members: Array, dl: Array, d: Array, du: Array,
) -> None:  # fmt: skip
    """`place`: of a vertex, the place of its pair in the order.  `position`: of a pair, its place
    in its path, from 1."""
    pairs = members.shape[0]
    lo, hi = share(team, pairs)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        for i in range(2):
            for c in range(2):
                dl[k, i, c] = 0
                d[k, i, c] = 0
                du[k, i, c] = 0
        before = position[k] > 1
        after = k + 1 < pairs and position[k + 1] > 1
        for i in range(2):
            v = members[k, i]
            if v < 0:
                d[k, i, i] = 1
                continue
            for e in range(indptr[v], indptr[v + 1]):
                w = indices[e]
                there = place[w]
                c = 1 if members[there, 1] == w else 0
                if there == k:
                    d[k, i, c] = data[e]
                elif there == k - 1 and before:
                    dl[k, i, c] = data[e]
                elif there == k + 1 and after:
                    du[k, i, c] = data[e]


def blocks(
    view: Any, place: Array, position: Array, members: Array, *, threads: int | None = None
) -> tuple[Array, Array, Array]:
    shape = (members.shape[0], 2, 2)
    dl, d, du = (np.empty(shape, view.data.dtype) for _ in range(3))
    team = crew(threads, work=view.nnz)
    team.run(_collect, view.indptr, view.indices, view.data, place, position, members, dl, d, du)
    return dl, d, du
