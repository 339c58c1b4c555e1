"""The values of a matrix along the paths of a forest, on a team.  The idea: __init__.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, interrupted, kernel, share_rows
from matchwood.engines.cpu.hints import natural, select

Array = np.ndarray[Any, Any]


@kernel
def _collect(
    team: Team, indptr: Array, indices: Array, data: Array, table: Array, place: Array,
    position: Array, dl: Array, d: Array, du: Array,
) -> None:  # fmt: skip
    """The vertices before and after v in its path are found among its neighbours in the factor.

    Values are read as bits: integers are selected in one instruction.  Neighbours and places that
    are out of range are skipped, and leave zeros: a user can change the arrays of a forest."""
    n = place.size
    lo, hi = share_rows(team, indptr)
    none, no_vertex = data.dtype.type(0), np.int64(-1)
    for v in range(natural(lo), hi):
        if interrupted(team, v):
            return
        at = np.int64(position[v])
        before, after = no_vertex, no_vertex
        for slot in range(2 * v, 2 * v + 2):
            w = np.int64(table[slot])
            known = (w >= 0) & (w < n)
            step = np.int64(position[natural(select(known, w, np.int64(0)))]) - at
            before = select(known & (step == -1), w, before)
            after = select(known & (step == 1), w, after)
        lower, middle, upper = none, none, none
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            j = np.int64(indices[k])
            middle = select(j == v, data[k], middle)
            lower = select(j == before, data[k], lower)
            upper = select(j == after, data[k], upper)
        new = np.int64(place[v])
        if new >= 0 and new < n:
            i = natural(new)
            dl[i], d[i], du[i] = lower, middle, upper


def coefficients(
    view: Any, table: Array, place: Array, position: Array, *, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """See matchwood.forests.tridiagonal_of."""
    kind = view.data.dtype
    bits = np.dtype(f"i{kind.itemsize}")
    dl, d, du = (np.zeros(view.n, bits) for _ in range(3))
    team = crew(threads, work=view.nnz + view.n)
    flat = np.ascontiguousarray(table).reshape(-1)
    data = view.data.view(bits)
    team.run(_collect, view.indptr, view.indices, data, flat, place, position, dl, d, du)
    return dl.view(kind), d.view(kind), du.view(kind)
