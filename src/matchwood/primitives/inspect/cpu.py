"""`inspect` on a team of threads: each member reads its rows and fills one line of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.primitives.inspect import FAULTS, Structure, Values
from matchwood.teams import barrier, crew, device, interrupted, kernel, share, share_rows

Array = np.ndarray[Any, Any]

# odd constants of the mixer; any will do that have about as many ones as zeros, well spread
_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_K3, _K4 = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)
_S29, _S31, _S32 = np.uint64(29), np.uint64(31), np.uint64(32)
_ZERO = np.uint64(0)

# columns of the table
_FAULT, _AT, _DESCENTS, _LOOPS, _LONGEST, _SUM1, _SUM2 = range(7)
_WIDTH = 8  # one cache line for each member


@device
def _x1(v: Any) -> Any:
    h = np.uint64(v) * _K1 + _K4
    h = (h ^ (h >> _S32)) * _K2
    return h ^ (h >> _S29)


@device
def _next(h: Any, k: Any) -> Any:
    """The next hash of the chain x1, y1, x2, y2; not linear in the one before."""
    h = h * k
    return h ^ (h >> _S31)


@kernel
def _structure(team: Any, indptr: Array, indices: Array, n: int, table: Array) -> None:
    rows = indptr.size - 1
    line = table[team.rank]
    lo, hi = share(team, rows)
    for i in range(lo, hi):
        if indptr[i] > indptr[i + 1] or (i == 0 and indptr[0] != 0):
            line[_FAULT] = 2 if indptr[0] == 0 else 1
            line[_AT] = i
            break
    if rows == 0 and indptr[0] != 0:
        line[_FAULT] = 1
    if barrier(team):
        return
    for member in range(team.size):
        if table[member, _FAULT] != 0:
            return
    if indptr[rows] != indices.size:
        line[_FAULT] = 3
        line[_AT] = rows
        return

    lo, hi = share_rows(team, indptr)
    largest = _ZERO
    descents = 0
    loops = 0
    longest = 0
    sum1 = sum2 = _ZERO
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        start, end = indptr[i], indptr[i + 1]
        longest = max(longest, np.int64(end - start))
        x1 = y1 = x2 = y2 = _ZERO
        for k in range(start, end):
            j = indices[k]
            largest = max(largest, np.uint64(j))  # a negative index becomes a huge one
            loops += j == i
            a = _x1(j)
            b = _next(a, _K3)
            c = _next(b, _K1)
            d = _next(c, _K4)
            x1 += a
            y1 += b
            x2 += c
            y2 += d
        for k in range(start + 1, end):
            descents += indices[k] <= indices[k - 1]
        a = _x1(i)
        b = _next(a, _K3)
        c = _next(b, _K1)
        d = _next(c, _K4)
        sum1 += a * y1 - b * x1
        sum2 += c * y2 - d * x2
    if hi > lo and largest >= np.uint64(n):
        for k in range(indptr[lo], indptr[hi]):
            if indices[k] < 0 or indices[k] >= n:
                line[_FAULT] = 4
                line[_AT] = k
                return
    line[_DESCENTS] = descents
    line[_LOOPS] = loops
    line[_LONGEST] = longest
    line[_SUM1] = np.int64(sum1)
    line[_SUM2] = np.int64(sum2)


def structure(indptr: Array, indices: Array, n: int, *, threads: int | None = None) -> Structure:
    team = crew(threads, work=indices.size + indptr.size)
    table = np.zeros((team.size, _WIDTH), np.int64)
    team.run(_structure, indptr, indices, n, table)
    faulty = table[table[:, _FAULT] != 0]
    if faulty.size:
        first = faulty[np.argmin(faulty[:, _AT])]
        return Structure(FAULTS[int(first[_FAULT])], int(first[_AT]), False, 0, 0, False)
    ascending = not table[:, _DESCENTS].any()
    balanced = table[:, _SUM1].sum() == 0 and table[:, _SUM2].sum() == 0
    return Structure(
        fault="",
        at=-1,
        ascending=ascending,
        loops=int(table[:, _LOOPS].sum()),
        longest=int(table[:, _LONGEST].max(initial=0)),
        symmetric=bool(ascending and balanced),
    )


_BAD, _ZEROS, _VSUM1, _VSUM2 = range(4)


@kernel
def _values(
    team: Any,
    indptr: Array,
    indices: Array,
    data: Array,
    bits: Array,
    table: Array,
    ranges: Array,
) -> None:
    line = table[team.rank]
    line[_BAD] = -1
    lo, hi = share_rows(team, indptr)
    least, most = np.inf, -np.inf
    zeros = 0
    sum1 = sum2 = _ZERO
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        x1 = y1 = x2 = y2 = _ZERO
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            w = np.float64(data[k])
            if not np.isfinite(w):
                line[_BAD] = k
                return
            if j != i:
                least = min(least, w)
                most = max(most, w)
                zeros += w == 0.0
            h = _x1(bits[k]) if w != 0.0 else _K3
            a = _x1(j)
            b = _next(a, _K3)
            c = _next(b, _K1)
            d = _next(c, _K4)
            x1 += a * h
            y1 += b * h
            x2 += c * h
            y2 += d * h
        a = _x1(i)
        b = _next(a, _K3)
        c = _next(b, _K1)
        d = _next(c, _K4)
        sum1 += a * y1 - b * x1
        sum2 += c * y2 - d * x2
    ranges[team.rank, 0] = least
    ranges[team.rank, 1] = most
    line[_ZEROS] = zeros
    line[_VSUM1] = np.int64(sum1)
    line[_VSUM2] = np.int64(sum2)


def values(indptr: Array, indices: Array, data: Array, *, threads: int | None = None) -> Values:
    team = crew(threads, work=indices.size + indptr.size)
    table = np.zeros((team.size, _WIDTH), np.int64)
    ranges = np.zeros((team.size, _WIDTH))
    bits = data.view(np.uint32 if data.itemsize == 4 else np.uint64)
    team.run(_values, indptr, indices, data, bits, table, ranges)
    bad = table[table[:, _BAD] >= 0, _BAD]
    if bad.size:
        return Values(False, int(bad.min()), 0.0, 0.0, 0, False)
    least, most = ranges[:, 0].min(), ranges[:, 1].max()
    if least > most:
        least = most = 0.0
    balanced = table[:, _VSUM1].sum() == 0 and table[:, _VSUM2].sum() == 0
    return Values(
        finite=True,
        at=-1,
        minimum=float(least),
        maximum=float(most),
        zeros=int(table[:, _ZEROS].sum()),
        symmetric=bool(balanced),
    )
