"""Smoothed interpolation P, and the coarse matrix P.T A P: sparse products on a team.

A product is formed row by row: `total[g]` is the sum in column g, and `seen[g]` says whether the
row has it.  A member writes its own rows, one after the other, into room for as many entries as
they can have; so no pass counts them.  The order of a row does not depend on the number of members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, expanded, interrupted, kernel, share_rows
from matchwood.preconditioners.multilevel.cpu.pairs import STRONG
from matchwood.primitives.tally.cpu import Rows, rows_of, unsigned
from matchwood.primitives.transpose.cpu import transpose

Array = np.ndarray[Any, Any]
Csr = tuple[Array, Array, Array]

# Of the smoothed interpolation, over the sum of |entries| of a row.  With 5/3 diffusion rotated by
# 60 degrees took two iterations more, with 3/2 that by 45 degrees one.
JACOBI_STEP = 1.55


class Strong(NamedTuple):
    """Labels of rows, `groups` for none, and the square root of each row's strongest coupling."""

    label: Array
    groups: int
    root: Array


class Table(NamedTuple):
    """Of each member and column: the sum, and whether it is listed.

    room[member] is the most entries that the rows of members before it can have; it begins there,
    and ends at bounds[member, 1].
    """

    total: Array
    seen: Array
    room: Array
    bounds: Array


@expanded
def _add(total: Array, seen: Array, listed: Array, at: Any, g: Any, value: float) -> Any:
    """Add in column g; where the list then ends.  No branch: nobody can predict what is new."""
    listed[at] = g
    at += np.uint64(seen[g] ^ np.uint8(1))
    seen[g] = 1
    total[g] += value
    return at


@device
def _finish(total: Array, seen: Array, out: Rows, begin: Any, end: Any, factor: float) -> None:
    """Move the sums to the row that begins at `begin`."""
    for k in range(begin, end):
        g = np.uint64(out.indices[k])
        out.data[k] = factor * total[g]
        total[g] = 0.0
        seen[g] = 0


@kernel
def _interpolate(team: Any, rows: Rows, inner: Array, s: Strong, table: Table, out: Rows) -> None:
    """out = P; out.indptr[1:] = the lengths of its rows.

    Weak entries are added to the diagonal, so that constants stay what they are.
    """
    lo, hi = share_rows(team, rows.indptr)
    total, seen, one = table.total[team.me], table.seen[team.me], np.uint64(1)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        top = 0.0
        for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])):
            if np.uint64(rows.indices[k]) != i:
                top = max(top, abs(np.float64(rows.data[k])))
        s.root[i] = np.sqrt(top)
    if barrier(team):
        return
    at = np.uint64(rows.indptr[lo]) + np.uint64(lo)
    table.bounds[team.me, 0] = at
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        begin, limit = at, STRONG * s.root[i]
        diagonal, size = np.float64(inner[i]), 0.0
        for k in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + one])):
            j, a = np.uint64(rows.indices[k]), np.float64(rows.data[k])
            if j == i or abs(a) < limit * s.root[j]:
                diagonal += a
                continue
            size += abs(a)
            g = s.label[j]
            if g < s.groups and a != 0.0:
                at = _add(total, seen, out.indices, at, g, a)
        size += abs(diagonal)
        step = JACOBI_STEP / size if size > 0.0 else 0.0
        g = s.label[i]
        if g < s.groups:
            if step > 0.0:
                at = _add(total, seen, out.indices, at, g, diagonal - 1.0 / step)
            else:
                at = _add(total, seen, out.indices, at, g, -1.0)
        _finish(total, seen, out, begin, at, -step if step > 0.0 else -1.0)
        out.indptr[i + one] = at - begin
    table.bounds[team.me, 1] = at


@kernel
def _measure(team: Any, X: Rows, whole: bool, Y: Rows, most: Array) -> None:
    """most[member] = the entries that its rows of the product can have; whole: X has a diagonal."""
    lo, hi = share_rows(team, X.indptr)
    total, one = np.int64(0), np.uint64(1)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        if whole:
            total += np.int64(Y.indptr[i + one]) - np.int64(Y.indptr[i])
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + one])):
            j = np.uint64(X.indices[k])
            total += np.int64(Y.indptr[j + one]) - np.int64(Y.indptr[j])
    most[team.me] = total


