"""The block tridiagonal solver on a team: as ../plain/cpu.py, with P x P blocks for numbers.

The elimination of a part goes down its block rows and carries 2 P equations in the unknowns
(X[s-1], X[s] | X[j], X[j+1]).  Block row j+1 adds P equations, and X[j] is eliminated with row
pivoting among all 3 P.  The work matrix has columns
[left 2 P | X[j] | X[j+1] | X[j+2] | b | size of the row].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import barrier, crew, device, interrupted, kernel, share
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.cpu_elements import (
    LARGE,
    TINY,
    Ends,
    Rows,
    eliminate,
    is_off,
    new_ends,
    repeat,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.mending.cpu_local import (
    Blocks,
    RowCheck,
    clear_marks,
    mended,
    new_marks,
    set_mark,
)

Array = np.ndarray[Any, Any]

ROWS = 16  # block rows of a part
WORK_PER_ROW = 40  # units of work per block row, as `crew` counts them


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the workspace of each thread."""

    picks: Array
    work: Array
    pivots: Array


@device
def _entry(blocks: Array, row: int, i: int, k: int, zero: Any) -> Any:
    """An entry of a block; zero for rows past the end, which are X = 0 (see `_equation`)."""
    return blocks[row, i, k] if row < blocks.shape[0] else zero


@device
def _equation(w: Array, at: int, row: int, system: Rows, column: int) -> None:
    """Put block row `row` into rows at..at+p-1 of w: (dl, d, du) from `column` on, b and size."""
    dl, d, du, b, perm = system
    n, p = d.shape[0], d.shape[1]
    zero, one = w.dtype.type(0), w.dtype.type(1)
    rhs = 5 * p
    for i in range(p):
        for k in range(rhs):
            w[at + i, k] = zero
        largest = zero
        for k in range(p):
            lower = _entry(dl, row, i, k, zero) if row > 0 else zero
            upper = _entry(du, row, i, k, zero) if row < n - 1 else zero
            diagonal = d[row, i, k] if row < n else (one if i == k else zero)
            w[at + i, column + k] = lower
            w[at + i, column + p + k] = diagonal
            w[at + i, column + 2 * p + k] = upper
            largest = max(largest, max(abs(lower), max(abs(diagonal), abs(upper))))
        if row < n:
            # with perm, equation (row, i) has its right-hand side at b.flat[perm[row, i]];
            # for a dummy unknown, whose place is negative, it is 1
            if perm.size > 0:
                place = perm[row, i]
                w[at + i, rhs] = b[place] if place >= 0 else one
            else:
                w[at + i, rhs] = b[row * p + i]
        else:
            w[at + i, rhs] = zero
        w[at + i, rhs + 1] = largest + TINY


@device
def _out_of_range(w: Array, first: int, last: int, p: int) -> bool:
    """Whether sizes of rows or right-hand sides are too large or too small to be multiplied."""
    bad = False
    for i in range(first, last):
        total = abs(w[i, 5 * p])
        for k in range(5 * p):
            total += abs(w[i, k])
        bad |= not (total <= LARGE and w[i, 5 * p + 1] >= 1 / LARGE)
    return bad


@device
def _next(w: Array, p: int) -> None:
    """After the elimination of X[j] the other equations move up, and X[j+1] takes its place."""
    rhs = 5 * p
    for i in range(2 * p):
        for k in range(2 * p):
            w[i, k] = w[p + i, k]
            w[i, 2 * p + k] = w[p + i, 3 * p + k]
        for k in range(p):
            w[i, 4 * p + k] = 0
        w[i, rhs] = w[p + i, rhs]
        w[i, rhs + 1] = w[p + i, rhs + 1]


@device
def _start(w: Array, start: int, system: Rows) -> None:
    """Put the first two block rows into w: equations in (X[s-1], X[s] | X[s+1], X[s+2])."""
    p = system.d.shape[1]
    _equation(w, 0, start, system, 0)
    _equation(w, p, start + 1, system, p)


@device
def _reduce_part(
    part: int, system: Rows, element: Array, picks: Array, w: Array, fault: Array
) -> None:
    p, start = system.d.shape[1], part * ROWS
    lacking = -1
    _start(w, start, system)
    bad = _out_of_range(w, 0, 2 * p, p)
    for j in range(2, ROWS):
        _equation(w, 2 * p, start + j, system, 2 * p)
        bad |= _out_of_range(w, 2 * p, 3 * p, p)
        if eliminate(w, 3 * p, 2 * p, 3 * p, 5 * p, picks[j]) >= 0 and lacking < 0:
            lacking = j - 1
        _next(w, p)
    for i in range(2 * p):
        for k in range(4 * p):
            element[i, k] = w[i, k]
        element[i, 4 * p] = w[i, 5 * p]
        element[i, 4 * p + 1] = w[i, 5 * p + 1]
    if lacking >= 0:
        report(fault, 0, start + lacking)
    if bad:
        fault[1] = 1


