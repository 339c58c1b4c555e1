"""Passes over the entries of a distributed graph, on a team: before they are sent, and in a block.

A block is in local ids: row and column of one vertex have the same id, so that a loop is seen as
on one machine.  Facts about symmetry and values: primitives/inspect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import crew, device, interrupted, kernel, share
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]

# The ranks that keep entries


@kernel
def _routes(
    team: Any, grid: Any, u: Array, v: Array, to: Array, rows: Array, columns: Array
) -> None:
    """The rank that keeps (u, v), and the positions there; see engines/ranks/grid."""
    R, C = np.uint64(grid.R), np.uint64(grid.C)
    p = R * C
    lo, hi = share(team, u.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        place = np.uint64(u[k]) // p
        stripe = np.uint64(u[k]) - place * p
        row = stripe // C
        rows[k] = place * C + (stripe - row * C)
        place = np.uint64(v[k]) // p
        stripe = np.uint64(v[k]) - place * p
        above = stripe // C
        columns[k] = place * R + above
        to[k] = row * C + (stripe - above * C)


def routes(
    grid: Any, u: Array, v: Array, out: tuple[Array, Array, Array], threads: int | None
) -> None:
    """Rank, row position and column position of every entry, into the arrays of `out`."""
    crew(threads, work=u.size).run(_routes, grid, u, v, *out)


# The computed permutation: `HashedOrder` of sources.py


@device
def _forth(x: Any, bits: Any, mask: Any, keys: Array) -> Any:
    high, low = x >> bits, x & mask
    for k in range(keys.size):
        high, low = low, high ^ (mix64(low + keys[k]) & mask)
    return (high << bits) | low


@device
def _back(x: Any, bits: Any, mask: Any, keys: Array) -> Any:
    """The inverse of `_forth`, with its keys in reverse order."""
    high, low = x >> bits, x & mask
    for k in range(keys.size):
        high, low = low ^ (mix64(high + keys[k]) & mask), high
    return (high << bits) | low


@kernel
def _permute(team: Any, ids: Array, n: Any, half: Any, keys: Array, back: bool, out: Array) -> None:
    mask = (np.uint64(1) << half) - np.uint64(1)
    lo, hi = share(team, ids.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        x = np.uint64(ids[k])
        while True:  # ends: the cycle of x has a number below n, at the latest x itself
            x = _back(x, half, mask, keys) if back else _forth(x, half, mask, keys)
            if x < n:
                break
        out[k] = x


def permute(
    ids: Array, n: int, half: int, keys: Array, back: bool, out: Array, threads: int | None
) -> None:
    """Apply the permutation of 0 .. n - 1, or its inverse, to each of the ids."""
    crew(threads, work=8 * ids.size).run(
        _permute, ids, np.uint64(n), np.uint64(half), keys, back, out
    )


# Over a block


@kernel
def _diagonal(team: Any, indptr: Array, indices: Array, data: Array, found: Array) -> None:
    """found[i] = a_ii; it stays as it is where none is stored."""
    lo, hi = share(team, found.size)
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                found[i] = data[k]
                break


def diagonal(view: tuple[Array, Array, Array], found: Array, threads: int | None) -> None:
    crew(threads, work=view[1].size).run(_diagonal, *view, found)


@kernel
def _renamed(team: Any, indices: Array, names: Array, shift: int, out: Array) -> None:
    lo, hi = share(team, indices.size)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        out[k] = names[indices[k]] + shift


def renamed(indices: Array, names: Array, out: Array, threads: int | None, shift: int = 0) -> Array:
    """names[indices] + shift into `out`, which may be `indices` itself."""
    crew(threads, work=indices.size).run(_renamed, indices, names, shift, out)
    return out
