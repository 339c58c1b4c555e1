"""Levels set up on a team: couplings, pairs of rows, the smoother along paths.

`pair` finds pairs by rounds of proposals: a free row proposes to the free one to which it has its
strongest coupling, and two that propose to each other are a pair.  Between two barriers a member
writes words of its own rows only, and reads what others wrote before: there are no races.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    share,
    share_rows,
)
from matchwood.engines.cpu.hints import select
from matchwood.primitives.tally.cpu import Rows, rows_of

Array = np.ndarray[Any, Any]

# The numbers of reference.py, which says why.
ROUNDS, STRONG, DOMINANT = 6, 0.25, 5.0

LINE_WORDS = 8  # of a table with a row for each member: a cache line


# Diagonals and couplings

TOTAL, POSITIVE, TWO = 0, 1, 2  # columns: weight off the diagonal; of positive entries; two largest


class Measured(NamedTuple):
    """Of each row: the diagonal, the sum of |others|, 1 / sqrt(diagonal) or 0, and its hash."""

    diagonal: Array
    others: Array
    scale: Array
    hash: Array


@device
def _mixed(v: Any, seed: Any) -> Any:
    """32 bits of vertex and seed: the last steps of MurmurHash3.  Numba's products have 64 bits."""
    h = np.uint32(v) ^ np.uint32(seed)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.uint32(h ^ (h >> np.uint32(16)))


@kernel
def _measure(
    team: Any, rows: Rows, inner: Array, seed: int, out: Measured, table: Array
) -> None:  # fmt: skip
    """Fill `out`; the scale is 0 for rows that take no part in the coarsening."""
    sums = table[team.me]
    lo, hi = share_rows(team, rows.indptr)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        diagonal = np.float64(inner[i])
        others = positive = first = second = 0.0
        begin, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
        for k in range(begin, end):
            a = np.float64(rows.data[k])
            if np.uint64(rows.indices[k]) == i:
                diagonal += a
                continue
            w = abs(a)
            others += w
            positive += max(a, 0.0)
            if w > first:
                first, second = w, first
            elif w > second:
                second = w
        out.diagonal[i] = diagonal
        out.others[i] = others
        left_out = not diagonal > 0.0 or diagonal >= DOMINANT * others
        out.scale[i] = 0.0 if left_out else 1.0 / np.sqrt(diagonal)
        out.hash[i] = _mixed(i, seed)
        if not left_out:
            sums[TOTAL] += others / diagonal
            sums[POSITIVE] += positive / diagonal
            sums[TWO] += (first + second) / diagonal


# Pairs

LOST = np.float32(np.inf)  # more than any coupling


class Pairs(NamedTuple):
    """Of entries: the coupling.  Of vertices: the strongest one, LOST for those that have a mate;
    `choice`: who it proposes to; `mate`, -1 if it is free; the smallest of its group; its label."""

    coupling: Array
    top: Array
    choice: Array
    mate: Array
    root: Array
    label: Array


@device
def couple(rows: Rows, scale: Array, coupling: Array, i: Any) -> Any:
    """coupling = |a_ij| / sqrt(a_ii a_jj) of row i, in float32; returns the strongest.

    In float32, so that couplings which differ by rounding only are equal, and hashes decide.
    """
    top = np.float32(0)
    for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        j = np.uint64(rows.indices[k])
        w = np.float32(abs(np.float64(rows.data[k])) * (scale[i] * scale[j]))
        w = np.float32(0) if i == j else w
        coupling[k] = w
        top = max(top, w)
    return top


@device
def _strongest(rows: Rows, m: Measured, pairs: Pairs, i: Any) -> Any:
    """The free neighbour with the strongest coupling to i that is strong for both; or -1."""
    at, best = np.int64(-1), np.uint64(0)
    strong = np.float32(STRONG)
    least, hashed = strong * pairs.top[i], m.hash[i]
    for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        w, j = pairs.coupling[k], np.uint64(rows.indices[k])
        # never where j has a mate; no branches, since nobody can predict which neighbour is better
        good = (w >= least) & (w > np.float32(0)) & (w >= strong * pairs.top[j])
        bits = np.uint64(np.float32(w).view(np.uint32))  # in the order of the numbers
        key = (bits << np.uint64(32)) | np.uint64(hashed ^ m.hash[j])
        better = good & (key > best)
        best = select(better, key, best)
        at = select(better, np.int64(j), at)
    return at