@device
def _substitute_part(
    part: int, system: Rows, ends: Array, picks: Array, x: Array, w: Array, pivots: Array
) -> None:
    n, p, start, perm = system.d.shape[0], system.d.shape[1], part * ROWS, system.perm
    _start(w, start, system)
    for i in range(2 * p):
        for k in range(2 * p):
            w[i, 5 * p] -= w[i, k] * ends[part, k]
            w[i, k] = 0
    for j in range(2, ROWS):
        _equation(w, 2 * p, start + j, system, 2 * p)
        repeat(w, 3 * p, 2 * p, 3 * p, 5 * p, picks[j])
        for i in range(p):
            for k in range(3 * p + 1):
                pivots[j - 1, i, k] = w[i, 2 * p + k]
        _next(w, p)
    # pivots[j, :, 0] becomes X[j], computed from X[j+1] and X[j+2]
    for i in range(p):
        pivots[0, i, 0] = ends[part, p + i]
        pivots[ROWS - 1, i, 0] = ends[part + 1, i]
        pivots[ROWS, i, 0] = ends[part + 1, p + i]
    for j in range(ROWS - 2, 0, -1):
        for i in range(p - 1, -1, -1):
            value = pivots[j, i, 3 * p]
            for k in range(i + 1, p):
                value -= pivots[j, i, k] * pivots[j, k, 0]
            for k in range(p):
                value -= pivots[j, i, p + k] * pivots[j + 1, k, 0]
                value -= pivots[j, i, 2 * p + k] * pivots[j + 2, k, 0]
            pivots[j, i, 0] = value
    for j in range(min(ROWS, n - start)):
        for i in range(p):
            if perm.size > 0:
                if perm[start + j, i] >= 0:
                    x[perm[start + j, i]] = pivots[j, i, 0]
            else:
                x[(start + j) * p + i] = pivots[j, i, 0]


@device
def _mark_off(part: int, system: Rows, ends: Array, found: Array, limit: float, mark: Array) -> int:
    """Mark the block rows of a part that are off; returns how many equations are.

    X[j] is in found[j, :, 0], the unknowns beside the part in `ends`.
    """
    clear_marks(mark)
    dl, d, du, b, _ = system
    n, p, start = d.shape[0], d.shape[1], part * ROWS
    count = 0
    for j in range(min(ROWS, n - start)):
        row = start + j
        for i in range(p):
            value = -b[row * p + i]
            size = abs(value)
            for k in range(p):
                if row > 0:
                    term = dl[row, i, k] * (ends[part, k] if j == 0 else found[j - 1, k, 0])
                    value, size = value + term, size + abs(term)
                term = d[row, i, k] * found[j, k, 0]
                value, size = value + term, size + abs(term)
                if row < n - 1:
                    term = du[row, i, k] * found[j + 1, k, 0]
                    value, size = value + term, size + abs(term)
            if is_off(abs(value), size, limit) > 0:
                set_mark(mark, j)
                count += 1
    return count


@device
def _reduce(team: Any, system: Rows, ends: Ends, room: Workspace) -> None:
    """Compute the element of every part."""
    w = room.work[team.rank]
    lo, hi = share(team, room.picks.shape[0])
    for part in range(lo, hi):
        if interrupted(team, part << 6):
            return
        _reduce_part(part, system, ends.elements[part], room.picks[part], w, ends.fault)


@device
def _substitute(
    team: Any, system: Rows, ends: Array, room: Workspace, x: Array, check: RowCheck
) -> None:
    """Compute the inner unknowns of every part; with a limit, mark block rows that are off."""
    w, mine = room.work[team.rank], room.pivots[team.rank]
    lo, hi = share(team, room.picks.shape[0])
    for part in range(lo, hi):
        if interrupted(team, part << 6):
            return
        _substitute_part(part, system, ends, room.picks[part], x, w, mine)
        if check.limit > 0:
            mark = check.marks[part]
            check.off[team.rank] += _mark_off(part, system, ends, mine, check.limit, mark)


@kernel
def _solve(team: Any, system: Rows, ends: Ends, room: Workspace, x: Array, check: RowCheck) -> None:
    """One right-hand side."""
    _reduce(team, system, ends, room)
    if barrier(team) or solve_ends(team, ends):
        return
    _substitute(team, system, ends.ends, room, x, check)


def solve(
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    perm: Array | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int]:
    """The solution for every row of b; the block row without a pivot or -1; a verdict (trust.py).

    Computed in double precision.  A row of b has one equation of a block row after the other.
    """
    kind = b.dtype
    dl, d, du, b = (a.astype(np.float64, copy=False) for a in (dl, d, du, b))
    n, p = d.shape[0], d.shape[1]
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x.astype(kind), -1, trust.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK_PER_ROW * n)
    order = np.empty((0, p), np.int64) if perm is None else perm.astype(np.int64, copy=False)
    work = np.empty((team.size, 3 * p, 5 * p + 2))
    pivots = np.empty((team.size, ROWS + 1, p, 3 * p + 1))
    room = Workspace(np.empty((parts, ROWS, p), np.int8), work, pivots)
    ends = new_ends(parts, p, ROWS, n, team.size)
    limit = trust.limit(kind) if perm is None else 0.0
    check = RowCheck(limit, new_marks(parts, ROWS), np.zeros(team.size, np.int64))
    verdict = trust.RIGHT
    for one, out in zip(b, x, strict=True):
        check.off[:] = 0
        team.run(_solve, Rows(dl, d, du, one, order), ends, room, out, check)
        if check.off.any():
            verdict = min(verdict, mended(team, Blocks(dl, d, du, one, out), ROWS, check))
    return _rounded(x, kind), row_without_pivot(ends), trust.WRONG if ends.fault[1] else verdict


def _rounded(x: Array, kind: Any) -> Array:
    with np.errstate(over="ignore"):  # `fault` reports numbers that are out of range
        return x.astype(kind, copy=False)
