"""The order of edges as device functions, and a list of edges sorted on a team.

The rule: __init__.py.  Sorting goes by weight first; then the edges whose weight is not unique are
sorted by their hash, and then by the number of their run of equal weights.  All sorts are stable,
so edges given in the order of their ends need no further sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import Team, barrier, crew, device, kernel, share, stopping
from matchwood.primitives.hashing.cpu import hash2
from matchwood.primitives.sort.cpu import sort_pairs

Array = np.ndarray[Any, Any]
BLOCK = 1 << 14  # elements between two checks of the stop word


@device
def tie_hash(u: Any, v: Any, seed: Any) -> Any:
    """The hash that decides between edges of equal weight; larger comes first.  seed: uint64."""
    if u < v:
        return hash2(u, v, seed)
    return hash2(v, u, seed)


@device
def prefers_tied(u1: Any, v1: Any, u2: Any, v2: Any, seed: Any, by_hash: bool) -> bool:
    """The edge {u1, v1} comes before {u2, v2}, both being of the same weight."""
    if by_hash:
        h1, h2 = tie_hash(u1, v1, seed), tie_hash(u2, v2, seed)
        if h1 != h2:
            return h1 > h2
    low1, low2 = min(u1, v1), min(u2, v2)
    if low1 != low2:
        return low1 < low2
    return max(u1, v1) < max(u2, v2)


@device
def rank_in_row(u: Any, v: Any, seed: Any, by_hash: bool) -> Any:
    """A number that decides between edges of u of equal weight, larger first; once for each edge.

    For scans of a sorted row: of equal numbers the smaller neighbour wins, which is seen first.
    """
    return tie_hash(u, v, seed) if by_hash else np.uint64(0)


@device
def prefers(w1: Any, u1: Any, v1: Any, w2: Any, u2: Any, v2: Any, seed: Any, by_hash: bool) -> bool:
    """The edge {u1, v1} of weight w1 comes before the edge {u2, v2} of weight w2."""
    if w1 != w2:
        return w1 > w2
    return prefers_tied(u1, v1, u2, v2, seed, by_hash)


@kernel
def _survey(
    team: Team, u: Array, v: Array, bits: Array, keys: Array, ones: Any, faults: Array
) -> None:
    """keys = ~bits, heavy edges first; faults[rank] = edges that a smaller one follows."""
    lo, hi = share(team, u.size)
    late = 0
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        for k in range(start, min(start + BLOCK, hi)):
            keys[k] = bits[k] ^ ones
            if k > 0:
                a, b = min(u[k - 1], v[k - 1]), min(u[k], v[k])
                late += a > b or (a == b and max(u[k - 1], v[k - 1]) > max(u[k], v[k]))
    faults[team.me] = late


@device
def _is_tied(keys: Array, k: int) -> bool:
    """Whether the k-th weight is that of a neighbour in the sorted list."""
    if k > 0 and keys[k - 1] == keys[k]:
        return True
    return k + 1 < keys.size and keys[k + 1] == keys[k]


@kernel
def _count_tied(team: Team, keys: Array, sums: Array) -> None:
    lo, hi = share(team, keys.size)
    tied = 0
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        for k in range(start, min(start + BLOCK, hi)):
            tied += _is_tied(keys, k)
    sums[team.me] = tied


@kernel
def _gather_tied(
    team: Team, keys: Array, perm: Array, u: Array, v: Array, seed: Any, before: Array,
    places: Array, hashes: Array, slots: Array,
) -> None:  # fmt: skip
    """List the tied edges: their places in the order, their inverted hashes, 0, 1, ..."""
    lo, hi = share(team, keys.size)
    at = before[team.me]
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        for k in range(start, min(start + BLOCK, hi)):
            if _is_tied(keys, k):
                places[at] = k
                slots[at] = at
                hashes[at] = ~tie_hash(u[perm[k]], v[perm[k]], seed)
                at += 1


@kernel
def _number_runs(
    team: Team, keys: Array, places: Array, sums: Array, runs: Array, order: Array, by_run: Array
) -> None:
    """by_run[i] = the number of the run of equal weights of the tied edge order[i]."""
    lo, hi = share(team, places.size)
    count = 0
    for i in range(lo, hi):
        count += i > 0 and keys[places[i]] != keys[places[i - 1]]
    sums[team.me] = count
    if barrier(team):
        return
    run = 0
    for member in range(team.me):
        run += sums[member]
    for i in range(lo, hi):
        run += i > 0 and keys[places[i]] != keys[places[i - 1]]
        runs[i] = run
    if barrier(team):
        return
    for i in range(lo, hi):
        by_run[i] = runs[order[i]]


@kernel
def _place_tied(team: Team, perm: Array, places: Array, order: Array, taken: Array) -> None:
    """perm[places[i]] = what was at places[order[i]]."""
    lo, hi = share(team, places.size)
    for i in range(lo, hi):
        taken[i] = perm[places[order[i]]]
    if barrier(team):
        return
    for i in range(lo, hi):
        perm[places[i]] = taken[i]


def order_edges(
    u: Array, v: Array, w: Array, *, seed: int = 0, by_hash: bool = True, threads: int | None = None
) -> Array:
    u, v, w = (np.ascontiguousarray(array) for array in (u, v, w))
    m = u.size
    team = crew(threads, work=4 * m)
    bits = (w + w.dtype.type(0)).view(f"u{w.dtype.itemsize}")  # 0 + -0.0 is 0.0
    keys = np.empty_like(bits)
    faults = np.zeros(team.size, np.int64)
    ones = bits.dtype.type(np.iinfo(bits.dtype).max)
    team.run(_survey, u, v, bits, keys, ones, faults)
    presorted = None
    if faults.any():
        presorted = _by_ends(u, v, threads)
        keys = keys[presorted]
    keys, perm = sort_pairs(keys, presorted, threads=threads)
    if by_hash:
        _break_ties(keys, perm, u, v, seed, team, threads)
    return perm


def _by_ends(u: Array, v: Array, threads: int | None) -> Array:
    """Positions of the edges by min(u, v), then max(u, v)."""
    unsigned = f"u{u.dtype.itemsize}"
    high, low = np.maximum(u, v).view(unsigned), np.minimum(u, v).view(unsigned)
    _, order = sort_pairs(high, threads=threads)
    _, order = sort_pairs(low[order], order, threads=threads)
    return order


def _break_ties(
    keys: Array, perm: Array, u: Array, v: Array, seed: int, team: Any, threads: int | None
) -> None:
    """Put runs of equal keys into the order of their hashes, in `perm`."""
    sums = np.zeros(team.size, np.int64)
    team.run(_count_tied, keys, sums)
    tied = int(sums.sum())
    if tied == 0:
        return
    before = np.cumsum(sums) - sums
    kind = index_type(keys.size)
    places, slots = np.empty(tied, kind), np.empty(tied, kind)
    hashes = np.empty(tied, np.uint64)
    team.run(_gather_tied, keys, perm, u, v, np.uint64(seed), before, places, hashes, slots)
    _, order = sort_pairs(hashes, slots, threads=threads)
    runs = np.empty(tied, np.uint32 if kind == np.int32 else np.uint64)
    by_run = np.empty_like(runs)
    team.run(_number_runs, keys, places, sums, runs, order, by_run)
    _, order = sort_pairs(by_run, order, threads=threads)
    team.run(_place_tied, perm, places, order, slots)