@kernel
def _multiply(
    team: Any, X: Rows, inner: Array, Y: Rows, diagonal: Array, table: Table, out: Rows
) -> None:  # fmt: skip
    """out = (X + the diagonal matrix `inner`) Y; out.indptr[1:] = the lengths of its rows.

    Where `diagonal` is not empty, it gets the diagonal, and `out` the rest.  `inner` may be empty.
    """
    lo, hi = share_rows(team, X.indptr)
    total, seen, one = table.total[team.me], table.seen[team.me], np.uint64(1)
    at = np.uint64(table.room[team.me])
    table.bounds[team.me, 0] = at
    for i in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(i)):
            return
        begin = at
        if diagonal.size:
            seen[i] = 1  # not listed
        if inner.size:
            x = np.float64(inner[i])
            for t in range(np.uint64(Y.indptr[i]), np.uint64(Y.indptr[i + one])):
                g = np.uint64(Y.indices[t])
                at = _add(total, seen, out.indices, at, g, x * Y.data[t])
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + one])):
            j, x = np.uint64(X.indices[k]), np.float64(X.data[k])
            for t in range(np.uint64(Y.indptr[j]), np.uint64(Y.indptr[j + one])):
                g = np.uint64(Y.indices[t])
                at = _add(total, seen, out.indices, at, g, x * Y.data[t])
        if diagonal.size:
            diagonal[i] = total[i]
            total[i] = 0.0
            seen[i] = 0
        _finish(total, seen, out, begin, at, 1.0)
        out.indptr[i + one] = at - begin
    table.bounds[team.me, 1] = at


def _made(run: Any, n: int, room: Array, team: Any, columns: int, index: Any) -> Csr:
    """The matrix of n rows that `run(table, out)` makes; it has at most room[-1] entries."""
    table = Table(
        np.zeros((team.size, columns)), np.zeros((team.size, columns), np.uint8), room,
        np.empty((team.size, 2), np.int64),
    )  # fmt: skip
    indptr, most = np.zeros(n + 1, np.int64), int(room[-1])
    out = Rows(indptr, np.empty(most, unsigned(index)), np.empty(most))
    run(table, out)
    np.cumsum(indptr, out=indptr)
    m = int(indptr[-1])
    if m > np.iinfo(index).max:
        raise MemoryError(f"multilevel: a coarse level has {m} entries, too many for {index}")
    if team.size == 1:
        return indptr.astype(index), out.indices[:m].view(index), out.data[:m]
    parts = [slice(*part) for part in table.bounds]
    indices, data = (np.concatenate([a[part] for part in parts]) for a in out[1:])
    return indptr.astype(index), indices.view(index), data


def interpolation(matrix: Any, label: Array, count: int, threads: int | None) -> Csr:
    """P: each row takes the value of its aggregate, and a damped Jacobi step follows."""
    indptr, indices, data, inner = matrix
    n = inner.size
    team = crew(threads, work=4 * indices.size + n)
    rows, strong = rows_of(indptr, indices, data), Strong(label, count, np.empty(n))
    room = np.array([indptr[-1] + n])

    def run(table: Table, out: Rows) -> None:
        team.run(_interpolate, rows, inner, strong, table, out)

    return _made(run, n, room, team, count, indices.dtype)


def product(
    X: Csr, inner: Any, Y: Csr, columns: int, apart: bool, threads: int | None
) -> tuple[Csr, Array]:  # fmt: skip
    """((X + the diagonal `inner`) Y, and its diagonal where it is to be apart)."""
    n = X[0].size - 1
    team = crew(threads, work=4 * (X[1].size + Y[1].size))
    x, y = rows_of(*X), rows_of(*Y)
    whole = inner is not None and bool(inner.any())
    beside = inner if whole else np.empty(0)
    diagonal, most = np.empty(n if apart else 0), np.zeros(team.size, np.int64)
    team.run(_measure, x, whole, y, most)
    room = np.append(0, np.cumsum(most))

    def run(table: Table, out: Rows) -> None:
        team.run(_multiply, x, beside, y, diagonal, table, out)

    return _made(run, n, room, team, columns, X[1].dtype), diagonal


def coarse(matrix: Any, P: Csr, count: int, threads: int | None) -> tuple[Csr, Array, Csr]:
    """(P.T A P without its diagonal, rows unsorted, symmetric to rounding; the diagonal; P.T)."""
    R: Any = transpose(*P, count, threads=threads)
    AP, _ = product(matrix[:3], matrix[3], P, count, False, threads)
    C, diagonal = product(R, None, AP, count, True, threads)
    return C, diagonal, R
