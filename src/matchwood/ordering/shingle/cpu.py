"""The order of shingles on a team: hashes, the least of each row, and two stable sorts.

Each member hashes its share of the vertices, then reads its rows and writes their words alone: no
two members write the same word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import barrier, crew, interrupted, kernel, share, share_rows
from matchwood.primitives.hashing.cpu import hash2
from matchwood.primitives.sort import radix_sort

Array = np.ndarray[Any, Any]

NONE = np.uint64((1 << 64) - 1)  # the key of a vertex without neighbours


@kernel
def _shingles(
    team: Any, indptr: Array, indices: Array, seed: Any, hashed: Array, least: Array
) -> None:
    lo, hi = share(team, hashed.shape[0])
    for v in range(lo, hi):
        hashed[v, 0] = hash2(v, 0, seed)
        hashed[v, 1] = hash2(v, 1, seed)
    if barrier(team):
        return
    lo, hi = share_rows(team, indptr)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        first, second = NONE, NONE
        row = indices[np.uint64(indptr[v]) : np.uint64(indptr[v + 1])]
        for k in range(row.size):
            u = np.uint64(row[k])
            first = min(first, hashed[u, 0])
            second = min(second, hashed[u, 1])
        least[0, v], least[1, v] = first, second


def order(view: Any, seed: int, *, threads: int | None = None) -> Any:
    n, kind = view.n, view.indptr.dtype
    unsigned = np.uint32 if kind == np.int32 else np.uint64
    least = np.empty((2, n), np.uint64)
    team = crew(threads, work=view.nnz + n)
    team.run(
        _shingles, view.indptr, view.indices.view(unsigned), np.uint64(seed),
        np.empty((n, 2), np.uint64), least,
    )  # fmt: skip
    perm = radix_sort(least[1], threads=threads)[1]
    return radix_sort(least[0][perm], perm, threads=threads)[1].astype(kind, copy=False)
