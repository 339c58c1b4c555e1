"""A round of joins on a team.  The rule: __init__.py.

Each community reads its own row and writes its own word, so no atomics are needed.  Which neighbour
gains most cannot be predicted, so it is found without branches.  Hashes are worked out only where
two neighbours gain the same, in a second pass over the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import (
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    next_chunk,
    share,
)
from matchwood.engines.cpu.hints import select
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.number.cpu import flatten, number_roots
from matchwood.primitives.tally.cpu import word

Array = np.ndarray[Any, Any]

CHUNK = 2048  # rows that a member takes at a time


@device
def _gain(w: Any, scaled: Any, k: Any, total: Any) -> Any:
    """The gain of r from joining a community of volume k; `scaled` is resolution times k_r."""
    return np.float64(w) - scaled * np.float64(k) / total


@expanded
def _pick(
    r: Any, row: Array, weights: Array, volume: Array, names: Array, total: Any, resolution: Any
) -> Any:
    """The neighbour that r would join best, or r itself."""
    best, pick, ties = 0.0, r, np.uint64(0)
    scaled = resolution * np.float64(volume[r])
    weighted = weights.size > 0
    one = np.int64(1)
    for e in range(row.size):
        u = np.uint64(row[e])
        gain = _gain(np.int64(weights[e]) if weighted else one, scaled, volume[u], total)
        gain = select(u == r, 0.0, gain)
        more = gain > best
        ties = select(more, np.uint64(0), ties + np.uint64(gain == best))
        pick = select(more, u, pick)
        best = select(more, gain, best)
    if ties == 0 or pick == r:
        return pick
    mixed = np.uint64(0)
    for e in range(row.size):
        u = np.uint64(row[e])
        gain = _gain(np.int64(weights[e]) if weighted else one, scaled, volume[u], total)
        if gain == best and u != r:
            other = mix64(np.uint64(names[u]))
            if other >= mixed:  # mix64 is one to one: no ties
                mixed, pick = other, u
    return pick


@expanded
def _joined(volume: Array, names: Array, r: Any, pick: Any) -> Any:
    """`pick` where (k, mix64, name) of r is smaller than its own, else r."""
    if volume[r] == volume[pick]:
        mine, other = mix64(np.uint64(names[r])), mix64(np.uint64(names[pick]))
        return pick if mine < other else r
    return select(volume[r] < volume[pick], pick, r)


@kernel
def _joins(
    team: Any, indptr: Array, indices: Array, weights: Array, given: Array, volume: Array,
    names: Array, total: float, resolution: float, target: Array,
) -> None:  # fmt: skip
    """Find the joins.  `volume` becomes a copy of `given` in fewer bytes: it is read at random."""
    n = target.size
    lo, hi = share(team, n)
    for v in range(lo, hi):
        volume[v] = given[v]
    if barrier(team):
        return
    first = next_chunk(team, n, CHUNK)
    while first >= 0:
        for v in range(first, min(first + CHUNK, n)):
            if interrupted(team, v):
                return
            r = np.uint64(v)
            begin, end = np.uint64(indptr[r]), np.uint64(indptr[r + np.uint64(1)])
            weight = weights[begin:end] if weights.size > 0 else weights
            pick = _pick(r, indices[begin:end], weight, volume, names, total, resolution)
            target[r] = _joined(volume, names, r, pick)
        first = next_chunk(team, n, CHUNK)


@kernel
def _trees(
    team: Any, target: Array, parent: Array, label: Array, roots: Array, sums: Array
) -> None:
    """`parent` becomes the root of each; sums[team.size] = how many roots there are."""
    lo, hi = share(team, parent.size)
    for v in range(lo, hi):
        parent[v] = target[v]
    if barrier(team):
        return
    flatten(parent, lo, hi)
    if barrier(team):
        return
    if number_roots(team, parent, label, sums):
        return
    for v in range(lo, hi):
        if parent[v] == v:
            roots[label[v]] = v


def joins(
    pattern: tuple[Array, Array, Array | None], volume: Array, names: Array, total: int,
    resolution: float, *, threads: int | None = None,
) -> Array:  # fmt: skip
    indptr, indices, weights = pattern
    unsigned = np.uint32 if indices.dtype == np.int32 else np.uint64
    target = np.empty(indptr.size - 1, indices.dtype)
    team = crew(threads, work=indices.size + indptr.size)
    near = np.empty(volume.size, word(total))
    given = np.empty(0, near.dtype) if weights is None else weights
    team.run(
        _joins, indptr, indices.view(unsigned), given, volume, near, names, float(max(total, 1)),
        resolution, target,
    )  # fmt: skip
    return target


def trees(target: Array, *, threads: int | None = None) -> tuple[Array, Array]:
    n = target.size
    team = crew(threads, work=2 * n)
    parent, label, roots = (np.empty_like(target) for _ in range(3))
    sums = np.zeros(team.size + 1, np.int64)
    team.run(_trees, target, parent, label, roots, sums)
    return label, roots[: sums[-1]]
