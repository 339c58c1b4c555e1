"""The facts of `inspect` from their definitions, in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from matchwood.primitives.inspect import SPREAD, Structure, Symmetry, Values


def _entries(indptr: Any, indices: Any) -> list[tuple[int, int]]:
    return [
        (i, int(j))
        for i in range(len(indptr) - 1)
        for j in indices[int(indptr[i]) : int(indptr[i + 1])]
    ]


def structure(indptr: Any, indices: Any, n: int, *, threads: int | None = None) -> Structure:
    def broken(fault: str, at: int) -> Structure:
        return Structure(fault, at, False, 0)

    rows = len(indptr) - 1
    if indptr[0] != 0:
        return broken("indptr_start", 0)
    for i in range(rows):
        if indptr[i + 1] < indptr[i]:
            return broken("indptr_order", i)
    if indptr[rows] != len(indices):
        return broken("indptr_end", rows)
    for k, j in enumerate(indices):
        if not 0 <= j < n:
            return broken("index_range", k)
    entries = _entries(indptr, indices)
    ascending = all(a[0] < b[0] or a[1] < b[1] for a, b in itertools.pairwise(entries))
    return Structure("", -1, ascending, int(np.diff(indptr).max(initial=0)))


def symmetry(indptr: Any, indices: Any, *, threads: int | None = None) -> Symmetry:
    pattern = set(_entries(indptr, indices))
    loops = sum(i == j for i, j in pattern)
    return Symmetry(loops, all((j, i) in pattern for i, j in pattern))


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    bad = np.flatnonzero(~np.isfinite(data))
    entry = {
        (i, int(indices[k])): data[k]
        for i in range(len(indptr) - 1)
        for k in range(int(indptr[i]), int(indptr[i + 1]))
    }
    off = [a for (i, j), a in entry.items() if i != j]
    return Values(
        finite=not bad.size,
        at=int(bad[0]) if bad.size else -1,
        minimum=float(min(off, default=0.0)),
        maximum=float(max(off, default=0.0)),
        zeros=sum(a == 0 for a in off),
        symmetric=all((j, i) in entry and entry[j, i] == a for (i, j), a in entry.items()),
        negative_loop=any(a < 0 for (i, j), a in entry.items() if i == j),
    )


def word_sums(words: Any, *, threads: int | None = None) -> tuple[int, int]:
    one = two = 0
    for k, word in enumerate(words.tolist()):
        u = word * SPREAD % 2**64
        one += u ^ (u >> 32)
        two += (u ^ (u >> 32)) * (len(words) - k)
    return one % 2**64, two % 2**64