@device
def _joined(rows: Rows, m: Measured, pairs: Pairs, i: Any) -> Any:
    """The smaller vertex of the pair that i joins: its strongest neighbour's, or i itself."""
    best, best_w, best_h = np.int64(-1), np.float32(STRONG) * pairs.top[i], np.uint32(0)
    for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        w = pairs.coupling[k]
        j = np.uint64(rows.indices[k])
        if w < best_w or w == np.float32(0) or pairs.mate[j] < 0:
            continue
        h = m.hash[i] ^ m.hash[j]
        if best < 0 or w > best_w or h > best_h:
            best, best_w, best_h = np.int64(j), w, h
    if best < 0:
        return np.int64(i)
    return min(best, np.int64(pairs.mate[best]))


@device
def _accept(pairs: Pairs, waiting: Array, lo: int, last: Any) -> None:
    """Two that propose to each other become mates."""
    for k in range(np.uint64(lo), last):
        i = waiting[k]
        j = pairs.choice[i]
        if pairs.choice[j] == i:
            pairs.mate[i] = j
            pairs.top[i] = LOST


@kernel
def _pair(team: Any, rows: Rows, m: Measured, pairs: Pairs, join: bool, sums: Array) -> None:
    """Pairs by proposals, then numbers; sums[team.size] = how many, the label of rows left out.

    Caller: mate and choice are -1.
    """
    lo, hi = share_rows(team, rows.indptr)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        pairs.top[i] = couple(rows, m.scale, pairs.coupling, i)
    if barrier(team):
        return
    # those that may still find a mate: root[lo : last], which is not needed for roots before
    waiting, last = pairs.root, np.uint64(lo)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        if pairs.top[i] > np.float32(0):
            pairs.choice[i] = _strongest(rows, m, pairs, i)
            waiting[last] = i
            last += np.uint64(pairs.choice[i] >= 0)
    for _ in range(ROUNDS - 1):
        if barrier(team):
            return
        _accept(pairs, waiting, lo, last)
        if barrier(team):
            return
        before, last = last, np.uint64(lo)
        for k in range(np.uint64(lo), before):
            if interrupted(team, np.int64(k)):
                return
            v = np.uint64(waiting[k])
            if pairs.mate[v] >= 0:
                continue
            if pairs.mate[pairs.choice[v]] >= 0:
                pairs.choice[v] = _strongest(rows, m, pairs, v)
            waiting[last] = v
            last += np.uint64(pairs.choice[v] >= 0)
    if barrier(team):
        return
    _accept(pairs, waiting, lo, last)
    if barrier(team):
        return
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        root = np.int64(i)
        if pairs.mate[i] >= 0:
            root = min(root, np.int64(pairs.mate[i]))
        elif join and m.scale[i] > 0.0:
            root = _joined(rows, m, pairs, i)
        pairs.root[i] = root
    # numbers, in the order of the roots
    count = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        count += m.scale[i] > 0.0 and pairs.root[i] == np.int64(i)
    sums[team.me] = count
    if barrier(team):
        return
    number = total = np.int64(0)
    for member in range(team.size):
        if member == team.me:
            number = total
        total += sums[member]
    for i in range(np.uint64(lo), np.uint64(hi)):
        if m.scale[i] > 0.0 and pairs.root[i] == np.int64(i):
            pairs.label[i] = number
            number += 1
        elif m.scale[i] == 0.0:
            pairs.label[i] = total
    if barrier(team):
        return
    for i in range(np.uint64(lo), np.uint64(hi)):
        if m.scale[i] > 0.0 and pairs.root[i] != np.int64(i):
            pairs.label[i] = pairs.label[pairs.root[i]]
    if team.me == 0:
        sums[team.size] = total


def measure(
    indptr: Array, indices: Array, data: Array, inner: Array, seed: int, threads: int | None
) -> tuple[Measured, Array]:
    """Diagonals and couplings; sums over rows that are coarsened: all, positive, two largest."""
    n = inner.size
    team = crew(threads, work=indices.size + n)
    out = Measured(np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.uint32))
    table = np.zeros((team.size, LINE_WORDS))
    team.run(_measure, rows_of(indptr, indices, data), inner, seed, out, table)
    return out, table[:, :3].sum(axis=0)


def pair(
    indptr: Array, indices: Array, data: Array, measured: Measured, join: bool, threads: int | None
) -> tuple[Array, int]:
    """(label of each vertex, number of groups); rows that are left out have that number."""
    n, kind = measured.scale.size, indices.dtype
    team = crew(threads, work=indices.size + n)
    choice, mate = np.full(n, -1, kind), np.full(n, -1, kind)
    top, coupling = np.empty(n, np.float32), np.empty(indices.size, np.float32)
    pairs = Pairs(coupling, top, choice, mate, np.empty(n, kind), np.empty(n, kind))
    sums = np.zeros(team.size + 1, np.int64)
    team.run(_pair, rows_of(indptr, indices, data), measured, pairs, join, sums)
    return pairs.label, int(sums[-1])


