"""The random graphs in NumPy: whole arrays of edges, then sort and drop equal ones.

Engines get a plan: whole numbers only, so that none can round differently.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import index_type
from matchwood.generators import streams

Array = np.ndarray[Any, Any]
_ONE = np.uint64(1)
LABEL_ROUNDS = 4  # of the renumbering, which only has to hide the order of the degrees

# Rounds of the Feistel network.  Where the halves have few bits it needs more of them: with 8,
# a chi-square test over all graphs of 4 vertices still rejects it, with 16 it does not.
ROUNDS, ROUNDS_OF_SMALL, SMALL_BITS = 6, 16, 24


class RMAT(NamedTuple):
    """`samples` edges; quarters by 32 bits against thresholds for a, a + b, a + b + c."""

    n: int
    seed: int
    directed: bool
    scale: int
    samples: int
    key: int
    thresholds: tuple[int, int, int]
    permute: bool
    labels: tuple[int, ...]  # multiplier, increment, multiplier, ... of the renumbering

    @classmethod
    def of(
        cls, scale: int, samples: int, quarters: tuple[float, ...], seed: int, *,
        directed: bool, permute: bool,
    ) -> RMAT:  # fmt: skip
        a, b, c, d = (Fraction(p) for p in quarters)
        total = a + b + c + d  # 1 but for rounding
        bounds = (a, a + b, a + b + c)
        first, second, third = (streams.threshold(bound / total, 32) for bound in bounds)
        start = streams.key(seed, streams.LABELS)
        numbers = [streams.value(start, k) for k in range(2 * LABEL_ROUNDS)]
        numbers[::2] = [number | 1 for number in numbers[::2]]
        key = streams.key(seed, streams.QUADRANTS)
        thresholds = (first, second, third)
        return cls(
            2**scale, seed, directed, scale, samples, key, thresholds, permute, tuple(numbers)
        )


class GNM(NamedTuple):
    """Edges p(0) .. p(m - 1) of `pairs`; p permutes 0 .. 2^bits - 1, a round for each key."""

    n: int
    seed: int
    directed: bool
    m: int
    pairs: int
    bits: int
    keys: tuple[int, ...]

    @classmethod
    def of(cls, n: int, m: int, seed: int, *, directed: bool) -> GNM:
        pairs = n * (n - 1) // (1 if directed else 2)
        bits = max(2, (pairs - 1).bit_length()) if pairs else 2
        start = streams.key(seed, streams.EDGES)
        rounds = ROUNDS_OF_SMALL if bits < SMALL_BITS else ROUNDS
        keys = tuple(streams.value(start, k) for k in range(rounds))
        return cls(n, seed, directed, m, pairs, bits, keys)


class Bernoulli(NamedTuple):
    """Each pair whose value, 53 bits of it, is less than the threshold."""

    n: int
    seed: int
    directed: bool
    key: int
    threshold: int

    @classmethod
    def of(cls, n: int, density: float, seed: int, *, directed: bool) -> Bernoulli:
        key = streams.key(seed, streams.PAIRS)
        return cls(n, seed, directed, key, streams.threshold(density, 53))


def rmat(plan: RMAT, threads: int | None = None) -> tuple[Array, Array]:
    u, v = rmat_edges(plan)
    keep = u != v
    return csr(plan.n, u[keep], v[keep], symmetric=not plan.directed)


def rmat_edges(plan: RMAT) -> tuple[Array, Array]:
    """Ends of the edges as drawn: self loops and equal edges among them.

    Edge e takes ceil(scale / 2) values; each decides two levels, the low half first.
    """
    a, ab, abc = (np.uint64(bound) for bound in plan.thresholds)
    each = (plan.scale + 1) // 2
    first = np.arange(plan.samples, dtype=np.uint64) * np.uint64(each)
    u = np.zeros(plan.samples, np.uint64)
    v = np.zeros(plan.samples, np.uint64)
    for level in range(plan.scale):
        if level % 2 == 0:
            drawn = streams.values(plan.key, first + np.uint64(level // 2))
            half = drawn & np.uint64(2**32 - 1)
        else:
            half = drawn >> np.uint64(32)
        down = half >= ab
        right = (half >= a) ^ down ^ (half >= abc)
        u = (u << _ONE) | down
        v = (v << _ONE) | right
    if plan.permute:
        u, v = relabelled(u, plan), relabelled(v, plan)
    return u, v


def relabelled(x: Array, plan: RMAT) -> Array:
    """A permutation of 0 .. 2^scale - 1."""
    mask, half = np.uint64(plan.n - 1), np.uint64((plan.scale + 1) // 2)
    for multiplier, increment in zip(plan.labels[::2], plan.labels[1::2], strict=True):
        x = (x * np.uint64(multiplier) + np.uint64(increment)) & mask
        x = x ^ (x >> half)
    return x


def gnm(plan: GNM, threads: int | None = None) -> tuple[Array, Array]:
    t = permuted(np.arange(plan.m, dtype=np.uint64), plan)
    n = np.uint64(plan.n)
    if plan.directed:
        u, v = np.divmod(t, np.uint64(max(plan.n - 1, 1)))
        v = np.where(v >= u, v + _ONE, v)
    else:
        distance, u = np.divmod(t, n)
        v = (u + distance + _ONE) % n
    return csr(plan.n, u, v, symmetric=not plan.directed)


def permuted(x: Array, plan: GNM) -> Array:
    """A permutation of 0 .. pairs - 1: the network, again while its result is outside."""
    x = feistel(x, plan)
    outside = np.flatnonzero(x >= plan.pairs)
    while outside.size:
        x[outside] = feistel(x[outside], plan)
        outside = outside[x[outside] >= plan.pairs]
    return x


def feistel(x: Array, plan: GNM) -> Array:
    """A permutation of 0 .. 2^bits - 1; in turn, each half is changed by a hash of the other."""
    low_bits = np.uint64(plan.bits - plan.bits // 2)
    high_mask = np.uint64(2 ** (plan.bits // 2) - 1)
    low_mask = (_ONE << low_bits) - _ONE
    high, low = x >> low_bits, x & low_mask
    for even, odd in zip(plan.keys[::2], plan.keys[1::2], strict=True):
        high = high ^ (streams.values(even, low) & high_mask)
        low = low ^ (streams.values(odd, high) & low_mask)
    return np.asarray((high << low_bits) | low)


def bernoulli(plan: Bernoulli, threads: int | None = None) -> tuple[Array, Array]:
    vertex = np.arange(plan.n, dtype=np.uint64)
    u, v = vertex[:, None], vertex[None, :]
    if not plan.directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    drawn = streams.values(plan.key, u * np.uint64(plan.n) + v) >> np.uint64(11)
    present = (drawn < np.uint64(plan.threshold)) & ~np.eye(plan.n, dtype=bool)
    rows, cols = np.nonzero(present)
    return csr(plan.n, rows.astype(np.uint64), cols.astype(np.uint64), symmetric=False)


def csr(n: int, u: Array, v: Array, *, symmetric: bool) -> tuple[Array, Array]:
    """Sorted rows without duplicates from uint64 ends."""
    code = u * np.uint64(n) + v
    if symmetric:
        code = np.concatenate((code, v * np.uint64(n) + u))
    code.sort()
    code = code[np.append(True, code[1:] != code[:-1])] if code.size else code
    index = index_type(max(n, code.size))
    rows, cols = np.divmod(code, np.uint64(n)) if n else (code, code)
    indptr = np.zeros(n + 1, index)
    np.cumsum(np.bincount(rows.astype(np.int64), minlength=n), out=indptr[1:])
    return indptr, cols.astype(index)
