"""The random graphs on a team of threads.

R-MAT and G(n, m): members take chunks of the edge list, which `assemble` then sorts.  G(n, p):
members take rows; each row is counted, then written in its place, already sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import index_type
from matchwood.engines.cpu import crew, device, kernel, next_chunk
from matchwood.generators.hashed.reference import GNM, RMAT, Bernoulli
from matchwood.generators.streams.cpu import STEP, value, words
from matchwood.primitives.assemble.cpu import assemble
from matchwood.primitives.hashing.cpu import mix64

Array = np.ndarray[Any, Any]

CHUNK = 1024  # edges; their two ends stay in the first-level cache through all levels
ROWS = 8  # rows of a dense graph that a member takes at a time

_ONE, _TWO = np.uint64(1), np.uint64(2)
_LOW, _HALF = np.uint64(2**32 - 1), np.uint64(32)
_FRACTION = np.uint64(11)  # 64 - 53 bits


@device
def _relabelled(x: Any, mask: Any, half: Any, labels: Any) -> Any:
    for r in range(4):
        x = (x * labels[2 * r] + labels[2 * r + 1]) & mask
        x ^= x >> half
    return x


@kernel
def _draw_quarters(
    team: Any, scale: int, key: Any, thresholds: Any, permute: bool, labels: Any, begin: int,
    rows: Array, cols: Array,
) -> None:  # fmt: skip
    """Write edge begin + e to rows[e], cols[e].

    The loop over edges is the inner one, with nothing in it but arithmetic, so that the compiler
    makes vector instructions of it: 2.3 times as fast as level after level for each edge.
    """
    a, ab, abc = thresholds
    each = (scale + 1) // 2
    mask = (_ONE << np.uint64(scale)) - _ONE
    half = np.uint64(each)
    step = np.uint64(each) * STEP
    while True:
        start = next_chunk(team, rows.size, CHUNK)
        if start < 0:
            break
        u, v = rows[start : start + CHUNK], cols[start : start + CHUNK]
        u[:] = 0
        v[:] = 0
        for pair in range(each):
            first = key + np.uint64((begin + start) * each + pair) * STEP
            drop = np.uint64(2 * pair + 1 == scale)  # an odd scale ends with half a pair
            for e in range(u.size):
                drawn = mix64(first + np.uint64(e) * step)
                x = drawn & _LOW
                down = np.uint64(x >= ab)
                right = np.uint64(x >= a) ^ down ^ np.uint64(x >= abc)
                x = drawn >> _HALF
                down2 = np.uint64(x >= ab)
                right2 = np.uint64(x >= a) ^ down2 ^ np.uint64(x >= abc)
                u[e] = ((np.uint64(u[e]) << _TWO) | (down << _ONE) | down2) >> drop
                v[e] = ((np.uint64(v[e]) << _TWO) | (right << _ONE) | right2) >> drop
        if permute:
            for e in range(u.size):
                u[e] = _relabelled(np.uint64(u[e]), mask, half, labels)
                v[e] = _relabelled(np.uint64(v[e]), mask, half, labels)


def rmat(plan: RMAT, threads: int | None = None) -> tuple[Array, Array]:
    rows, cols = rmat_edges(plan, threads)
    indptr, indices, _ = assemble(
        plan.n, plan.n, rows, cols, symmetric=not plan.directed, loops=False, reduce="first",
        threads=threads,
    )  # fmt: skip
    return indptr, indices


def rmat_edges(
    plan: RMAT, threads: int | None = None, begin: int = 0, count: int | None = None
) -> tuple[Array, Array]:
    """Ends of the edges as drawn, with loops and duplicates: all, or `count` from `begin` on."""
    rows = np.empty(plan.samples if count is None else count, index_type(plan.n))
    cols = np.empty_like(rows)
    crew(threads, work=rows.size * max(plan.scale, 1) // 2).run(
        _draw_quarters, plan.scale, np.uint64(plan.key), words(plan.thresholds), plan.permute,
        words(plan.labels), begin, rows, cols,
    )  # fmt: skip
    return rows, cols


@device
def _feistel(x: Any, low_bits: Any, high_mask: Any, low_mask: Any, keys: Array) -> Any:
    high, low = x >> low_bits, x & low_mask
    for r in range(0, keys.size, 2):
        high ^= value(keys[r], low) & high_mask
        low ^= value(keys[r + 1], high) & low_mask
    return (high << low_bits) | low


@kernel
def _pick_pairs(
    team: Any, n: Any, directed: bool, pairs: Any, high_bits: int, low_bits: int, keys: Array,
    begin: int, rows: Array, cols: Array,
) -> None:  # fmt: skip
    """Write edge begin + k to rows[k], cols[k]."""
    shift = np.uint64(low_bits)
    high_mask = (_ONE << np.uint64(high_bits)) - _ONE
    low_mask = (_ONE << shift) - _ONE
    while True:
        start = next_chunk(team, rows.size, CHUNK)
        if start < 0:
            break
        for k in range(start, min(start + CHUNK, rows.size)):
            t = _feistel(np.uint64(begin + k), shift, high_mask, low_mask, keys)
            while t >= pairs:
                t = _feistel(t, shift, high_mask, low_mask, keys)
            if directed:
                u, v = t // (n - _ONE), t % (n - _ONE)
                if v >= u:
                    v += _ONE
            else:
                u = t % n
                v = u + t // n + _ONE
                if v >= n:
                    v -= n
            rows[k] = u
            cols[k] = v


def gnm_edges(
    plan: GNM, threads: int | None = None, begin: int = 0, count: int | None = None
) -> tuple[Array, Array]:
    """Ends of the edges: of all, or of `count` from number `begin` on."""
    rows = np.empty(plan.m if count is None else count, index_type(plan.n))
    cols = np.empty_like(rows)
    crew(threads, work=rows.size * len(plan.keys)).run(
        _pick_pairs, np.uint64(plan.n), plan.directed, np.uint64(plan.pairs), plan.bits // 2,
        plan.bits - plan.bits // 2, np.array(plan.keys, np.uint64), begin, rows, cols,
    )  # fmt: skip
    return rows, cols


def gnm(plan: GNM, threads: int | None = None) -> tuple[Array, Array]:
    rows, cols = gnm_edges(plan, threads)
    indptr, indices, _ = assemble(
        plan.n, plan.n, rows, cols, symmetric=not plan.directed, reduce="first", threads=threads
    )
    return indptr, indices


@device
def _present(counter: Any, key: Any, threshold: Any) -> bool:
    return value(key, counter) >> _FRACTION < threshold


@kernel
def _count_row(
    team: Any, n: int, directed: bool, key: Any, threshold: Any, begin: int, counts: Array
) -> None:
    """counts[u] = degree of begin + u."""
    size = np.uint64(n)
    while True:
        start = next_chunk(team, counts.size, ROWS)
        if start < 0:
            break
        for at in range(start, min(start + ROWS, counts.size)):
            row = begin + at
            u, degree = np.uint64(row), 0
            for v in range(row):
                counter = u * size + np.uint64(v) if directed else np.uint64(v) * size + u
                degree += _present(counter, key, threshold)
            for v in range(row + 1, n):
                degree += _present(u * size + np.uint64(v), key, threshold)
            counts[at] = degree


@kernel
def _fill_row(
    team: Any, n: int, directed: bool, key: Any, threshold: Any, begin: int, line: Array,
    indptr: Array, indices: Array,
) -> None:  # fmt: skip
    """Write the neighbours of begin + u to row u.

    Every v is written to this member's `line`; it is kept if the place then moves on.  That needs
    no branch, which would be mispredicted half of the time.
    """
    size = np.uint64(n)
    mine = line[team.me]
    rows = indptr.size - 1
    while True:
        start = next_chunk(team, rows, ROWS)
        if start < 0:
            break
        for at in range(start, min(start + ROWS, rows)):
            row = begin + at
            u, degree = np.uint64(row), 0
            for v in range(row):
                counter = u * size + np.uint64(v) if directed else np.uint64(v) * size + u
                mine[degree] = v
                degree += _present(counter, key, threshold)
            for v in range(row + 1, n):
                mine[degree] = v
                degree += _present(u * size + np.uint64(v), key, threshold)
            first = np.int64(indptr[at])
            for k in range(degree):
                indices[first + k] = mine[k]


def bernoulli(
    plan: Bernoulli, threads: int | None = None, begin: int = 0, count: int | None = None
) -> tuple[Array, Array]:
    """All rows, or `count` of them from row `begin` on."""
    n = plan.n
    rows = n if count is None else count
    team = crew(threads, work=n * rows)
    chosen = (n, plan.directed, np.uint64(plan.key), np.uint64(plan.threshold), begin)
    counts = np.empty(rows, np.int64)
    team.run(_count_row, *chosen, counts)
    index = index_type(max(n, int(counts.sum())))
    indptr = np.zeros(rows + 1, index)
    np.cumsum(counts, out=indptr[1:])
    indices = np.empty(int(indptr[-1]), index)
    team.run(_fill_row, *chosen, np.empty((team.size, n + 1), index), indptr, indices)
    return indptr, indices
