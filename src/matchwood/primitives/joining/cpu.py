"""A round of joins on a team.  The rule: __init__.py.

Each community reads its own row and writes its own word, so no atomics are needed.  Hashes are
worked out only where two neighbours gain the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.union_find.cpu import find
from matchwood.teams import barrier, crew, device, expanded, interrupted, kernel, next_chunk, share

Array = np.ndarray[Any, Any]

NO_WEIGHTS = np.empty(0, np.int64)  # all are 1
CHUNK = 2048  # rows that a member takes at a time


@device
def _gain(w: Any, scaled: Any, k: Any, total: Any) -> Any:
    """The gain of r from joining a community of volume k; `scaled` is resolution times k_r."""
    return np.float64(w) - scaled * np.float64(k) / total


@expanded
def _goes_up(volume: Array, names: Array, r: Any, u: Any) -> bool:
    """(k, mix64, name) of r is smaller than that of u."""
    if volume[r] != volume[u]:
        return volume[r] < volume[u]
    mine, other = mix64(np.uint64(names[r])), mix64(np.uint64(names[u]))
    return mine < other  # mix64 is one to one: no ties


@expanded
def _pick(
    r: Any, row: Array, weights: Array, volume: Array, names: Array, total: Any, resolution: Any
) -> Any:
    """The neighbour that r would join best, or r itself."""
    best = 0.0
    pick = r
    mixed = np.uint64(0)  # mix64 of the pick; computed once two neighbours gain the same
    known = False
    scaled = resolution * np.float64(volume[r])
    weighted = weights.size > 0
    for e in range(row.size):
        u = np.uint64(row[e])
        gain = _gain(weights[e] if weighted else np.int64(1), scaled, volume[u], total)
        if gain < best or gain <= 0.0 or u == r:
            continue
        if gain > best:
            best, pick, known = gain, u, False
            continue
        if not known:
            mixed, known = mix64(np.uint64(names[pick])), True
        other = mix64(np.uint64(names[u]))
        if other > mixed:
            mixed, pick = other, u
    return pick


@kernel
def _joins(
    team: Any,
    indptr: Array,
    indices: Array,
    weights: Array,
    volume: Array,
    names: Array,
    total: float,
    resolution: float,
    target: Array,
) -> None:
    n = target.size
    first = next_chunk(team, n, CHUNK)
    while first >= 0:
        for v in range(first, min(first + CHUNK, n)):
            if interrupted(team, v):
                return
            r = np.uint64(v)
            begin, end = np.uint64(indptr[r]), np.uint64(indptr[r + np.uint64(1)])
            weight = weights[begin:end] if weights.size > 0 else weights
            pick = _pick(r, indices[begin:end], weight, volume, names, total, resolution)
            if pick != r and not _goes_up(volume, names, r, pick):
                pick = r
            target[r] = pick
        first = next_chunk(team, n, CHUNK)


@kernel
def _trees(team: Any, parent: Array, label: Array, root: Array, counts: Array) -> None:
    """`parent` is a copy of target; root gets the roots, counts[-1] how many there are."""
    n = parent.size
    lo, hi = share(team, n)
    count = 0
    for v in range(lo, hi):
        if parent[v] == v:
            count += 1
    counts[team.rank] = count
    if barrier(team):
        return
    at = 0
    for member in range(team.rank):
        at += counts[member]
    if team.rank == team.size - 1:
        counts[team.size] = at + count
    for v in range(lo, hi):
        if parent[v] == v:
            label[v] = at
            root[at] = v
            at += 1
    if barrier(team):
        return
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        r = np.int64(find(parent, v))
        if r != v:
            label[v] = label[r]  # written before the barrier: roots keep theirs


def joins(
    pattern: tuple[Array, Array, Array | None],
    volume: Array,
    names: Array,
    total: int,
    resolution: float,
    *,
    threads: int | None = None,
) -> Array:
    indptr, indices, weights = pattern
    unsigned = np.uint32 if indices.dtype == np.int32 else np.uint64
    target = np.empty(indptr.size - 1, indices.dtype)
    team = crew(threads, work=indices.size + indptr.size)
    team.run(
        _joins, indptr, indices.view(unsigned), NO_WEIGHTS if weights is None else weights, volume,
        names, float(max(total, 1)), resolution, target,
    )  # fmt: skip
    return target


def trees(target: Array, *, threads: int | None = None) -> tuple[Array, Array]:
    n = target.size
    team = crew(threads, work=2 * n)
    label, root = np.empty_like(target), np.empty_like(target)
    counts = np.zeros(team.size + 1, np.int64)
    team.run(_trees, target.copy(), label, root, counts)
    return label, root[: int(counts[-1])]
