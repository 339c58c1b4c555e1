"""The tridiagonal solver on a team.  One part: cpu_parts.py; the ends of parts: cpu_elements.py.

A first pass over the rows computes an element for each part of 128 rows.  The elements are solved
for the ends of the parts.  A second pass computes the inner unknowns.  The parts do not depend on
the number of threads, so neither does any bit of the solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.teams import barrier, crew, device, interrupted, kernel, share
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.cpu_elements import (
    LARGE,
    Columns,
    Ends,
    Rows,
    in_groups,
    new_ends,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.mending.cpu_local import Blocks, RowCheck, mended, new_marks
from matchwood.tridiagonal.plain.cpu_columns import (
    COLUMNS,
    load_side_ends,
    load_sides,
    mark_side,
    reduce_side,
    store_side,
    store_sides,
    substitute_side,
)
from matchwood.tridiagonal.plain.cpu_columns import SCRATCH as SCRATCH_OF_COLUMNS
from matchwood.tridiagonal.plain.cpu_parts import (
    BAD,
    LANES,
    LEAST,
    ROWS,
    SCRATCH,
    SUM,
    WORDS,
    load_ends,
    load_matrix,
    load_tile,
    mark_off,
    reduce_and_record,
    reduce_tile,
    store_elements,
    store_solution,
    substitute_and_record,
    substitute_tile,
)

Array = np.ndarray[Any, Any]

WORK_PER_ROW = 4  # units of work per row, as `crew` counts them


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the scratch buffer of each thread."""

    choices: Array
    scratch: Array


@device
def _report(tile: int, s: Array, fault: Array) -> None:
    """Report unknowns without a pivot, and numbers that are out of range."""
    for lane in range(LANES):
        if s[BAD + lane] > 0:
            report(fault, 0, (tile * LANES + lane) * ROWS + int(s[BAD + lane]) - 1)
        if not (s[SUM + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE):
            fault[1] = 1


@device
def _reduce(team: Any, rows: Rows, ends: Ends, room: Workspace) -> None:
    """Compute the element of every part."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        reduce_tile(s)
        store_elements(tile, s, ends.elements, room.choices, parts)
        _report(tile, s, ends.fault)


@device
def _substitute(
    team: Any, rows: Rows, ends: Array, room: Workspace, x: Array, check: RowCheck
) -> None:
    """Compute the inner unknowns of every part; with a limit, mark the rows that are off."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        load_ends(tile, s, ends, room.choices, parts)
        substitute_tile(s)
        store_solution(tile, s, rows.perm, x)
        if check.limit > 0:
            for part in range(tile * LANES, min(tile * LANES + LANES, parts)):
                start, end = part * ROWS, min(part * ROWS + ROWS, x.size)
                b, found, mark = rows.b[start:end], x[start:end], check.marks[part]
                off = mark_off(part, rows, b, found, ends, check.limit, mark)
                check.off[team.rank] += off


@device
def _reduce_all(team: Any, rows: Rows, columns: Columns, ends: Ends, room: Workspace) -> None:
    """`_reduce` for several right-hand sides."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_matrix(tile, rows, s)
        load_sides(tile, rows, columns, s)
        reduce_and_record(s)
        store_elements(tile, s, ends.elements, room.choices, parts)
        for c in range(1, columns.count):
            reduce_side(s, c)
            store_side(tile, s, ends.elements[:parts], c)
        _report(tile, s, ends.fault)


@device
def _substitute_all(
    team: Any, rows: Rows, columns: Columns, ends: Array, room: Workspace, check: RowCheck
) -> None:
    """`_substitute` for several right-hand sides."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_matrix(tile, rows, s)
        load_sides(tile, rows, columns, s)
        load_ends(tile, s, ends[0], room.choices, parts)
        for c in range(1, columns.count):
            load_side_ends(tile, s, ends[c], c)
        substitute_and_record(s)
        for c in range(1, columns.count):
            substitute_side(tile, s, ends[c], c)
        store_sides(tile, s, rows, columns)
        if check.limit > 0:
            for part in range(tile * LANES, min(tile * LANES + LANES, parts)):
                for c in range(columns.count):
                    mark = check.marks[c, part]
                    off = mark_side(part, rows, columns, c, ends[c], check.limit, mark)
                    check.off[c, team.rank] += off


@kernel
def _solve_all(
    team: Any, rows: Rows, columns: Columns, ends: Ends, room: Workspace, check: RowCheck
) -> None:
    """Several right-hand sides in one pass over the matrix."""
    _reduce_all(team, rows, columns, ends, room)
    if barrier(team) or solve_ends(team, ends):
        return
    _substitute_all(team, rows, columns, ends.ends, room, check)


@kernel
def _solve(team: Any, rows: Rows, ends: Ends, room: Workspace, x: Array, check: RowCheck) -> None:
    """One right-hand side."""
    _reduce(team, rows, ends, room)
    if barrier(team) or solve_ends(team, ends):
        return
    _substitute(team, rows, ends.ends[0], room, x, check)


def solve(
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    perm: Array | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int]:
    """The solution for every row of b; the row without a pivot or -1; a verdict (trust.py).

    With `perm` the solution is not checked.
    """
    n = d.size
    b = b if b.flags.f_contiguous else np.ascontiguousarray(b)
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, trust.RIGHT
    parts = -(-n // ROWS)
    order = np.empty(0, np.int32) if perm is None else perm
    limit = trust.limit(b.dtype) if perm is None else 0.0
    verdict, lacking, at = trust.RIGHT, -1, 0
    for columns in in_groups(b, x, COLUMNS):
        count = columns.count
        team = crew(threads, work=WORK_PER_ROW * n * count)
        # double precision for both types; float32 would be no faster
        size = SCRATCH if count == 1 else SCRATCH_OF_COLUMNS
        room = Workspace(np.empty((parts, WORDS)), np.empty((team.size, size)))
        ends = new_ends(parts, 1, ROWS, n, team.size, count)
        marks = np.stack([new_marks(parts, ROWS)] * count)
        off = np.zeros((count, team.size), np.int64)
        rows = Rows(dl, d, du, columns.b, order)
        if count == 1:
            one, out = np.ascontiguousarray(b[at]), x[at]
            out = out if out.flags.c_contiguous else np.empty_like(one)
            check = RowCheck(limit, marks[0], off[0])
            team.run(_solve, Rows(dl, d, du, one, order), ends, room, out, check)
            if out.base is not x:
                x[at] = out
        else:
            team.run(_solve_all, rows, columns, ends, room, RowCheck(limit, marks, off))
        lacking = row_without_pivot(ends)
        verdict = trust.WRONG if ends.fault[1] else verdict
        for c in np.flatnonzero(off.any(axis=1)):
            lower, diagonal, upper = (a.reshape(n, 1, 1) for a in (dl, d, du))
            blocks = Blocks(lower, diagonal, upper, b[at + c].copy(), x[at + c].copy())
            check = RowCheck(limit, marks[c], off[c])
            verdict = min(verdict, mended(team, blocks, ROWS, check))
            x[at + c] = blocks.x
        at += count
    return x, lacking, verdict
