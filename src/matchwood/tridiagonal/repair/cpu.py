"""Rows that are off: single ones repaired locally, or the system solved again row after row.

A row is off where its terms happen to be much smaller than those of its neighbours: then the
rounding errors of the neighbours are large for it.  A small change of the unknowns around it
repairs the row, and is too small to matter in the rows beside it.  The change is found by least
squares.  Its unknowns are those of a window around the row.  Its equations are the rows that
contain one of them: they ask for a residual of zero, relative to the terms of the row.  There are
two block rows more than unknowns, so some residual is left; least squares spreads it evenly.
The change is kept only if all these rows are within the limit afterwards; else a wider window is
tried.  So no good row becomes bad, and a row that is still marked at the end is really off.

Zones of several parts are repaired independently.  The first and the last unknown of a zone do not
change.  So no row depends on unknowns that two zones change, and the result does not depend on the
schedule.  A row near the end of a zone is in the middle of one in the second round, whose zones
begin half a zone earlier.

The same for plain rows and blocks: all arrays are given as (n, P, P).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import Crew, barrier, crew, device, interrupted, kernel, share
from matchwood.engines.cpu.hints import exponent, ldexp
from matchwood.tridiagonal import check as accuracy

Array = np.ndarray[Any, Any]

# Block rows of a window to each side of the row: FIRST_REACH, then each time REACH_FACTOR times
# more, up to LAST_REACH.
FIRST_REACH, REACH_FACTOR, LAST_REACH = 1, 4, 64
ZONE_ROWS = 1024  # block rows
LARGEST_TERMS = 2.0**800  # larger sums of terms count as off
TINY = 2.0**-1000  # added to sizes before a division


class Blocks(NamedTuple):
    """A system of P x P blocks; right-hand side and solution are flat, every `step`-th number."""

    dl: Array
    d: Array
    du: Array
    b: Array
    x: Array
    step: int


class RowCheck(NamedTuple):
    """Which block rows are off: `limit` (0: rows are not checked), their marks, their numbers."""

    limit: float
    marks: Array
    off: Array


def new_marks(parts: int, rows: int) -> Array:
    """An array for marks: a bit for each block row of each part."""
    return np.empty((parts, -(-rows // 64)), np.int64)


@device
def clear_marks(mark: Array) -> None:
    for word in range(mark.size):
        mark[word] = 0


@device
def set_mark(mark: Array, row: int) -> None:
    mark[row >> 6] |= np.int64(1) << np.int64(row & 63)


@device
def _residual(system: Blocks, row: int, e: int) -> tuple[float, float]:
    """b - A x of equation e of a block row, and the sum of |terms|; in double precision."""
    n, p, step = system.d.shape[0], system.d.shape[1], system.step
    value = float(system.b[(row * p + e) * step])
    size = abs(value)
    for k in range(p):
        if row > 0:
            term = float(system.dl[row, e, k]) * float(system.x[((row - 1) * p + k) * step])
            value, size = value - term, size + abs(term)
        term = float(system.d[row, e, k]) * float(system.x[(row * p + k) * step])
        value, size = value - term, size + abs(term)
        if row < n - 1:
            term = float(system.du[row, e, k]) * float(system.x[((row + 1) * p + k) * step])
            value, size = value - term, size + abs(term)
    return value, size


@device
def _off_by(system: Blocks, row: int) -> float:
    """The largest residual of a block row, relative to the terms of its equation."""
    worst = 0.0
    for e in range(system.d.shape[1]):
        value, size = _residual(system, row, e)
        if not size <= LARGEST_TERMS:
            return np.inf
        if value != 0:
            worst = max(worst, abs(value) / size)
    return worst


@device
def _insert(r: Array, row: Array, first: int) -> bool:
    """Add a row to the triangle r by Givens rotations.

    Entry k of the row belongs to column first + k, the last entry is b.  Returns False, and stops,
    when numbers are out of range.
    """
    width = row.size - 1
    for k in range(width):
        if row[k] == 0:
            continue
        at = r[first + k]
        length = np.sqrt(at[0] * at[0] + row[k] * row[k])
        if not 0 < length < np.inf:
            return False
        inverse = 1 / length
        cosine, sine = at[0] * inverse, row[k] * inverse
        for t in range(width - k):
            a, c = at[t], row[k + t]
            at[t], row[k + t] = cosine * a + sine * c, cosine * c - sine * a
        a, c = at[width], row[width]
        at[width], row[width] = cosine * a + sine * c, cosine * c - sine * a
    return True


@device
def _change(system: Blocks, lo: int, hi: int, r: Array, row: Array) -> bool:
    """Solve the least squares problem; the change of X[lo] to X[hi-1] goes to r's last column.

    Returns False when numbers are out of range.
    """
    n, p = system.d.shape[0], system.d.shape[1]
    columns, width = (hi - lo) * p, 3 * p
    for c in range(columns):
        for k in range(width + 1):
            r[c, k] = 0.0
    for i in range(max(lo - 1, 0), min(hi + 1, n)):
        for e in range(p):
            value, size = _residual(system, i, e)
            weight = 1 / (size + TINY)
            for k in range(p):
                row[k] = weight * system.dl[i, e, k] if lo < i else 0.0
                row[p + k] = weight * system.d[i, e, k] if lo <= i < hi else 0.0
                row[2 * p + k] = weight * system.du[i, e, k] if i + 1 < hi else 0.0
            row[width] = weight * value
            if not _insert(r, row, (i - 1 - lo) * p):
                return False
    for c in range(columns - 1, -1, -1):
        value = r[c, width]
        for k in range(1, min(width, columns - c)):
            value -= r[c, k] * r[c + k, width]
        r[c, width] = value / r[c, 0] if r[c, 0] != 0 else 0.0
    return True


@device
def _exchange(system: Blocks, lo: int, hi: int, r: Array) -> None:
    """Exchange the unknowns with those in the last column of r."""
    p, last = system.d.shape[1], r.shape[1] - 1
    for c in range((hi - lo) * p):
        at = (lo * p + c) * system.step
        before = system.x[at]
        system.x[at] = r[c, last]
        r[c, last] = before


@device
def _repair_row(system: Blocks, at: int, own: tuple[int, int], limit: float, r: Array) -> bool:
    """Repair one block row by changing unknowns from X[own[0]] to X[own[1]-1] only."""
    n, p = system.d.shape[0], system.d.shape[1]
    last, row = 3 * p, r[r.shape[0] - 1]
    reach = FIRST_REACH
    while reach <= LAST_REACH:
        lo, hi = max(at - reach, own[0]), min(at + reach + 1, own[1])
        reach *= REACH_FACTOR
        if lo >= hi or not _change(system, lo, hi, r, row):
            continue
        for c in range((hi - lo) * p):
            r[c, last] += system.x[(lo * p + c) * system.step]
        _exchange(system, lo, hi, r)
        good = True
        for i in range(max(lo - 1, 0), min(hi + 1, n)):
            good = good and _off_by(system, i) <= limit
        if good:
            return True
        _exchange(system, lo, hi, r)
    return False


@device
def _repair_part(
    system: Blocks, mark: Array, start: int, own: tuple[int, int], limit: float, r: Array
) -> tuple[int, float]:
    """Repair the marked rows of a part.  (Rows still off, largest relative residual before.)"""
    left, worst = 0, 0.0
    for word in range(mark.size):
        if mark[word] == 0:
            continue
        for j in range(64 * word, 64 * word + 64):
            bit = np.int64(1) << np.int64(j & 63)
            if mark[word] & bit != 0:
                off = _off_by(system, start + j)
                worst = max(worst, off)
                if off <= limit or _repair_row(system, start + j, own, limit, r):
                    mark[word] &= ~bit
                else:
                    left += 1
    return left, worst


@kernel
def _repair(
    team: Any, system: Blocks, marks: Array, rows: int, limit: float, room: Array, found: Array
) -> None:
    """Two rounds over all zones; found[member] combines the results of `_repair_part`."""
    n, parts = system.d.shape[0], marks.shape[0]
    zone = ZONE_ROWS // rows  # parts of a zone
    r = room[team.me]
    for shift in range(0, zone, zone // 2):
        left = 0
        lo, hi = share(team, (parts + shift + zone - 1) // zone)
        for z in range(lo, hi):
            if interrupted(team, z << 6):
                return
            first, end = max(z * zone - shift, 0), min((z + 1) * zone - shift, parts)
            free = 0 if first == 0 else first * rows + 1
            fixed = n if end == parts else end * rows - 1
            for part in range(first, end):
                own = (free, fixed)
                more, worst = _repair_part(system, marks[part], part * rows, own, limit, r)
                left += more
                found[team.me, 1] = max(found[team.me, 1], worst)
        found[team.me, 0] = left
        if barrier(team):
            return


def repaired(team: Crew, system: Blocks, rows: int, check: RowCheck) -> int:
    """Repair the marked rows; returns a verdict of check.py.  A part has `rows` block rows."""
    n, p = system.d.shape[:2]
    limit, count = check.limit, int(check.off.sum())
    if count > accuracy.few(n * p):
        return accuracy.WRONG
    room = np.empty((team.size, (2 * LAST_REACH + 1) * p + 1, 3 * p + 1))
    found = np.zeros((team.size, 2))
    team.run(_repair, system, check.marks, rows, limit, room, found)
    if found[:, 0].any():
        return accuracy.WRONG
    worst = found[:, 1].max() / limit
    usual = count <= accuracy.by_chance(n, p) and worst <= accuracy.worst_by_chance(n)
    return accuracy.RIGHT if usual else accuracy.HARD


# Elimination row after row, as in LAPACK: for systems that are not solved well in parts.
#
# Partial pivoting among the rows that contain an unknown; pivots are compared as the rows are
# given. So the pivots are LAPACK's, and the solution is as good.  But every row is first divided by
# a power of two that brings its largest entry near 1, which is exact.  So products do not overflow,
# nor do quotients whose result can be represented, and subnormal numbers lose no digits.  With
# `scaled`, pivots are compared after that division: better where rows differ much in size.
#
# The same code for plain rows and blocks: equation i of P x P blocks has unknowns i - K to i + K,
# with K = 2 P - 1.  A window of K + 1 equations moves down the rows; its columns begin at the
# unknown that is eliminated next.


@device
def _entry(dl: Array, d: Array, du: Array, i: int, column: int) -> float:
    """Coefficient of unknown `column` in equation i; zero outside of the matrix."""
    n, p = d.shape[0], d.shape[1]
    if column < 0 or column >= n * p:
        return 0.0
    row, side = i // p, column // p - i // p
    if side == 0:
        return float(d[row, i % p, column % p])
    if side == -1:
        return float(dl[row, i % p, column % p])
    if side == 1:
        return float(du[row, i % p, column % p])
    return 0.0


@device
def _enter(
    dl: Array, d: Array, du: Array, b: Array, i: int, first: int, w: Array, powers: Array, at: int
) -> None:
    """Put equation i, its columns from `first` on, into row `at` of the window."""
    last = w.shape[1] - 1
    p, n = d.shape[1], d.shape[0]
    for k in range(last + 1):
        w[at, k] = 0.0
    powers[at] = 0
    if i >= n * p:
        return
    largest = 0.0
    reach = 2 * p - 1
    for column in range(max(i - reach, 0), min(i + reach + 1, n * p)):
        largest = max(largest, abs(_entry(dl, d, du, i, column)))
    power = exponent(largest)
    for k in range(last):
        w[at, k] = ldexp(_entry(dl, d, du, i, first + k), -power)
    w[at, last] = ldexp(float(b[i]), -power)
    powers[at] = power


@kernel
def _eliminate(
    team: Any, dl: Array, d: Array, du: Array, b: Array, w: Array, powers: Array, upper: Array,
    x: Array, lacking: Array, scaled: bool,
) -> None:  # fmt: skip
    """One thread computes x; `lacking` becomes the first unknown without a pivot."""
    size, reach, last = x.size, w.shape[0] - 1, w.shape[1] - 1
    for i in range(reach):
        _enter(dl, d, du, b, i, 0, w, powers, i)
    for j in range(size):
        if interrupted(team, j):
            return
        _enter(dl, d, du, b, j + reach, j, w, powers, reach)
        best = 0
        for i in range(1, reach + 1):
            shift = 0
            if not scaled:  # compare the rows as they were before the division
                shift = min(max(powers[i] - powers[best], -2000), 2000)
            if ldexp(abs(w[i, 0]), shift) > abs(w[best, 0]):
                best = i
        if best != 0:
            for k in range(last + 1):
                w[0, k], w[best, k] = w[best, k], w[0, k]
            powers[0], powers[best] = powers[best], powers[0]
        if w[0, 0] == 0:
            if lacking[0] < 0:
                lacking[0] = j
            w[0, 0] = 2.0**-52
        for k in range(last + 1):
            upper[j, k] = w[0, k]
        for i in range(1, reach + 1):
            factor = w[i, 0] / upper[j, 0]  # not w[0, 0], which step i = 1 overwrites
            for k in range(1, last):
                w[i - 1, k - 1] = w[i, k] - factor * upper[j, k]
            w[i - 1, last - 1] = 0.0
            w[i - 1, last] = w[i, last] - factor * upper[j, last]
            powers[i - 1] = powers[i]
    for j in range(size - 1, -1, -1):
        value = upper[j, last]
        for k in range(1, min(last, size - j)):
            if upper[j, k] != 0:  # else x[j + k] may be infinite
                value -= upper[j, k] * x[j + k]
        x[j] = value / upper[j, 0]


def solve_row_by_row(
    dl: Array, d: Array, du: Array, b: Array, scaled: bool = False
) -> tuple[Array, int]:
    """The solution for one right-hand side, in double precision; the row without a pivot or -1."""
    n, p = d.shape[0], (d.shape[1] if d.ndim == 3 else 1)
    reach = 2 * p - 1
    blocks = (np.ascontiguousarray(a, np.float64).reshape(n, p, p) for a in (dl, d, du))
    width = 2 * reach + 1
    x, lacking = np.empty(n * p), np.full(1, -1, np.int64)
    room = np.empty((reach + 1, width + 1)), np.empty(reach + 1, np.int64)
    upper = np.empty((n * p, width + 1))
    right = np.ascontiguousarray(b, np.float64)
    crew(1, work=64 * n * p).run(_eliminate, *blocks, right, *room, upper, x, lacking, scaled)
    return x, int(lacking[0]) // p if lacking[0] >= 0 else -1