# The smoother along paths: T with what it leaves out added to its diagonal, factorized.

TINY = 1e-14  # a pivot below this part of its row is taken for 0
POWER_STEPS = 10  # of the power method; its estimate is then some 5 % too small
SEGMENT = 4096  # rows; longer paths are cut, so that members can share one


class Lines(NamedTuple):
    """Rows in the order of the paths: T = (I + lower) D (I + upper), `inverse` is that of D."""

    order: Array
    lower: Array
    inverse: Array
    upper: Array


@device
def _entry(rows: Rows, i: Any, j: Any) -> Any:
    for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        if np.uint64(rows.indices[k]) == np.uint64(j):
            return np.float64(rows.data[k])
    return 0.0


class System(NamedTuple):
    """Scratch: T itself, and whether a row with its links is diagonally dominant."""

    below: Array
    above: Array
    dominant: Array
    kept: Array  # weight of the links of each row that are left


@kernel
def _factorize(
    team: Any, rows: Rows, m: Measured, position: Array, damping: float, T: System, out: Lines
) -> None:
    """Links of each row, then pivots along each segment.

    A link that would make one of its rows not diagonally dominant is left out, so T is definite.
    A segment belongs to the member in whose share it begins.
    """
    n = position.size
    lo, hi = share(team, n)
    for k in range(lo, hi):
        if interrupted(team, k):
            return
        v = out.order[k]
        below = above = 0.0
        if (position[v] - 1) % SEGMENT != 0:
            below = _entry(rows, np.uint64(v), out.order[k - 1])
        if k + 1 < n and (position[out.order[k + 1]] - 1) % SEGMENT != 0:
            above = _entry(rows, np.uint64(v), out.order[k + 1])
        T.below[k], T.above[k] = below, above
        kept = abs(below) + abs(above)
        T.dominant[k] = kept <= m.diagonal[v] + damping * (m.others[v] - kept)
    if barrier(team):
        return
    k = lo
    while k < hi and _linked(T, k):
        k += 1
    if k == hi:
        return
    pivot = up = 0.0
    while k < n:
        if interrupted(team, k):
            return
        linked = _linked(T, k)
        if k >= hi and not linked:
            return
        v = out.order[k]
        below = T.below[k] if linked else 0.0
        above = T.above[k] if k + 1 < n and _linked(T, k + 1) else 0.0
        T.kept[k] = abs(below) + abs(above)
        full = m.diagonal[v] + damping * (m.others[v] - T.kept[k])
        lower = below / pivot if linked and pivot > 0.0 else 0.0
        pivot = full - lower * up
        if not pivot > TINY * full:  # a singular path: its last unknown becomes 0
            pivot = 0.0
        out.lower[k] = lower
        out.inverse[k] = 1.0 / pivot if pivot > 0.0 else 0.0
        out.upper[k] = above / pivot if pivot > 0.0 else 0.0
        up = above
        k += 1


@device
def _linked(T: System, k: Any) -> bool:
    """Is row k linked to the one before?"""
    if k == 0 or not (T.dominant[k] and T.dominant[k - 1]):
        return False
    return T.below[k] != 0.0 or T.above[k - 1] != 0.0


@device
def solve_segments(
    team: Any, order: Array, lower: Array, inverse: Array, upper: Array, q: Array, y: Array,
    x: Array, add: bool,
) -> bool:  # fmt: skip
    """x = T^-1 q, or x += that; y is scratch.  True: the team stops.

    A segment begins where `lower` is 0, and belongs to the member in whose share that is.
    """
    n = q.size
    lo, hi = share(team, n)
    zero = q.dtype.type(0)
    k = lo
    while k < hi and lower[k] != 0:
        k += 1
    while k < hi:
        if interrupted(team, k):
            return True
        begin = k
        last = q[order[k]]
        y[k] = last
        k += 1
        while k < n and lower[k] != 0:
            last = q[order[k]] - lower[k] * last
            y[k] = last
            k += 1
        value = zero
        for i in range(k - 1, begin - 1, -1):
            value = y[i] * inverse[i] - upper[i] * value
            v = order[i]
            x[v] = value + (x[v] if add else zero)
    return False


class Power(NamedTuple):
    """Vectors of the power method, and the norm that it found."""

    x: Array
    q: Array
    y: Array
    size: Array


@kernel
def _largest(team: Any, rows: Rows, inner: Array, m: Measured, T: Lines, p: Power) -> None:
    """p.size[0] = an estimate, from below, of the largest eigenvalue of T^-1 A."""
    lo, hi = share_rows(team, rows.indptr)
    one = np.uint64(1)
    for i in range(lo, hi):
        p.x[i] = np.float64(m.hash[i] & np.uint32(1023)) - 511.5
    if team.me == 0:
        p.size[0] = 1.0
    for _ in range(POWER_STEPS):
        if barrier(team):
            return
        scale = 1.0 / p.size[0] if p.size[0] > 0.0 else 0.0
        for i in range(np.uint64(lo), np.uint64(hi)):
            if interrupted(team, np.int64(i)):
                return
            even, odd = np.float64(inner[i]) * p.x[i], 0.0  # so that no sum waits for the other
            k, last = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])
            while k + one < last:
                even += np.float64(rows.data[k]) * p.x[np.uint64(rows.indices[k])]
                odd += np.float64(rows.data[k + one]) * p.x[np.uint64(rows.indices[k + one])]
                k += np.uint64(2)
            if k < last:
                odd += np.float64(rows.data[k]) * p.x[np.uint64(rows.indices[k])]
            p.q[i] = scale * (even + odd)
        if barrier(team):
            return
        if solve_segments(team, T.order, T.lower, T.inverse, T.upper, p.q, p.y, p.x, False):
            return
        if barrier(team):
            return
        if team.me == 0:  # in one order: the same at any number of threads
            s0 = s1 = s2 = s3 = 0.0
            whole = p.x.size & ~3
            for i in range(0, whole, 4):
                s0 += p.x[i] * p.x[i]
                s1 += p.x[i + 1] * p.x[i + 1]
                s2 += p.x[i + 2] * p.x[i + 2]
                s3 += p.x[i + 3] * p.x[i + 3]
            for i in range(whole, p.x.size):
                s0 += p.x[i] * p.x[i]
            p.size[0] = np.sqrt((s0 + s1) + (s2 + s3))


def largest(matrix: Any, measured: Measured, T: Lines, threads: int | None) -> float:
    """An estimate, from below, of the largest eigenvalue of T^-1 A."""
    indptr, indices, data, inner = matrix
    n = inner.size
    team = crew(threads, work=POWER_STEPS * (indices.size + n))
    p = Power(np.empty(n), np.empty(n), np.empty(n), np.zeros(1))
    team.run(_largest, rows_of(indptr, indices, data), inner, measured, T, p)
    return float(p.size[0])


def lines(
    indptr: Array, indices: Array, data: Array, measured: Measured, path: tuple[Array, Array],
    damping: float, threads: int | None,
) -> tuple[Lines, float]:  # fmt: skip
    """The factorized smoother along paths (perm and position), and the weight of its links."""
    n = measured.scale.size
    order, position = (np.ascontiguousarray(a, np.int64) for a in path)
    out = Lines(order, *(np.empty(n) for _ in range(3)))
    T = System(np.empty(n), np.empty(n), np.empty(n, np.uint8), np.empty(n))
    team = crew(threads, work=4 * n)
    team.run(_factorize, rows_of(indptr, indices, data), measured, position, damping, T, out)
    return out, float(T.kept.sum())


# The coarsest level


@kernel
def _invert(team: Any, a: Array, found: Array) -> None:
    """a = its inverse, by Gauss and Jordan; found[0] = 1 unless a pivot is 0 or negative.

    Rows are made whole in their turn; else only the lower half is kept, that of -a in the end.
    """
    n = a.shape[0]
    for k in range(n):
        pivot, row = a[k, k], a[k]
        if interrupted(team, 0) or not pivot > 0.0:
            return
        for j in range(k + 1, n):
            row[j] = a[j, k]
        for i in range(n):
            if i != k:
                other, factor = a[i], row[i] / pivot
                for j in range(i + 1):
                    other[j] -= factor * row[j]
                if i > k:
                    other[k] = factor
        for j in range(k):
            row[j] /= pivot
        row[k] = -1.0 / pivot
    found[0] = 1


def inverse(a: Array) -> Array | None:
    """The inverse of a symmetric matrix; None where it is not positive definite.

    One thread of ours: several of LAPACK would wait in turns with the team on the same cores.
    """
    made, found = a.copy(), np.zeros(1, np.int64)
    crew(1, work=a.size * a.shape[0]).run(_invert, made, found)
    return -np.tril(made) - np.tril(made, -1).T if found[0] else None
